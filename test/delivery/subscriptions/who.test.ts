import { beforeEach, expect, test } from 'vitest';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { changeOf } from '../../support/server/history.ts';
import { eventually } from '../../support/server/patience.ts';
import { startTestServer } from '../../support/server/server.ts';
import { subscriptionsOf } from '../../support/server/subscriptions.ts';
import { startReceiver } from '../../support/vendor/receiver.ts';

const server = closeAfterAll(await startTestServer({ environment: { ANNALS_DELIVERY_ALLOW: 'acme=127.0.0.0/8' } }));
const delivering = 'changelog.subscription_manage';
const token = await server.token('acme', { scope: `${delivering} changelog.changelog_manage` });
const acme = subscriptionsOf(server, 'acme', token);
const receiver = closeAfterAll(await startReceiver());
const record = createRecorder(server.context.db, 'acme', () => Date.now());

const who = {
  actor: 'Jane Doe',
  actorId: 'u-17',
  onBehalfOf: { name: 'Acme Ltd', id: 'c-1' },
  correlationId: 'req-1',
};

let order = 0;
async function recordOrder(context = '{"ip":"203.0.113.7"}'): Promise<void> {
  order += 1;
  const change = changeOf({ at: Date.now(), entity: 'order', entityId: `o-${order}`, context, ...who });
  expect(await record([change])).toEqual(['recorded']);
}

beforeEach(() => {
  receiver.received.length = 0;
});

function membersOf(text: string) {
  const parsed = JSON.parse(text) as Record<string, unknown>;
  const { actor, actorId, onBehalfOf, correlationId } = (parsed.data ?? parsed) as Record<string, unknown>;
  return JSON.parse(JSON.stringify({ actor, actorId, onBehalfOf, correlationId })) as unknown;
}

test.each([
  ['webhook', undefined, { actor: 'Jane Doe' }],
  ['webhook', true, { actor: 'Jane Doe' }],
  ['webhook', 'names', { actor: 'Jane Doe' }],
  ['webhook', false, {}],
  ['webhook', 'all', who],
  ['http', undefined, { actor: 'Jane Doe' }],
  ['http', 'all', who],
] as const)(
  'a %s of a subscription with actors: %s shows of who made a change no more than that, replays too',
  async (type, actors, shown) => {
    const url = `${receiver.url}/${type}`;
    const target = type === 'http' ? { type, url, maxSeconds: 0 } : { type, url };
    const { id } = await acme.make({ q: 'entity:order', target, ...(actors !== undefined && { actors }) });
    const stored = (await acme.get(id)) as unknown as Record<string, unknown>;
    const meant = actors === 'names' ? true : actors;
    expect(stored.actors).toBe(meant);
    await recordOrder();
    await eventually(() => acme.counts(id)).toMatchObject({ delivered: 1, isWhole: true });
    const from = new Date(Date.now() - 60_000).toISOString();
    expect((await acme.call('POST', `/${id}/replay`, { from })).status).toBe(204);
    await eventually(async () => (await acme.counts(id)).delivered).toBeGreaterThan(1);
    const bodies = receiver.received.flatMap(({ body }) => body.trim().split('\n'));
    expect(bodies.length).toBeGreaterThan(1);
    for (const body of bodies) expect(membersOf(body)).toEqual(shown);
    // What GET answers may be sent back.
    expect((await acme.call('PUT', `/${id}`, stored)).status).toBe(204);
    expect(await acme.get(id)).toMatchObject(meant === undefined ? {} : { actors: meant });
    const preview = await acme.call<{ items: object[] }>('GET', `/${id}/preview`);
    expect(membersOf(JSON.stringify(preview.body.items.at(-1)))).toEqual(shown);
    await acme.call('DELETE', `/${id}`);
  },
);

test.each(['actorId:u-17', 'onBehalfOf:exists', 'onBehalfOfId:c-1', 'correlationId:req-1'])(
  'a query with %s needs actors: all, when it is made and when it is changed',
  async (q) => {
    const target = { type: 'webhook', url: receiver.url };
    const refused = await acme.call('POST', '', { name: 'x', q, target });
    expect(refused).toMatchObject({ status: 400 });
    expect(JSON.stringify(refused.body)).toContain('this subscription does not show more of actors than their names');
    const { id } = await acme.make({ q, actors: 'all', target });
    await recordOrder();
    await eventually(() => acme.counts(id)).toMatchObject({ delivered: 1, isWhole: true });
    const { actors: _all, ...names } = (await acme.get(id)) as unknown as Record<string, unknown>;
    expect((await acme.call('PUT', `/${id}`, names)).status).toBe(400);
    await acme.call('DELETE', `/${id}`);
  },
);

test('a term on the actor needs a subscription that shows actors', async () => {
  const body = { name: 'x', q: 'actor:Jane Doe', actors: false, target: { type: 'webhook', url: receiver.url } };
  const refused = await acme.call('POST', '', body);
  expect([refused.status, JSON.stringify(refused.body)]).toEqual([
    400,
    expect.stringContaining('does not show actors'),
  ]);
  const wrong = await acme.call('POST', '', { ...body, actors: 'none' });
  expect([wrong.status, JSON.stringify(wrong.body)]).toEqual([
    400,
    expect.stringContaining('must be false, \\"names\\", true or'),
  ]);
});

test('a query on contexts needs a maker who may read them, and pauses when the maker no longer may', async () => {
  const target = { type: 'webhook', url: receiver.url };
  const q = 'context.ip:203.0.113.7';
  const client = await server.createClient('acme', { scope: `${delivering} changelog.changelog_read` });
  const reader = subscriptionsOf(server, 'acme', await server.tokenOf(client));
  expect((await reader.call('POST', '', { name: 'x', q, target })).status).toBe(403);
  const { id } = await acme.make({ q, target });
  expect((await reader.call('GET', `/${id}/preview`)).status).toBe(403);
  expect((await reader.call('PUT', `/${id}`, await acme.get(id))).status).toBe(403);
  await recordOrder();
  await recordOrder('{"ip":"203.0.113.8"}');
  await eventually(() => acme.counts(id)).toMatchObject({ matched: 1, delivered: 1, isWhole: true });

  // One without such a term runs on.
  const other = await reader.make({ q: 'entity:order', target });
  await server.database.pool.query('update subscription set maker = $1 where id = $2', [client.clientId, id]);
  await eventually(async () => (await acme.get(id)).reason).toBe('maker');
  await recordOrder();
  await eventually(() => acme.counts(other.id)).toMatchObject({ delivered: 1 });
  expect(await acme.get(id)).toMatchObject({ state: 'paused', delivered: 1 });
  expect((await acme.call('PUT', `/${id}`, await acme.get(id))).status).toBe(204);
  await eventually(() => acme.counts(id)).toMatchObject({ delivered: 2, isWhole: true });
  await acme.call('DELETE', `/${id}`);
  await acme.call('DELETE', `/${other.id}`);
});

test('the feed shows readers without a restriction all of who made a change, and finds by it', async () => {
  await recordOrder();
  const parameters = new URLSearchParams({ q: 'actorId:u-17 context.ip:203.0.113.7', after: 'start', limit: '1000' });
  const answer = await server.call(`/changelog/acme/feed?${parameters}`, { token });
  const { items } = (await answer.json()) as { items: object[] };
  expect(membersOf(JSON.stringify(items.at(-1)))).toEqual(who);
  const reader = await server.token('acme', { scope: 'changelog.changelog_read' });
  expect((await server.call(`/changelog/acme/feed?${parameters}`, { token: reader })).status).toBe(403);
  parameters.set('q', 'correlationId:req-1');
  expect((await server.call(`/changelog/acme/feed?${parameters}`, { token: reader })).status).toBe(200);
});
