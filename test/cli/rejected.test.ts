import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { createSealer } from '../../src/core/sealing.ts';
import { createTenant } from '../../src/postgres/tenants/tenants.ts';
import { inTransaction } from '../../src/postgres/transaction.ts';
import { createBatchRecorder, type IncomingChange } from '../../src/recording/batches/record-batch.ts';
import { closeAfterAll } from '../support/close-after-all.ts';
import { annals } from '../support/server/command.ts';
import { createTestDatabase } from '../support/server/database.ts';

const key = randomBytes(32);
const database = closeAfterAll(await createTestDatabase());
const environment = { DATABASE_URL: database.url, ANNALS_SECRET_KEY: key.toString('base64') };
await createTenant(database.db, 'acme');

const rejected = async (...args: string[]) => await annals(['rejected', ...args], environment);

function wrong(line: string, position: string): IncomingChange {
  return { kind: 'rejected', reason: 'has no id', source: { position, line: () => line } };
}

test('rejected changes are listed, retried and dropped', async () => {
  const now = Date.now();
  const take = createBatchRecorder({ sealer: createSealer([key]), now: () => now });
  const good = { op: 'insert', entity: 'order', entityId: '1', at: new Date(now).toISOString(), after: {} };
  const lines = [JSON.stringify(good), '{"op":"insert"}', '{"op":"delete"}'];
  const changes = lines.map((line, index) => wrong(line, `line ${index}`));
  const batch = { tenant: 'acme', recordedBy: { way: 'relay', by: 'r' } as const, changes, strict: false };
  await inTransaction(database.db, (transaction) => take(transaction, batch));

  const listed = await rejected('list', '--tenant', 'acme');
  expect(listed.code).toBe(0);
  const rows = listed.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(rows).toHaveLength(3);
  expect(rows[0]).toEqual({
    tenant: 'acme',
    id: expect.any(String),
    way: 'relay',
    by: 'r',
    position: expect.stringMatching(/^line \d$/),
    reason: 'has no id',
    keptAt: expect.any(String),
  });
  expect((await rejected('list', '--content')).stdout).toContain('"change":"{\\"op\\":\\"delete\\"}"');

  const retried = await rejected('retry');
  expect(retried.code).toBe(1);
  expect(JSON.parse(retried.stdout)).toMatchObject({ read: 3, recorded: 1, rejected: 2 });
  const left = (await rejected('list')).stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(left.map(({ reason }) => reason)).toEqual(['"entity" is missing', '"entity" is missing']);

  expect(JSON.parse((await rejected('drop', '--tenant', 'acme', '--id', left[0].id)).stdout)).toEqual({ dropped: 1 });
  expect(JSON.parse((await rejected('drop', '--tenant', 'acme', '--all')).stdout)).toEqual({ dropped: 1 });
  expect(await rejected('list')).toMatchObject({ code: 0, stdout: '' });
});

test.each([
  [],
  ['lose'],
  ['drop', '--tenant', 'acme'],
  ['drop', '--all'],
  ['drop', '--tenant', 'acme', '--all', '--id', randomBytes(16).toString('hex')],
  ['drop', '--tenant', 'acme', '--id', '1'],
  ['retry', '--tenant', 'acme', '--id', '1'],
  ['retry', '--id', '0f0e0d0c-0b0a-0908-0706-050403020100'],
])('wrong usage: %s %s %s %s', async (...args) => {
  expect(await rejected(...args)).toMatchObject({ code: 2, stdout: '' });
});

const id = '0f0e0d0c-0b0a-0908-0706-050403020100';
test.each([
  ['there is no tenant acne', ['list', '--tenant', 'acne']],
  ['there is no tenant acne', ['retry', '--tenant', 'acne']],
  ['there is no tenant acne', ['drop', '--tenant', 'acne', '--all']],
  [`there is no rejected change ${id}`, ['drop', '--tenant', 'acme', '--id', id]],
  [`there is no rejected change ${id}`, ['retry', '--tenant', 'acme', '--id', id]],
])('a missing tenant or change is an error that names it: %s, %s', async (message, args) => {
  expect(await rejected(...args)).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining(message) });
});

test('changes of an unknown tenant are listed, retried and dropped without one', async () => {
  for (const args of [['list'], ['retry'], ['drop', '--all']]) {
    expect(await rejected(...args, '--tenant', '')).toMatchObject({ code: 0, stderr: '' });
  }
});
