import { beforeEach, expect, test } from 'vitest';
import { createSealer } from '../../../src/core/sealing.ts';
import { eraseSubject } from '../../../src/history/erasure/erase.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { eventually } from '../../support/server/patience.ts';
import { startTestServer } from '../../support/server/server.ts';
import { recordUpdates, subscriptionsOf, verified } from '../../support/server/subscriptions.ts';
import { startReceiver } from '../../support/vendor/receiver.ts';

const server = closeAfterAll(await startTestServer({ environment: { ANNALS_DELIVERY_ALLOW: 'acme=127.0.0.0/8' } }));
const token = await server.token('acme', { name: 'Jane' });
const receiver = closeAfterAll(await startReceiver());

beforeEach(() => {
  receiver.received.length = 0;
});

test('each change is delivered once, in the order of its document, and the receiver can check who sent it', async () => {
  const acme = subscriptionsOf(server, 'acme', token);
  const { id, secret } = await acme.make({ q: 'entity:product', target: { type: 'webhook', url: receiver.url } });
  const documents = Array.from({ length: 60 }, (_, index) => `p${index % 7}`);
  for (let first = 0; first < documents.length; first += 10) {
    await recordUpdates(server, 'acme', documents.slice(first, first + 10));
  }
  await eventually(() => acme.counts(id)).toMatchObject({ matched: 60, delivered: 60, isWhole: true });
  const bodies = receiver.received.map((one) => verified(one, secret));
  expect(bodies.map(({ data }) => data.entityId).sort()).toEqual([...documents].sort());
  expect(receiver.received[0]?.body).toContain('"after":1.20');
  expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size).toBe(60);
});

test('a webhook is not sent its own creation, and a batch is, as an archive has every change', async () => {
  const acme = subscriptionsOf(server, 'acme', token);
  const q = 'entity:changelog-subscription';
  const webhook = await acme.make({ id: 'own', q, target: { type: 'webhook', url: `${receiver.url}/own` } });
  const batch = await acme.make({ id: 'all', q, target: { type: 'http', url: `${receiver.url}/all`, maxSeconds: 0 } });
  // The batch may begin before the position of the creation of the webhook, which is given after its commit.
  const sent = () =>
    receiver.received.flatMap(({ path, body }) =>
      [...body.matchAll(/"entity":"changelog-subscription","entityId":"(\w+)"/g)].map(([, id]) => `${path} ${id}`),
    );
  await eventually(sent).toEqual(expect.arrayContaining(['/hook/all all', '/hook/own all']));
  await eventually(() => acme.counts(webhook.id)).toMatchObject({ matched: 1, delivered: 1 });
  expect(sent()).not.toContain('/hook/own own');
  for (const { id } of [webhook, batch]) await acme.call('DELETE', `/${id}`);
});

test('what an attempt sent is shown again without secrets, with the masks and erasures of today', async () => {
  const acme = subscriptionsOf(server, 'acme', token);
  const target = { type: 'webhook', url: receiver.url, headers: { Authorization: 'Bearer hunter2' } };
  const { id } = await acme.make({ q: 'entity:product', target });
  await recordUpdates(server, 'acme', ['shown'], { paths: '{"card":{"after":4111.10},"note":{"after":"long 1.0"}}' });
  const attempts = async () => (await acme.call<{ id: string; kind: string }[]>('GET', `/${id}/attempts`)).body;
  await eventually(attempts).toHaveLength(1);
  const [{ id: attempt } = { id: '' }] = await attempts();
  const path = `/${id}/attempts/${attempt}/request`;
  const [sent] = receiver.received;
  const shown = (await acme.call<{ headers: Record<string, string>; body: string }>('GET', path)).body;
  expect(shown).toMatchObject({ method: 'POST', url: receiver.url, body: sent?.body });
  const { 'webhook-signature': signature, authorization: _secret, ...open } = sent?.headers ?? {};
  expect(signature).toMatch(/^v1,/);
  expect(shown.headers).toEqual({
    Authorization: '********',
    'webhook-signature': '********',
    ...Object.fromEntries(
      ['user-agent', 'content-type', 'webhook-id', 'webhook-timestamp'].map((name) => [name, open[name]]),
    ),
  });

  // Who may not read the history sees none of it, and an attempt belongs to its subscription and tenant.
  const blind = await server.token('acme', { scope: 'changelog.subscription_read changelog.subscription_manage' });
  expect((await acme.call('GET', path, undefined, blind)).status).toBe(403);
  const other = await acme.make({ q: 'entity:none', target: { type: 'http', url: receiver.url } });
  expect((await acme.call('GET', `/${other.id}/attempts/1/request`)).status).toBe(409);
  for (const missing of ['2', '999999999999999']) {
    expect((await acme.call('GET', `/${id}/attempts/${missing}/request`)).status).toBe(404);
  }
  expect((await acme.call('GET', `/${id}/attempts/01/request`)).status).toBe(400);
  const foreign = subscriptionsOf(server, 'globex', await server.token('globex'));
  expect((await foreign.call('GET', path)).status).toBe(404);

  // The test says what it sent as well.
  const tested = (await acme.call<{ request: { body: string } }>('POST', `/${id}/test`)).body;
  expect(receiver.received.map(({ body }) => body)).toContain(tested.request.body);
  expect(JSON.stringify(tested)).not.toContain('hunter2');
  const sample = (await attempts()).find(({ kind }) => kind === 'test');
  expect((await acme.call('GET', `/${id}/attempts/${sample?.id}/request`)).body).toMatchObject({
    headers: { 'webhook-id': 'test_…' },
    body: expect.stringContaining('A sample of Annals'),
  });

  const masked = { name: 'Masked', q: 'entity:product', hide: ['card'], actors: false };
  await acme.call('PUT', `/${id}`, { ...masked, target: { ...target, headers: { Authorization: '********' } } });
  const { body: again } = (await acme.call<{ body: string }>('GET', path)).body;
  expect(JSON.parse(again).data).toMatchObject({ paths: { card: { after: '********' }, note: { after: 'long 1.0' } } });
  expect(JSON.parse(again).data).not.toHaveProperty('actor');
  const { db } = server.context;
  const sealer = createSealer([Buffer.alloc(32, 7)]);
  const subject = { entity: 'product', entityId: 'shown', paths: [] };
  const erasure = { db, sealer, tenant: 'acme', subject, reason: 'law', now: () => Date.now() } as const;
  await eraseSubject({ ...erasure, rest: async () => {} });
  const { body: erased } = (await acme.call<{ body: string }>('GET', path)).body;
  expect(JSON.parse(erased).data).toMatchObject({ paths: {}, erased: ['entityId', 'paths.card', 'paths.note'] });
  expect(erased).not.toMatch(/long|shown/);
  for (const made of [id, other.id]) await acme.call('DELETE', `/${made}`);
});

test('receivers get the positions of erased changes, and the erasure lists the subscriptions that cannot be notified', async () => {
  const acme = subscriptionsOf(server, 'acme', token);
  const q = 'entity:product entityId:erased-one';
  const webhook = (path: string) => ({ type: 'webhook', url: `${receiver.url}${path}` });
  const { id, secret } = await acme.make({ q, target: webhook('/each') });
  const batches = await acme.make({ q, target: { type: 'http', url: `${receiver.url}/batch`, maxSeconds: 0 } });
  const unrelated = await acme.make({ q: 'entity:none', target: webhook('/other') });
  const paused = await acme.make({ q, name: 'Stopped', target: webhook('/stopped') });
  await recordUpdates(server, 'acme', ['erased-one', 'kept', 'erased-one']);
  for (const subscription of [id, batches.id, paused.id])
    await eventually(() => acme.counts(subscription)).toMatchObject({ delivered: 2, isWhole: true });
  await acme.call('POST', `/${paused.id}/pause`);
  const positions = receiver.received
    .filter(({ path }) => path.endsWith('/batch'))
    .flatMap(({ body }) => body.trim().split('\n'))
    .map((line) => (JSON.parse(line) as { position: number }).position);
  receiver.received.length = 0;
  const { db } = server.context;
  const sealer = createSealer([Buffer.alloc(32, 7)]);
  const subject = { entity: 'product', entityId: 'erased-one', paths: [] };
  const options = { db, sealer, tenant: 'acme', subject, reason: 'law', now: () => Date.now() } as const;
  const { untold } = await eraseSubject({ ...options, rest: async () => {} });
  expect(untold).toEqual([{ id: paused.id, name: 'Stopped', target: 'webhook', state: 'paused' }]);
  await eventually(() => acme.counts(id)).toMatchObject({ delivered: 3, isWhole: true });
  await eventually(() => acme.counts(batches.id)).toMatchObject({ delivered: 3, isWhole: true });
  await eventually(() => acme.counts(unrelated.id)).toMatchObject({ delivered: 1, isWhole: true });
  await acme.call('POST', `/${paused.id}/resume`);
  await eventually(() => acme.counts(paused.id)).toMatchObject({ delivered: 3, isWhole: true });
  const [first = 0, last = 0] = positions;
  // Just before them three of the four subscriptions were created with the id in their query: their entries are erased
  // as well.
  const ranges = [
    [first - 4, first - 3],
    [first - 1, first],
    [last, last],
  ];
  const erased = { type: 'erased', at: expect.any(String), positions: ranges };
  const item = { ...erased, position: last + 1, cursor: expect.any(String) };
  const [notice] = receiver.received.filter(({ path }) => path.endsWith('/each'));
  expect(notice && verified(notice, secret)).toEqual({
    type: 'change.erased',
    timestamp: expect.any(String),
    data: item,
  });
  const [batch] = receiver.received.filter(({ path }) => path.endsWith('/batch'));
  expect(JSON.parse(batch?.body ?? '')).toEqual(item);
  expect(receiver.received.map(({ body }) => body).join()).not.toContain('erased-one');
});
