import { appendFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { followFile } from '../../../src/sources/import/follow-file.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { annals } from '../../support/server/command.ts';
import { startTestServer, testSecretKeys } from '../../support/server/server.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const tenant = 'acme';
const server = closeAfterAll(await startTestServer());
const token = await server.token(tenant);
const environment = {
  DATABASE_URL: server.database.url,
  ANNALS_SECRET_KEY: Buffer.from(testSecretKeys[0] ?? '').toString('base64'),
};

const at = new Date().toISOString();
const lineOf = (entityId: string, members: object) =>
  `${JSON.stringify({ op: 'insert', entity: 'order', entityId, at, after: { a: 1 }, ...members })}\n`;

const people: Record<string, object> = {
  one: { actor: 'Jane', actorId: 'u-17', onBehalfOf: { name: 'Acme', id: 'c-1' }, correlationId: 'r-1' },
  two: { actorId: 'u-18', onBehalfOf: { id: 'c-1' } },
  three: { onBehalfOf: { name: 'Acme' }, correlationId: '0190c9a4-7d5e-7c3a-9b1f-3f2a1c0d9e8f' },
  four: {},
};

async function entriesOf(names: readonly string[]): Promise<object> {
  const answer = await server.call(`/changelog/${tenant}/changelogs?q=entity:order`, { token });
  const { items } = (await answer.json()) as { items: Record<string, unknown>[] };
  const entries = items.map(({ entityId, actor, actorId, onBehalfOf, correlationId }) => [
    entityId,
    JSON.parse(JSON.stringify({ actor, actorId, onBehalfOf, correlationId })),
  ]);
  return Object.fromEntries(entries.filter(([entityId]) => names.includes(String(entityId))));
}

const shown = (prefix: string) =>
  Object.fromEntries(Object.entries(people).map(([name, who]) => [prefix + name, { actor: 'unknown', ...who }]));

test('an import has all members of its lines, and a line with another one is a conflict', async () => {
  const file = join(temporaryFolder(), 'changes.ndjson');
  const write = async (others: object = {}) =>
    await writeFile(
      file,
      Object.entries(people)
        .map(([name, who]) => lineOf(name, { id: name, ...who, ...others }))
        .join(''),
    );
  const run = async () => {
    const { stdout, stderr } = await annals(['import', '--tenant', tenant, file], environment);
    return { counts: JSON.parse(stdout), stderr };
  };
  await write();
  expect((await run()).counts).toMatchObject({ read: 4, recorded: 4 });
  expect(await entriesOf(Object.keys(people))).toEqual(shown(''));
  expect((await run()).counts).toMatchObject({ read: 4, duplicate: 4 });
  for (const other of [{ actorId: 'u-99' }, { onBehalfOf: { id: 'c-9' } }, { correlationId: 'r-9' }]) {
    await write(other);
    const { counts, stderr } = await run();
    expect(counts).toMatchObject({ read: 4, duplicate: 0, rejected: 4 });
    expect(stderr).toContain('other content');
    expect(stderr).not.toMatch(/[ucr]-9/);
  }
  expect(await entriesOf(Object.keys(people))).toEqual(shown(''));
});

test('so has a followed file', async () => {
  const path = join(temporaryFolder(), 'changes.ndjson');
  await writeFile(path, '');
  const stopper = new AbortController();
  const rejected: string[] = [];
  const ended = followFile({
    db: server.database.db,
    tenant,
    path,
    rules: undefined,
    acceptGap: false,
    now: () => Date.now(),
    signal: stopper.signal,
    onRejected: (_end, reason) => rejected.push(reason),
    onEvent: () => {},
  });
  onTestFinished(async () => {
    stopper.abort();
    await ended;
  });
  for (const [name, who] of Object.entries(people)) await appendFile(path, lineOf(`f-${name}`, who));
  await appendFile(path, lineOf('f-five', { actorId: 'x'.repeat(1001) }));
  const names = Object.keys(people).map((name) => `f-${name}`);
  await expect.poll(async () => await entriesOf(names), { timeout: 30_000 }).toEqual(shown('f-'));
  await expect.poll(() => rejected, { timeout: 30_000 }).toEqual(['"actorId" has more than 1000 characters']);
});
