import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { eventually } from '../../support/server/patience.ts';
import { startTestServer } from '../../support/server/server.ts';
import { recordUpdates, subscriptionsOf } from '../../support/server/subscriptions.ts';
import { type Received, startReceiver } from '../../support/vendor/receiver.ts';

const server = closeAfterAll(await startTestServer({ environment: { ANNALS_DELIVERY_ALLOW: 'acme=127.0.0.0/8' } }));
const acme = subscriptionsOf(server, 'acme', await server.token('acme', { name: 'Jane' }));
const receiver = closeAfterAll(await startReceiver());

beforeEach(() => {
  receiver.received.length = 0;
  receiver.answer = (_received, response) => void response.writeHead(204).end();
});

interface Item {
  position: number;
  entityId: string;
}

function itemsOf({ body }: Received): Item[] {
  return body
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Item);
}

const named = (prefix: string, count: number) => Array.from({ length: count }, (_none, index) => `${prefix}-${index}`);

/** A subscription that sends batches of at most so many changes, each at once. */
async function make(members: object = {}, others: object = {}): Promise<string> {
  const target = { type: 'http', url: receiver.url, maxSeconds: 0, ...members };
  const { id } = await acme.make({ q: 'entity:product', target, ...others });
  onTestFinished(async () => void (await acme.call('DELETE', `/${id}`)));
  return id;
}

test('changes come in order, each once, in batches that say their first and last position and a key', async () => {
  const id = await make({ maxChanges: 7 });
  const documents = named('ordered', 30);
  await recordUpdates(server, 'acme', documents);
  await eventually(() => acme.counts(id)).toMatchObject({ matched: 30, delivered: 30, isWhole: true });
  const batches = receiver.received.map(itemsOf);
  expect(batches.flat().map(({ entityId }) => entityId)).toEqual(documents);
  expect(batches.map(({ length }) => length)).toEqual([7, 7, 7, 7, 2]);
  for (const [index, { headers }] of receiver.received.entries()) {
    const items = batches[index] ?? [];
    expect(headers['annals-first']).toBe(String(items[0]?.position));
    expect(headers['annals-last']).toBe(String(items.at(-1)?.position));
    expect(headers['content-type']).toBe('application/x-ndjson');
  }
  expect(new Set(receiver.received.map(({ headers }) => headers['idempotency-key'])).size).toBe(5);
  expect(receiver.received[0]?.body).toContain('"after":1.20');
});

test('with gzip a batch is packed and says so, and a repeated one is the same text', async () => {
  const id = await make({ gzip: true, encoding: 'json' });
  receiver.answer = (_received, response) => void response.writeHead(receiver.received.length > 1 ? 204 : 503).end();
  await recordUpdates(server, 'acme', named('packed', 3));
  await eventually(() => acme.get(id)).toMatchObject({ state: 'retrying' });
  await acme.call('POST', `/${id}/resume`);
  await eventually(() => acme.counts(id)).toMatchObject({ delivered: 3 });
  const [first, again] = receiver.received;
  expect(first?.headers).toMatchObject({ 'content-encoding': 'gzip', 'content-type': 'application/json' });
  expect((JSON.parse(first?.body ?? '') as Item[]).map(({ entityId }) => entityId)).toEqual(named('packed', 3));
  expect([again?.body, again?.headers['idempotency-key']]).toEqual([first?.body, first?.headers['idempotency-key']]);
});

test('a failure blocks: the same batch comes again under the same key, and nothing behind it before', async () => {
  let failures = 2;
  receiver.answer = (_received, response) => void response.writeHead(failures-- > 0 ? 500 : 204).end();
  const id = await make({ maxChanges: 3 });
  await recordUpdates(server, 'acme', named('failing', 3));
  await eventually(() => acme.get(id)).toMatchObject({ state: 'retrying', pending: 3 });
  // What arrives until then changes neither the batch nor its key.
  await recordUpdates(server, 'acme', named('behind', 2));
  for (let attempt = 0; attempt < 2; attempt++) {
    await eventually(() => receiver.received.length).toBe(attempt + 1);
    await acme.call('POST', `/${id}/resume`);
  }
  await eventually(() => acme.counts(id)).toMatchObject({ matched: 5, delivered: 5, isWhole: true });
  expect((await acme.get(id)).state).toBe('active');
  const bodies = receiver.received.map(({ body }) => body);
  expect(new Set(bodies.slice(0, 3)).size).toBe(1);
  expect(new Set(receiver.received.slice(0, 3).map(({ headers }) => headers['idempotency-key'])).size).toBe(1);
  expect(receiver.received.map(itemsOf)[3]?.map(({ entityId }) => entityId)).toEqual(named('behind', 2));
});

test('a replay sends the changes of a range once more, in batches of its own', async () => {
  const id = await make();
  const { cursor } = await acme.get(id);
  await recordUpdates(server, 'acme', named('replayed', 4));
  await eventually(() => acme.counts(id)).toMatchObject({ delivered: 4 });
  expect(await acme.call('POST', `/${id}/replay`, { from: cursor })).toMatchObject({ status: 204 });
  await eventually(() => acme.counts(id)).toMatchObject({ matched: 8, delivered: 8, isWhole: true });
  expect(await acme.get(id)).not.toHaveProperty('replay');
  expect(receiver.received.map(itemsOf).flatMap((items) => items.map(({ entityId }) => entityId))).toEqual([
    ...named('replayed', 4),
    ...named('replayed', 4),
  ]);
});

test('a batch that is not full waits for its seconds, and a full one does not', async () => {
  const id = await make({ maxChanges: 3, maxSeconds: 3_600 });
  await recordUpdates(server, 'acme', named('waiting', 2));
  const states = server.context.db.selectFrom('subscription_state').select('rest_until').where('subscription', '=', id);
  await eventually(async () => await states.execute()).toEqual([{ rest_until: expect.any(Date) }]);
  expect(receiver.received).toEqual([]);
  await recordUpdates(server, 'acme', named('full', 1));
  await eventually(() => acme.counts(id)).toMatchObject({ matched: 3, delivered: 3 });
  expect(receiver.received).toHaveLength(1);
});

test.each([
  [{ type: 'http', url: 'ftp://x.example' }, 'target.url'],
  [{ type: 'http', url: 'https://x.example', headers: { 'Idempotency-Key': '1' } }, 'target.headers.Idempotency-Key'],
  [
    { type: 's3', region: 'r', bucket: 'bbb', accessKeyId: 'a', secretAccessKey: 's', prefix: '../x/' },
    'target.prefix',
  ],
  [{ type: 'http', url: 'https://x.example', maxChanges: 10_001 }, 'target.maxChanges'],
  [{ type: 'email', to: 'a@b.example, c@d.example' }, 'target.to'],
])('%j is refused', async (target, field) => {
  const { status, body } = await acme.call<{ details: object[] }>('POST', '', { name: 'Wrong', target });
  // The message is for people and must not quote a pattern.
  const message = expect.not.stringContaining('pattern');
  expect({ status, details: body.details }).toEqual({ status: 400, details: [{ field, message }] });
});

test.each(['.', '..'])('the id %j is refused: a path of a bucket could not hold it', async (id) => {
  const target = { type: 'http', url: receiver.url };
  expect(await acme.call('POST', '', { name: 'Dots', id, target })).toMatchObject({ status: 400 });
  const made = await acme.call('POST', '', { name: 'Dots', id: `.${id}.`, target });
  expect(made).toMatchObject({ status: 201 });
  await acme.call('DELETE', `/.${id}.`);
});
