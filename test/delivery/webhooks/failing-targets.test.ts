import { afterEach, beforeEach, expect, test } from 'vitest';
import { maxWaiting } from '../../../src/delivery/dispatch/run-store.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { ownPort } from '../../support/server/own-port.ts';
import { eventually } from '../../support/server/patience.ts';
import { startTestServer } from '../../support/server/server.ts';
import { hour, passTime, recordUpdates, subscriptionsOf } from '../../support/server/subscriptions.ts';
import { type Receiver, startReceiver } from '../../support/vendor/receiver.ts';

let receiver: Receiver;
let made: { id: string; secret: string };

const server = closeAfterAll(await startTestServer({ environment: { ANNALS_DELIVERY_ALLOW: 'acme=127.0.0.0/8' } }));
const token = await server.token('acme', { name: 'Jane' });
const acme = subscriptionsOf(server, 'acme', token);

beforeEach(async () => {
  receiver = await startReceiver({ port: await ownPort() });
  made = await acme.make({ q: 'entity:product', target: { type: 'webhook', url: receiver.url } });
});

afterEach(async () => {
  await acme.call('DELETE', `/${made.id}`);
  await receiver.close();
});

const documentOf = (body: string) => JSON.parse(body).data.entityId as string;
const documents = () => receiver.received.map(({ body }) => documentOf(body));
const settled = (counts: object) => eventually(() => acme.counts(made.id)).toMatchObject({ ...counts, isWhole: true });

test('a document that fails holds back its own changes alone, and they go out in their order when it succeeds', async () => {
  let isWell = false;
  receiver.answer = ({ body }, response) =>
    void response.writeHead(!isWell && documentOf(body) === 'bad' ? 500 : 200).end();
  await recordUpdates(server, 'acme', ['bad', 'a', 'b', 'bad', 'c', 'bad']);
  await settled({ matched: 6, delivered: 3, pending: 3 });
  expect(documents().sort()).toEqual(['a', 'b', 'bad', 'c']);
  expect(await acme.get(made.id)).toMatchObject({ state: expect.stringMatching(/active|retrying/) });
  isWell = true;
  receiver.received.length = 0;
  await passTime(server, made.id, 10_000);
  await settled({ matched: 6, delivered: 6, pending: 0 });
  const positions = receiver.received.map(({ body }) => JSON.parse(body).data.position as number);
  expect(documents()).toEqual(['bad', 'bad', 'bad']);
  expect(positions).toEqual([...positions].sort((a, b) => a - b));
});

test('after eleven failed attempts a change is parked with its id kept, and a replay of what is parked delivers it', async () => {
  receiver.answer = ({ body }, response) => void response.writeHead(documentOf(body) === 'bad' ? 500 : 204).end();
  await recordUpdates(server, 'acme', ['bad', 'good']);
  await settled({ matched: 2, delivered: 1, pending: 1 });
  for (let attempts = 1; attempts < 11; attempts += 1) {
    await eventually(() => documents().filter((id) => id === 'bad').length).toBe(attempts);
    // A success between keeps the subscription from being suspended, as other changes do.
    await recordUpdates(server, 'acme', ['good']);
    await settled({ matched: 2 + attempts, delivered: 1 + attempts });
    await passTime(server, made.id, 30 * hour);
  }
  await settled({ parked: 1, pending: 0 });
  expect(
    new Set(
      receiver.received.filter(({ body }) => documentOf(body) === 'bad').map(({ headers }) => headers['webhook-id']),
    ).size,
  ).toBe(1);
  receiver.answer = (_received, response) => void response.writeHead(204).end();
  await acme.call('POST', `/${made.id}/replay`, { parked: true });
  await settled({ matched: 12, delivered: 12, parked: 0 });
  const ids = new Set(receiver.received.map(({ headers }) => headers['webhook-id']));
  expect(ids.size).toBe(12);
});

test('a target that cannot be reached costs no attempts and no rows: one probe at a time, and then all goes out', async () => {
  const many = 60;
  const { port } = receiver;
  await receiver.close();
  await recordUpdates(
    server,
    'acme',
    Array.from({ length: many }, (_, index) => `p${index}`),
  );
  await eventually(async () => (await acme.get(made.id)).state).toBe('retrying');
  const waiting = async () =>
    (
      await server.database.pool.query('select count(*)::integer as n from delivery_waiting where subscription = $1', [
        made.id,
      ])
    ).rows[0].n;
  for (let probe = 0; probe < 3; probe += 1) {
    const { rows } = await server.database.pool.query(
      'select unreachable from subscription_state where subscription = $1',
      [made.id],
    );
    await passTime(server, made.id, 20 * 60_000);
    await eventually(
      async () =>
        (
          await server.database.pool.query('select unreachable from subscription_state where subscription = $1', [
            made.id,
          ])
        ).rows[0].unreachable,
    ).toBe(rows[0].unreachable + 1);
  }
  expect(await waiting()).toBe(0);
  expect(await acme.counts(made.id)).toMatchObject({ matched: 0, pending: 0 });
  const { lastError } = await acme.get(made.id);
  expect(lastError).toMatchObject({ message: 'No connection to the target could be made.' });
  receiver = await startReceiver({ port });
  await passTime(server, made.id, 20 * 60_000);
  await settled({ matched: many, delivered: many, pending: 0 });
  expect(await acme.get(made.id)).toMatchObject({ state: 'active' });
  expect(receiver.received).toHaveLength(many);
});

test('410 suspends at once, and resuming delivers what was refused', async () => {
  receiver.answer = (_received, response) => void response.writeHead(410).end();
  await recordUpdates(server, 'acme', ['a']);
  await eventually(async () => (await acme.get(made.id)).state).toBe('suspended');
  expect(await acme.get(made.id)).toMatchObject({ reason: 'gone' });
  await recordUpdates(server, 'acme', ['b']);
  receiver.answer = (_received, response) => void response.writeHead(204).end();
  expect((await acme.call('POST', `/${made.id}/resume`)).status).toBe(204);
  await settled({ matched: 2, delivered: 2 });
  expect(documents().sort()).toEqual(['a', 'a', 'b']);
});

test('nothing but failures for five days suspends, with one e-mail, and nothing is lost', async () => {
  await server.call('/configuration/acme/configurations', {
    token,
    json: [{ key: 'notificationEmail', value: 'ops@example.com' }],
  });
  const mails = async () =>
    (await server.database.pool.query(`select recipient, subject from mail where tenant = 'acme'`)).rows;
  const { port } = receiver;
  await receiver.close();
  await recordUpdates(server, 'acme', ['a', 'b']);
  await eventually(async () => (await acme.get(made.id)).state).toBe('retrying');
  await passTime(server, made.id, 119 * hour);
  await eventually(
    async () =>
      (
        await server.database.pool.query('select unreachable from subscription_state where subscription = $1', [
          made.id,
        ])
      ).rows[0].unreachable,
  ).toBe(2);
  expect(await acme.get(made.id)).toMatchObject({ state: 'retrying' });
  expect(await mails()).toEqual([]);
  await passTime(server, made.id, 2 * hour);
  await eventually(async () => (await acme.get(made.id)).state).toBe('suspended');
  expect(await acme.get(made.id)).toMatchObject({ reason: 'failures', lastError: expect.anything() });
  expect(await mails()).toEqual([{ recipient: 'ops@example.com', subject: expect.stringContaining('is suspended') }]);
  receiver = await startReceiver({ port });
  await acme.call('POST', `/${made.id}/resume`);
  await settled({ matched: 2, delivered: 2 });
  expect(await mails()).toHaveLength(1);
});

test('a target that is too busy is left alone, and its Retry-After of a year counts up to twice the step', async () => {
  receiver.answer = (_received, response) =>
    void response.writeHead(429, { 'retry-after': String(365 * 24 * 3600) }).end();
  await recordUpdates(
    server,
    'acme',
    Array.from({ length: 20 }, (_, index) => `p${index}`),
  );
  await eventually(async () => (await acme.get(made.id)).state).toBe('retrying');
  const { rows } = await server.database.pool.query(
    `select slowed, rest_until < statement_timestamp() + interval '3 s' as soon from subscription_state where subscription = $1`,
    [made.id],
  );
  expect(rows).toEqual([{ slowed: 1, soon: true }]);
  // At most as many as go out at once were sent.
  expect(receiver.received.length).toBeLessThanOrEqual(4);
  const { rows: kept } = await server.database.pool.query(
    `select max(due_at) < statement_timestamp() + interval '10.1 s' as soon from delivery_waiting where subscription = $1 and attempts > 0`,
    [made.id],
  );
  expect(kept).toEqual([{ soon: true }]);
  receiver.answer = (_received, response) => void response.writeHead(204).end();
  // On a slow machine an answer from before may set a rest once more.
  await eventually(async () => {
    await passTime(server, made.id, 60_000);
    return await acme.counts(made.id);
  }).toMatchObject({ matched: 20, delivered: 20, pending: 0 });
  expect(await acme.get(made.id)).toMatchObject({ state: 'active' });
});

test('at 1,000 waiting changes the cursor stops until they have gone', async () => {
  const add = (changes: number) =>
    server.database.pool.query(
      'update subscription_state set waiting = waiting + $2, matched = matched + $2 where subscription = $1',
      [made.id, changes],
    );
  receiver.answer = (_received, response) => void response.writeHead(500).end();
  await add(maxWaiting - 5);
  const ids = Array.from({ length: 20 }, (_, index) => `p${index}`);
  await recordUpdates(server, 'acme', ids);
  await settled({ matched: maxWaiting, pending: maxWaiting });
  await passTime(server, made.id, 10_000);
  await eventually(() => receiver.received.length).toBe(10);
  await settled({ matched: maxWaiting, pending: maxWaiting });
  await add(5 - maxWaiting);
  receiver.answer = (_received, response) => void response.writeHead(204).end();
  await passTime(server, made.id, hour);
  await settled({ matched: 20, delivered: 20, pending: 0 });
  expect(documents().slice(-20).sort()).toEqual(ids.sort());
});

test('a change that was too old when it was recorded is skipped and counted', async () => {
  await recordUpdates(server, 'acme', ['old'], { at: Date.now() - 25 * hour });
  await recordUpdates(server, 'acme', ['new'], { at: Date.now() - 23 * hour });
  await settled({ matched: 2, delivered: 1, skipped: 1 });
  expect(documents()).toEqual(['new']);
});
