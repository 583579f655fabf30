import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { createBatchRecorder } from '../../../src/recording/batches/record-batch.ts';
import { listRejected, openRejected } from '../../../src/recording/batches/rejected-changes.ts';
import { readMapping } from '../../../src/recording/mapping/read-mapping.ts';
import { retryRejected } from '../../../src/recording/mapping/retry-rejected.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { type PostOptions, startTestRecorder } from '../../support/server/recorder.ts';
import { startTestServer } from '../../support/server/server.ts';

const tenant = 'acme';
const canary = '4111-1111-8712';
const mapping = JSON.stringify({
  version: 1,
  tenant: { column: 'org' },
  tables: {
    'public.orders': { entity: 'order', id: ['id'], mask: ['card'], ignore: ['touched'] },
    'public.drafts': { entity: 'draft', id: ['id'], mask: ['card'] },
    'shop.people': { entity: 'person' },
  },
  entities: { customer: { mask: ['card'] } },
});
const counts = { read: 0, recorded: 0, unchanged: 0, duplicate: 0, expired: 0, ignored: 0, rejected: [] };

let lsn = 0;

const server = closeAfterAll(await startTestServer());
const recorder = closeAfterAll(await startTestRecorder(server, { mapping }));
const token = await server.token(tenant, { name: 'Debezium' });

async function post(body: unknown, options: PostOptions = {}): Promise<unknown> {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const answer = await recorder.post(tenant, text, { token, type: 'application/json', ...options });
  expect(answer.status).toBe(200);
  return await answer.json();
}

function event(op: string, before: object | null, after: object | null, table = 'orders'): object {
  lsn += 1;
  const at = Date.now() - 60_000 + lsn;
  const source = {
    version: '3.2.0',
    connector: 'postgresql',
    name: 'shop',
    ts_ms: at,
    db: 'shop',
    schema: 'public',
    table,
    lsn,
  };
  return { op, before, after, source, ts_ms: at + 5, transaction: null };
}

const row = (id: number, members: object = {}) => ({
  id,
  org: tenant,
  card: canary,
  touched: lsn,
  total: '1.10',
  ...members,
});

async function historyOf(entity: string, entityId: string): Promise<Record<string, unknown>[]> {
  const q = encodeURIComponent(`entity:${entity} entityId:${entityId}`);
  const answer = await server.call(`/changelog/${tenant}/changelogs?q=${q}`, { token });
  return ((await answer.json()) as { items: Record<string, unknown>[] }).items;
}

describe('events of Debezium', () => {
  test.each([
    ['as JSON', 'application/json', JSON.stringify],
    ['as lines', 'application/x-ndjson', (one: object) => `${JSON.stringify(one)}\n`],
    ['flattened', 'application/json', (_one: object) => JSON.stringify({ id: 1, __op: 'c' })],
    [
      'as a CloudEvent',
      'application/cloudevents+json',
      () => JSON.stringify({ specversion: '1.0', id: 'a', source: '/shop', type: 'changed', data: { op: 'create' } }),
    ],
  ])('that are all rejected, %s, are 200: their sink would stop at a 400', async (_how, type, write) => {
    expect(await post(write(event('c', null, row(9, { org: 'another' }))), { type })).toMatchObject({
      read: 1,
      recorded: 0,
      rejected: [{ index: 0 }],
    });
  });

  test('become changes by the mapping, once, whatever the envelope they come in', async () => {
    const create = event('c', null, row(1));
    const update = event('u', row(1), row(1, { total: '2.20' }));
    const touch = event('u', row(1, { total: '2.20' }), row(1, { total: '2.20', touched: -1 }));
    const remove = event('d', row(1, { total: '2.20' }), null);
    expect(await post(create)).toEqual({ ...counts, read: 1, recorded: 1 });
    expect(await post({ schema: null, payload: update })).toEqual({ ...counts, read: 1, recorded: 1 });
    const rest = [create, touch, remove, null, { ...create, op: 'm' }].map((one) => JSON.stringify(one)).join('\n');
    expect(await post(rest, { type: 'application/x-ndjson' })).toEqual({
      ...counts,
      read: 5,
      recorded: 1,
      unchanged: 1,
      duplicate: 1,
      ignored: 2,
    });
    const history = await historyOf('order', '1');
    expect(history.map(({ type, actor }) => ({ type, actor }))).toEqual(
      ['delete', 'update', 'create'].map((type) => ({ type, actor: 'Debezium' })),
    );
    expect(history[1]?.paths).toEqual({ total: { before: '1.10', after: '2.20' } });
    expect(history[2]?.paths).toMatchObject({ card: { after: '********' } });
  });

  test('of a snapshot are a create, no change or an update, by what the history has', async () => {
    expect(await post(event('r', null, row(2)))).toEqual({ ...counts, read: 1, recorded: 1 });
    expect(await post([event('r', null, row(2)), event('r', null, row(3))])).toEqual({
      ...counts,
      read: 2,
      recorded: 1,
      unchanged: 1,
    });
    expect(await post(event('r', null, row(2, { total: '3' })))).toEqual({ ...counts, read: 1, recorded: 1 });
    const history = await historyOf('order', '2');
    expect(history.map(({ type, actor }) => ({ type, actor }))).toEqual(
      ['update', 'create'].map((type) => ({ type, actor: 'system' })),
    );
    expect(history[0]?.paths).toEqual({ total: { before: '1.10', after: '3' } });
  });
});

describe("what Debezium's sink sends beside an event", () => {
  const change = (id: number) => ({ ...event('d', null, null, 'people'), source: mongodbSource(id), before: null });
  const mongodbSource = (ord: number) => ({
    connector: 'mongodb',
    name: 'm',
    ts_ms: Date.now() - 1_000,
    db: 'shop',
    collection: 'people',
    ord,
  });
  const headers = { 'x-debezium-key': Buffer.from('{"id":"7"}').toString('base64') };

  test('is of an event alone: a batch has the headers of its first event', async () => {
    expect(await post(change(1), { headers })).toEqual({ ...counts, read: 1, recorded: 1 });
    expect(await historyOf('person', '7')).toMatchObject([{ type: 'delete' }]);
    expect(await post([change(2), change(3)], { headers })).toMatchObject({
      read: 2,
      rejected: [{ index: 0 }, { index: 1 }],
    });
  });

  test('may be an array of CloudEvents with the content type of a single one', async () => {
    const { op, before, after, source } = event('c', null, row(70)) as Record<string, Record<string, unknown>>;
    const attributes = Object.entries(source ?? {}).map(([name, value]) => [
      `iodebezium${name.replaceAll('_', '')}`,
      String(value),
    ]);
    const firstEvent = {
      specversion: '1.0',
      id: 'x',
      source: '/debezium/postgresql/shop',
      type: 'io.debezium.connector.postgresql.DataChangeEvent',
      iodebeziumop: op,
      ...Object.fromEntries(attributes),
      data: { before, after },
    };
    const secondEvent = { ...firstEvent, data: { before, after: row(71) } };
    const type = 'application/cloudevents+json';
    expect(await post([firstEvent, secondEvent], { type })).toEqual({ ...counts, read: 2, recorded: 2 });
    expect(await historyOf('order', '71')).toMatchObject([{ type: 'create' }]);
  });
});

test('a row that is refused is kept, masked, and recorded by a retry with the mapping', async () => {
  const { rows: before } = await server.database.pool.query('select id from change_rejected');
  const foreign = { ...event('c', null, row(72, { org: 'later' })) };
  expect(await post(foreign)).toMatchObject({ rejected: [{ index: 0 }] });
  const { db, sealer } = server.context;
  const kept = (await listRejected(db, tenant, { after: undefined, count: 500 })).find(
    ({ id }) => !before.some((former) => former.id === id),
  );
  const content =
    kept?.sealed === null || kept === undefined ? '' : openRejected(sealer, tenant, kept.id, kept.sealed).line;
  expect(JSON.parse(content)).toMatchObject({ table: 'public.orders', after: { id: 72, card: '********' } });
  const own = readMapping(mapping.replace('"version":1,', '"version":1,"tenants":{"later":"acme"},'));
  const take = createBatchRecorder({ sealer, now: Date.now });
  const clientOf = async () => ({ name: 'Debezium', tenant, maySetActor: true });
  await retryRejected({ db, sealer, recordBatch: take, mapping: own, clientOf }, { tenant });
  expect(await historyOf('order', '72')).toMatchObject([{ type: 'create', actor: 'Debezium' }]);
});

describe('CloudEvents', () => {
  const data = (entityId: string) => ({
    op: 'insert',
    entity: 'customer',
    entityId,
    after: { card: canary, name: 'É' },
  });
  const cloudEvent = (entityId: string, id = randomUUID()) => ({
    specversion: '1.0',
    id,
    source: '/shop',
    type: 'customer.created',
    time: new Date().toISOString(),
    data: data(entityId),
  });

  test('come structured, as a batch and in binary mode, and are identified by source and id', async () => {
    const type = 'application/cloudevents+json';
    const single = cloudEvent('c1');
    expect(await post(single, { type })).toEqual({ ...counts, read: 1, recorded: 1 });
    expect(await post(single, { type })).toEqual({ ...counts, read: 1, duplicate: 1 });
    expect(await post({ ...single, source: '/other' }, { type })).toEqual({ ...counts, read: 1, recorded: 1 });
    const batch = [cloudEvent('c2'), { ...cloudEvent('c3'), specversion: '0.3' }];
    expect(await post(batch, { type: 'application/cloudevents-batch+json' })).toEqual({
      ...counts,
      read: 2,
      recorded: 1,
      rejected: [{ index: 1, reason: 'has a "specversion" that is not 1.0' }],
    });
    const headers = {
      'ce-specversion': '1.0',
      'ce-id': 'b1',
      'ce-source': '/sh%C3%B6p',
      'ce-type': 'customer.created',
      'ce-time': new Date().toISOString(),
    };
    expect(await post(data('c4'), { headers })).toEqual({ ...counts, read: 1, recorded: 1 });
    expect(await historyOf('customer', 'c4')).toMatchObject([
      { paths: { card: { after: '********' }, name: { after: 'É' } }, actor: 'Debezium' },
    ]);
  });

  test('a batch that is no array cannot be read', async () => {
    const answer = await recorder.post(tenant, '{}', { token, type: 'application/cloudevents-batch+json' });
    expect(answer.status).toBe(400);
  });
});

test('a masked value is in no table and no line of the log, also where its change is rejected', async () => {
  const line = { op: 'insert', entity: 'customer', entityId: 'm', id: randomUUID(), after: { card: canary } };
  const good = { ...line, at: new Date().toISOString() };
  const lines = [
    good,
    line,
    { ...good, after: { card: `${canary}0` } },
    { ...good, id: 'x', at: '2099-01-01T00:00:00Z' },
  ];
  const body = `${lines.map((one) => JSON.stringify(one)).join('\n')}\n{"entity":"customer","after":{"card":"${canary}"`;
  expect(await post(body, { type: 'application/x-ndjson' })).toMatchObject({ read: 5, recorded: 1, duplicate: 1 });
  const { rows: tables } = await server.database.pool.query<{ name: string }>(
    `select c.oid::regclass::text as name from pg_class c where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace`,
  );
  for (const { name } of tables) {
    const { rows } = await server.database.pool.query(`select t::text as text from ${name} t`);
    expect(JSON.stringify(rows), name).not.toContain(canary);
  }
  expect(server.logLines.join('')).not.toContain(canary);
});
