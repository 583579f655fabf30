import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { readDeliveryFigures, readDeliveryLag } from '../../src/delivery/dispatch/delivery-figures.ts';
import { givePositions } from '../../src/recording/positions.ts';
import { closeAfterAll } from '../support/close-after-all.ts';
import { annals } from '../support/server/command.ts';
import { createEmptyTestDatabase } from '../support/server/database.ts';
import { temporaryFolder } from '../support/server/package-copy.ts';
import { eventually } from '../support/server/patience.ts';
import { startTestServer, testSecretKeys } from '../support/server/server.ts';
import { recordUpdates, subscriptionsOf } from '../support/server/subscriptions.ts';

const target = { type: 'webhook', url: 'https://erp.example.com/changes', headers: { 'X-Key': 'kept secret' } };
const [key = new Uint8Array()] = testSecretKeys;

// What the states are does not depend on a target then.
const server = closeAfterAll(await startTestServer({ environment: { ANNALS_DELIVERIES: 'off' } }));
const token = await server.token('acme');
const acme = subscriptionsOf(server, 'acme', token);
for (const id of ['a', 'b', 'c']) await acme.make({ id, name: `Some ${id}`, target });

async function subscription(...args: string[]) {
  const { code, stdout, stderr } = await annals(['subscription', ...args], environment());
  const lines = stdout.split('\n').filter((line) => line !== '');
  return { code, stderr, lines: lines.map((line) => JSON.parse(line) as Record<string, unknown>) };
}

function environment(secrets = [key]): Record<string, string> {
  const texts = secrets.map((one) => Buffer.from(one).toString('base64'));
  return { DATABASE_URL: server.database.url, ANNALS_SECRET_KEY: texts.join(','), LOG_LEVEL: 'fatal' };
}

test('the operator lists subscriptions, without the address and the secrets of their targets', async () => {
  const { code, lines, stderr } = await subscription('list', '--tenant', 'acme');
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(lines).toHaveLength(3);
  expect(lines[0]).toEqual({
    ...{ tenant: 'acme', id: 'a', name: 'Some a', type: 'webhook', state: 'active', pending: 0, parked: 0 },
  });
  expect((await subscription('list')).lines).toEqual(lines);
  expect(await subscription('list', '--tenant', 'nobody')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('there is no tenant nobody'),
  });
});

test('the operator pauses and resumes subscriptions, and reads the state that each then has', async () => {
  expect(await subscription('pause', '--tenant', 'acme', 'a', 'b')).toEqual({
    ...{ code: 0, stderr: '' },
    lines: ['a', 'b'].map((id) => ({ tenant: 'acme', id, state: 'paused', reason: 'client' })),
  });
  expect(await acme.get('a')).toMatchObject({ state: 'paused', reason: 'client' });
  expect(await acme.get('c')).toMatchObject({ state: 'active' });
  expect((await subscription('resume', '--tenant', 'acme', 'a', 'b')).lines).toEqual(
    ['a', 'b'].map((id) => ({ tenant: 'acme', id, state: 'active' })),
  );
});

test('what cannot be done is exit 1 and names the subscription and why; those before it are done', async () => {
  const { code, lines, stderr } = await subscription('pause', '--tenant', 'acme', 'a', 'nothing', 'b');
  expect({ code, stderr }).toEqual({ code: 1, stderr: 'annals: acme has no subscription nothing\n' });
  expect(lines).toEqual([{ tenant: 'acme', id: 'a', state: 'paused', reason: 'client' }]);
  expect(await acme.get('b')).toMatchObject({ state: 'active' });
  const early = await subscription('resume', '--tenant', 'acme', '--from', 'start', 'a');
  expect(early).toMatchObject({ code: 1, lines: [] });
  expect(early.stderr).toBe(
    'annals: subscription a of acme: from is only for a subscription whose position was lost\n',
  );
  await acme.call('PUT', '/c', { name: 'Some c', enabled: false, target });
  expect(await subscription('resume', '--tenant', 'acme', 'c')).toMatchObject({
    code: 1,
    stderr: 'annals: subscription c of acme: The subscription is not enabled: set `enabled` to true.\n',
  });
});

test('`annals restore` leaves every subscription paused, with all its rows, and the operator resumes it', async () => {
  const file = join(await temporaryFolder(), 'annals.tar.zst');
  expect(await annals(['backup', file], environment())).toMatchObject({ code: 0 });
  const restored = await createEmptyTestDatabase();
  onTestFinished(restored.drop);
  const there = { ...environment(), DATABASE_URL: restored.url };
  expect(await annals(['restore', file], there)).toMatchObject({ code: 0 });
  const listed = async () =>
    (await annals(['subscription', 'list'], there)).stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
  expect((await listed()).map(({ id, state, reason }) => [id, state, reason])).toEqual([
    ['a', 'paused', 'client'],
    ['b', 'paused', 'backup'],
    ['c', 'paused', 'disabled'],
  ]);
  expect(await acme.get('b')).toMatchObject({ state: 'active' });
  expect(await annals(['subscription', 'resume', '--tenant', 'acme', 'b'], there)).toMatchObject({ code: 0 });
  expect((await listed())[1]).toMatchObject({ id: 'b', state: 'active' });
});

test('the figures are how many subscriptions there are by state, what is parked, and how far those that deliver are behind', async () => {
  const { db } = server.context;
  const lag = async () => {
    await givePositions(db, 'acme');
    return await readDeliveryLag(db);
  };
  const [before] = await lag();
  // What was recorded of the subscriptions themselves are changes, too.
  expect(before).toMatchObject({ type: 'webhook', positions: expect.any(Number) });
  await recordUpdates(server, 'acme', ['p1', 'p2', 'p3']);
  await eventually(lag).toMatchObject([{ type: 'webhook', positions: (before?.positions ?? 0) + 3 }]);
  expect((await lag())[0]?.seconds).toBeGreaterThan(0);
  await db
    .updateTable('subscription_state')
    .set({ parked: 2 })
    .where('tenant', '=', 'acme')
    .where('subscription', '=', 'a')
    .execute();
  const figures = await readDeliveryFigures(db);
  expect(figures.map(({ state, count, parked }) => [state, count, parked]).sort()).toEqual([
    ['active', 1, 0],
    ['paused', 2, 2],
  ]);
  await acme.call('POST', '/b/pause');
  expect(await readDeliveryLag(db)).toEqual([]);
});

test('secrets reseal reseals the secrets of subscriptions: with the new key alone there is nothing left to do', async () => {
  const newer = randomBytes(32);
  const resealed = await annals(['secrets', 'reseal'], environment([newer, key]));
  expect(JSON.parse(resealed.stdout)).toMatchObject({ unreadable: 0 });
  expect(JSON.parse((await annals(['secrets', 'reseal'], environment([newer]))).stdout)).toMatchObject({
    ...{ resealed: 0, unreadable: 0 },
  });
  const back = await annals(['secrets', 'reseal'], environment([key, newer]));
  expect(JSON.parse(back.stdout).resealed).toBeGreaterThanOrEqual(3);
});
