import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { revokeClient } from '../../../src/access/oauth/clients.ts';
import { pauseAll } from '../../../src/delivery/subscriptions/pause-all.ts';
import { maxSubscriptions } from '../../../src/delivery/subscriptions/schemas.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { eventually } from '../../support/server/patience.ts';
import { historyOf } from '../../support/server/schema-client.ts';
import { startTestServer } from '../../support/server/server.ts';
import { statementsWaiting } from '../../support/server/statements-waiting.ts';
import { recordUpdates, subscriptionsOf } from '../../support/server/subscriptions.ts';
import { startReceiver } from '../../support/vendor/receiver.ts';

const server = closeAfterAll(await startTestServer({ environment: { ANNALS_DELIVERY_ALLOW: 'acme=127.0.0.0/8' } }));
const token = await server.token('acme', { name: 'Jane' });
const acme = subscriptionsOf(server, 'acme', token);
const receiver = closeAfterAll(await startReceiver());

const webhook = (more: object = {}) => ({ type: 'webhook', url: 'https://erp.example.com/changes', ...more });
const mask = '********';
const fieldsOf = ({ body }: { body: unknown }) =>
  ((body as { details?: { field: string; message: string }[] }).details ?? []).map(({ field }) => field);

test('a subscription is made with its defaults, shown without its secrets, replaced and deleted', async () => {
  const made = await acme.call('POST', '', {
    id: 'one',
    name: 'One',
    target: webhook({ headers: { 'X-Key': 'hush' } }),
  });
  expect([made.status, made.body]).toEqual([
    201,
    { id: 'one', secret: expect.stringMatching(/^whsec_[A-Za-z0-9+/]{43}=$/) },
  ]);
  expect(made.headers.get('location')).toBe('/changelog/acme/subscriptions/one');
  const shown = await acme.get('one');
  expect(shown).toMatchObject({
    ...{ id: 'one', name: 'One', enabled: true, q: '', from: 'now', maxAge: 'P1D', state: 'active' },
    target: { ...webhook(), signing: 'hmac', headers: { 'X-Key': mask } },
    ...{ pending: 0, parked: 0, skipped: 0, matched: 0 },
    metadata: { version: 1 },
  });
  expect(JSON.stringify(shown)).not.toMatch(/hush|whsec_/);
  for (const path of ['/one', '']) {
    const text = await (await server.call(`/changelog/acme/subscriptions${path}`, { token })).text();
    expect(text).toBe(JSON.stringify(JSON.parse(text)));
  }
  // What GET answers may be sent back, masks too.
  expect((await acme.call('PUT', '/one', { ...shown, name: 'Two' })).status).toBe(204);
  expect(await acme.get('one')).toMatchObject({ name: 'Two', metadata: { version: 2 } });
  expect((await acme.call('PUT', '/one', { ...shown, metadata: { version: 1 } })).status).toBe(409);
  expect((await acme.call('DELETE', '/one')).status).toBe(204);
  for (const [method, path] of [
    ['GET', ''],
    ['DELETE', ''],
    ['POST', '/pause'],
    ['POST', '/test'],
    ['GET', '/attempts'],
    ['GET', '/preview'],
  ] as const) {
    expect((await acme.call(method, `/one${path}`)).status).toBe(404);
  }
  expect((await acme.call('PUT', '/one', { name: 'x', target: webhook() })).status).toBe(404);
});

test('its changes are in the history, masked, and its delivery state is not', async () => {
  await acme.make({ id: 'told', target: webhook({ headers: { 'X-Key': 'hush' } }) });
  const shown = await acme.get('told');
  const headers = { 'X-Key': 'hush, hush' };
  await acme.call('PUT', '/told', { ...shown, target: webhook({ headers }) });
  await acme.call('POST', '/told/rotate');
  await acme.call('POST', '/told/pause');
  await acme.call('POST', '/told/resume');
  await acme.call('DELETE', '/told');
  const { items } = await historyOf(server, {
    tenant: 'acme',
    token,
    q: 'entity:changelog-subscription entityId:told',
  });
  expect(items.map(({ type }) => type)).toEqual(['delete', 'update', 'update', 'create']);
  expect(items[2]).toMatchObject({ paths: { 'target.headers.X-Key': { before: mask, after: mask } } });
  expect(items[1]).toMatchObject({ paths: { 'target.secret': { before: mask, after: mask } } });
  expect(JSON.stringify(items)).not.toMatch(/hush|whsec_|cursor|state/);
  expect(server.logLines.join()).not.toMatch(/hush|whsec_/);
});

test('for another host the values of headers have to be re-entered', async () => {
  await acme.make({ id: 'host', target: webhook({ headers: { 'X-Key': 'hush' } }) });
  const put = (url: string, value: string) =>
    acme.call('PUT', '/host', { name: 'x', target: webhook({ url, headers: { 'X-Key': value } }) });
  expect((await put('https://erp.example.com/other', mask)).status).toBe(204);
  const elsewhere = await put('https://evil.example.com/changes', mask);
  expect([elsewhere.status, fieldsOf(elsewhere)]).toEqual([400, ['target.headers.X-Key']]);
  expect((await put('https://erp.example.com:8443/changes', mask)).status).toBe(400);
  expect((await put('https://evil.example.com/changes', 'hush again')).status).toBe(204);
  expect((await acme.call('POST', '', { name: 'x', target: webhook({ headers: { 'X-Key': mask } }) })).status).toBe(
    400,
  );
  await acme.call('DELETE', '/host');
});

test.each<[object, string]>([
  [{ target: webhook({ url: 'ftp://erp.example.com/' }) }, 'target.url'],
  [{ target: webhook({ url: 'https://user:pw@erp.example.com/' }) }, 'target.url'],
  [{ target: webhook({ url: 'not a URL' }) }, 'target.url'],
  [{ target: webhook({ concurrency: 9 }) }, 'target.concurrency'],
  [{ target: webhook({ signing: 'rsa' }) }, 'target.signing'],
  [{ target: webhook({ secret: 'mine' }) }, 'target.secret'],
  [{ target: webhook({ type: 'pigeon' }) }, 'target.type'],
  ...[
    'Host',
    'content-length',
    'Transfer-Encoding',
    'webhook-id',
    'Webhook-Signature',
    'Connection',
    'proxy-authorization',
    'a b',
  ].map((name): [object, string] => [{ target: webhook({ headers: { [name]: 'x' } }) }, `target.headers.${name}`]),
  [{ target: webhook({ headers: { 'X-A': 'line\nbreak' } }) }, 'target.headers.X-A'],
  [{ target: webhook(), maxAge: 'P1M' }, 'maxAge'],
  [{ target: webhook(), maxAge: 'P' }, 'maxAge'],
  [{ target: webhook(), q: 'entity:' }, 'q'],
  [{ target: webhook(), from: 'yesterday' }, 'from'],
  [{ target: webhook(), hide: [''] }, 'hide.0'],
  [{ target: webhook(), other: 1 }, 'other'],
])('%j is refused for its %s', async (body, field) => {
  const answer = await acme.call('POST', '', { name: 'Wrong', ...body });
  expect([answer.status, fieldsOf(answer)]).toEqual([400, [field]]);
});

test('plain HTTP is for tenants whose private addresses the operator allows', async () => {
  const globex = subscriptionsOf(server, 'globex', await server.token('globex'));
  const plain = { name: 'x', target: webhook({ url: 'http://erp.example.com/' }) };
  expect((await globex.call('POST', '', plain)).status).toBe(400);
  const { id } = await acme.make(plain);
  await acme.call('DELETE', `/${id}`);
});

test('to read takes a scope, to write another one, and to make or resume one also a scope that reads the history', async () => {
  const as = async (scope: string) => subscriptionsOf(server, 'acme', await server.token('acme', { scope }));
  const reader = await as('changelog.subscription_read');
  const manager = await as('changelog.subscription_manage');
  const historian = await as('changelog.changelog_manage');
  const { id } = await acme.make({ target: webhook() });
  expect((await reader.call('GET', `/${id}`)).status).toBe(200);
  expect((await manager.call('GET', '')).status).toBe(200);
  expect((await historian.call('GET', '')).status).toBe(403);
  const body = { name: 'x', target: webhook() };
  for (const caller of [reader, manager, historian]) expect((await caller.call('POST', '', body)).status).toBe(403);
  expect((await reader.call('POST', `/${id}/pause`)).status).toBe(403);
  expect((await manager.call('POST', `/${id}/pause`)).status).toBe(204);
  for (const [path, sent] of [
    ['/resume', {}],
    ['/replay', { parked: true }],
  ] as const) {
    expect((await manager.call('POST', `/${id}${path}`, sent)).status).toBe(403);
  }
  expect((await manager.call('PUT', `/${id}`, body)).status).toBe(403);
  expect((await manager.call('GET', `/${id}/preview`)).status).toBe(403);
  await acme.call('DELETE', `/${id}`);
});

test('a tenant has at most 50, and the 51st is refused', async () => {
  const full = subscriptionsOf(server, 'full', await server.token('full'));
  await full.make({ id: 'copy0', enabled: false, target: webhook() });
  for (const table of ['subscription', 'subscription_state']) {
    await server.database.pool.query(
      `insert into ${table} select copy.* from ${table} made, generate_series(1, $1::integer) n,
         jsonb_populate_record(made, replace(to_jsonb(made)::text, 'copy0', 'copy' || n)::jsonb) copy
         where made.tenant = 'full'`,
      [maxSubscriptions - 2],
    );
  }
  await full.make({ id: 'last', enabled: false, target: webhook() });
  expect((await full.call('POST', '', { name: 'x', target: webhook() })).status).toBe(400);
  const page = await full.call<{ id: string }[]>('GET', '?q=state:paused&pageSize=3&sort=_id:DESC');
  expect(page.body.map(({ id }) => id)).toEqual(['last', 'copy9', 'copy8']);
});

test('when its maker is revoked it is paused, and another client takes it over at its position', async () => {
  const client = await server.createClient('acme', { name: 'Maker' });
  const maker = subscriptionsOf(server, 'acme', await server.tokenOf(client));
  const { id } = await maker.make({ q: 'entity:product', target: webhook({ url: receiver.url }) });
  expect(await acme.get(id)).toMatchObject({ maker: client.clientId, makerName: client.name });
  const { body: named } = await acme.call<{ id: string }[]>(
    'GET',
    `?q=${encodeURIComponent(`makerName:"${client.name}"`)}`,
  );
  expect(named.map((one) => one.id)).toContain(id);
  await recordUpdates(server, 'acme', ['before']);
  await eventually(() => acme.counts(id)).toMatchObject({ delivered: 1 });
  await revokeClient(server.context.db, client.clientId);
  await eventually(async () => (await acme.get(id)).reason).toBe('maker');
  await recordUpdates(server, 'acme', ['meanwhile']);
  expect((await acme.call('POST', `/${id}/resume`)).status).toBe(409);
  expect((await acme.call('PUT', `/${id}`, await acme.get(id))).status).toBe(204);
  await eventually(() => acme.counts(id)).toMatchObject({ delivered: 2, isWhole: true });
  expect(receiver.received).toHaveLength(2);
  await acme.call('DELETE', `/${id}`);
});

test('a disabled or paused subscription delivers nothing, and then resumes where it stopped', async () => {
  receiver.received.length = 0;
  const { id } = await acme.make({ q: 'entity:product', enabled: false, target: webhook({ url: receiver.url }) });
  expect(await acme.get(id)).toMatchObject({ state: 'paused', reason: 'disabled' });
  await recordUpdates(server, 'acme', ['a']);
  expect((await acme.call('POST', `/${id}/resume`)).status).toBe(409);
  await acme.call('PUT', `/${id}`, { ...(await acme.get(id)), enabled: true });
  await eventually(() => acme.counts(id)).toMatchObject({ delivered: 1 });
  await acme.call('POST', `/${id}/pause`);
  await recordUpdates(server, 'acme', ['b']);
  expect(await acme.get(id)).toMatchObject({ state: 'paused', reason: 'client', delivered: 1 });
  await acme.call('POST', `/${id}/resume`);
  await eventually(() => acme.counts(id)).toMatchObject({ delivered: 2, isWhole: true });
  await acme.call('DELETE', `/${id}`);
});

test('a replay delivers once more what lies between, beside the live changes, with the ids of the first time', async () => {
  receiver.received.length = 0;
  // Others where the test is repeated.
  const own = `r${randomUUID()}-`;
  const [first, second, third] = [`${own}1`, `${own}2`, `${own}3`] as const;
  await recordUpdates(server, 'acme', [first, second]);
  const { id } = await acme.make({
    q: `entity:product entityId:${own}*`,
    from: 'start',
    target: webhook({ url: receiver.url }),
  });
  await eventually(() => acme.counts(id)).toMatchObject({ delivered: 2 });
  const { cursor } = await acme.get(id);
  await recordUpdates(server, 'acme', [third]);
  await eventually(() => acme.counts(id)).toMatchObject({ delivered: 3 });
  expect((await acme.call('POST', `/${id}/replay`, { from: 'start', to: cursor })).status).toBe(204);
  await eventually(() => acme.counts(id)).toMatchObject({ matched: 5, delivered: 5, isWhole: true });
  const idsOf = (document: string) =>
    receiver.received.filter(({ body }) => body.includes(`"${document}"`)).map(({ headers }) => headers['webhook-id']);
  for (const document of [first, second]) {
    expect(idsOf(document)).toHaveLength(2);
    expect(new Set(idsOf(document)).size).toBe(1);
  }
  expect(idsOf(third)).toHaveLength(1);
  const since = new Date(Date.now() - 60_000).toISOString();
  // The one before may have delivered all, and not have ended yet.
  await eventually(async () => (await acme.call('POST', `/${id}/replay`, { from: since })).status).toBe(204);
  await eventually(() => acme.counts(id)).toMatchObject({ delivered: 8, isWhole: true });
  await acme.call('POST', `/${id}/pause`);
  expect((await acme.call('POST', `/${id}/replay`, { from: 'start' })).status).toBe(204);
  expect((await acme.call('POST', `/${id}/replay`, { from: 'start' })).status).toBe(409);
  expect((await acme.get(id)).replay).toMatchObject({ left: expect.any(Number) });
  const backwards = [
    { from: 'now', to: 'start' },
    { from: '2026-11-02T00:00:00Z', to: '2026-11-01T00:00:00Z' },
  ];
  for (const body of [
    {},
    { parked: true, from: 'start' },
    { from: 'never' },
    { from: 'start', to: 'AAAA' },
    ...backwards,
  ]) {
    expect((await acme.call('POST', `/${id}/replay`, body)).status).toBe(400);
  }
  const noDate = await acme.call('POST', `/${id}/replay`, { from: '2026-11-31T00:00:00Z' });
  expect(noDate.body).toMatchObject({
    details: [{ field: 'from', message: expect.stringContaining('a date that exists') }],
  });
  await acme.call('DELETE', `/${id}`);
});

test('a sample says that it is one, and both keys sign for a day after a rotation', async () => {
  receiver.received.length = 0;
  // What other tests have recorded may get its position only now.
  const { id, secret } = await acme.make({ q: 'entity:none', target: webhook({ url: receiver.url }) });
  const rotated = await acme.call<{ secret: string }>('POST', `/${id}/rotate`);
  expect(rotated.body.secret).not.toBe(secret);
  expect((await acme.call('POST', `/${id}/test`)).body).toMatchObject({ outcome: 'delivered', status: 204 });
  const [sample] = receiver.received;
  expect(JSON.parse(sample?.body ?? '')).toMatchObject({ type: 'test', data: { test: true } });
  expect(String(sample?.headers['webhook-signature']).split(' ')).toHaveLength(2);
  const { body: attempts } = await acme.call<{ kind: string }[]>('GET', `/${id}/attempts`);
  expect(attempts).toMatchObject([{ kind: 'test', outcome: 'delivered' }]);
  const { answer } = receiver;
  receiver.answer = (_received, response) => void response.writeHead(429, { 'retry-after': '7' }).end();
  const refused = { outcome: 'failed', status: 429, error: 'The target answered 429.' };
  expect((await acme.call('POST', `/${id}/test`)).body).toMatchObject(refused);
  receiver.answer = answer;
  await acme.call('DELETE', `/${id}`);
});

test('Ed25519: the public key can be read at any time', async () => {
  const { id, publicKey, secret } = await acme.make({ target: webhook({ signing: 'ed25519' }) });
  expect([publicKey, secret]).toEqual([expect.stringMatching(/^whpk_/), undefined]);
  expect(await acme.get(id)).toMatchObject({ target: { publicKey } });
  const { body } = await acme.call<{ publicKey: string }>('POST', `/${id}/rotate`);
  expect(await acme.get(id)).toMatchObject({ target: { publicKey: body.publicKey } });
  await acme.call('DELETE', `/${id}`);
});

test('a position that no longer exists pauses the subscription, which says so and resumes from the requested position', async () => {
  receiver.received.length = 0;
  const { id } = await acme.make({ q: 'entity:product', target: webhook({ url: receiver.url }) });
  await acme.call('POST', `/${id}/pause`);
  await server.database.pool.query(
    'update subscription_state set fingerprint = fingerprint + 1 where subscription = $1',
    [id],
  );
  await recordUpdates(server, 'acme', ['lost']);
  await acme.call('POST', `/${id}/resume`);
  await eventually(async () => (await acme.get(id)).reason).toBe('restored');
  expect((await acme.get(id)).lastError?.message).toContain('was restored');
  expect((await acme.call('POST', `/${id}/resume`)).status).toBe(409);
  // The bounds of a batch mean nothing there either.
  const { pool } = server.database;
  await pool.query(
    `insert into delivery_batch (tenant, subscription, kind, position, fingerprint, until, first, last, changes, key, begun_at, due_at)
       values ('acme', $1, 'live', 0, 0, 1, 1, 1, 1, gen_random_uuid(), now(), now())`,
    [id],
  );
  expect((await acme.call('POST', `/${id}/resume`, { from: 'now' })).status).toBe(204);
  expect((await pool.query('select from delivery_batch where subscription = $1', [id])).rowCount).toBe(0);
  await recordUpdates(server, 'acme', ['found']);
  await eventually(() => acme.counts(id)).toMatchObject({ delivered: 1 });
  expect((await acme.call('POST', `/${id}/resume`, { from: 'now' })).status).toBe(400);
  await acme.call('DELETE', `/${id}`);
});

test('after a restore all are paused, and what was suspended stays suspended', async () => {
  const [{ id: one }, { id: other }] = [await acme.make({ target: webhook() }), await acme.make({ target: webhook() })];
  await server.database.pool.query(
    `update subscription_state set state = 'suspended', reason = 'gone' where subscription = $1`,
    [other],
  );
  await server.database.pool.query(pauseAll);
  expect(await acme.get(one)).toMatchObject({ state: 'paused', reason: 'backup' });
  expect(await acme.get(other)).toMatchObject({ state: 'suspended', reason: 'gone' });
  expect((await acme.call('POST', `/${one}/resume`)).status).toBe(204);
  for (const id of [one, other]) await acme.call('DELETE', `/${id}`);
});

test('a subscription is deleted while a delivery of it is noted, whichever of the two has to begin again', async () => {
  await acme.call('POST', '', { id: 'noted', name: 'Noted', target: webhook() });
  const delivery = await server.database.pool.connect();
  try {
    await delivery.query('begin');
    await delivery.query(`select from subscription_state where tenant = 'acme' and subscription = 'noted' for update`);
    const deleted = acme.call('DELETE', '/noted');
    await eventually(() => statementsWaiting(server.database)).not.toEqual([]);
    // Each waits for the other: the database ends one of them.
    await delivery
      .query(
        `insert into delivery_attempt (tenant, subscription, number, at, kind, outcome)
           values ('acme', 'noted', 1000, now(), 'changes', 'delivered')`,
      )
      .then(() => delivery.query('commit'))
      .catch(() => delivery.query('rollback'));
    expect((await deleted).status).toBe(204);
  } finally {
    delivery.release();
  }
  expect((await acme.call('GET', '/noted')).status).toBe(404);
});
