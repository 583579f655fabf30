import { afterAll, beforeAll, expect, test } from 'vitest';
import { createTenant } from '../../src/postgres/tenants/tenants.ts';
import { changeOfDocuments } from '../../src/recording/change.ts';
import { readMapping } from '../../src/recording/mapping/read-mapping.ts';
import { outboxSql } from '../../src/sources/outbox/outbox-sql.ts';
import { annals } from '../support/server/command.ts';
import { entriesOf } from '../support/server/entries.ts';
import { eventually } from '../support/server/patience.ts';
import { startTestRecorder, type TestRecorder } from '../support/server/recorder.ts';
import { startTestServer, type TestServer } from '../support/server/server.ts';
import {
  createSourceDatabase,
  type SourceDatabase,
  type SourceServer,
  startSourceServer,
} from '../support/server/source-server.ts';
import { startCapture } from './capture/captured.ts';
import { startRelay } from './outbox/relayed.ts';

// A change of digits alone is no change, by every way.

const first = '{"id":1,"n":1.10,"zero":-0,"list":[1.50,{"x":1e2}],"huge":1e999999999,"long":9007199254740993}';
const same = '{"id":1,"n":1.1,"zero":0.0,"list":[1.5,{"x":100.0}],"huge":10e999999998,"long":9007199254740993.0}';
const different = '{"id":1,"n":1.10,"zero":0,"list":[1.5,{"x":100}],"huge":1e999999999,"long":9007199254740992}';
const changed = [{ long: { before: '9007199254740993.0', after: '9007199254740992' } }];

let server: TestServer;
let recorder: TestRecorder;
let shop: SourceServer;
const secret = Buffer.alloc(32);
const tables = { 'public.sent': { entity: 'sent', id: ['id'] } };

beforeAll(async () => {
  server = await startTestServer({ secretKeys: [secret] });
  const mapping = JSON.stringify({ version: 1, tables });
  recorder = await startTestRecorder(server, { mapping });
  shop = await startSourceServer();
});

afterAll(async () => {
  await shop.close();
  await recorder.close();
  await server.close();
});

/** The paths of the updates of a tenant, with their digits. */
async function updatesOf(tenant: string): Promise<object[]> {
  const { rows } = await server.database.pool.query<{ paths: string }>(
    `select e.paths from change_entry e join change_kind k on k.tenant = e.tenant and k.kind = e.kind
      where e.tenant = $1 and k.type = 'update' order by e.at, e.sequence`,
    [tenant],
  );
  return rows.map(({ paths }) => JSON.parse(paths.replace(/:(-?[0-9][0-9.e+]*)/g, ':"$1"')));
}

const at = (place: number) => new Date(Date.now() - 60_000 + place).toISOString();
const documents = [
  ['insert', undefined, first],
  ['update', first, same],
  ['update', same, different],
] as const;

/** The three changes as lines, of which the second changes nothing. */
const lines = documents.map(([op, before, after], place) => {
  const sides = [...(before === undefined ? [] : [`"before":${before}`]), `"after":${after}`].join(',');
  return `{"op":"${op}","entity":"sent","entityId":"1","at":"${at(place)}","id":"${place}",${sides}}`;
});
const counts = { read: 3, recorded: 2, unchanged: 1, rejected: expect.anything() };

test('by an import', async () => {
  await createTenant(server.database.db, 'imported');
  const environment = { DATABASE_URL: server.database.url, ANNALS_SECRET_KEY: secret.toString('base64') };
  const done = await annals(['import', '--tenant', 'imported', '-'], environment, lines.join('\n'));
  expect(JSON.parse(done.stdout)).toMatchObject(counts);
  expect(await updatesOf('imported')).toEqual(changed);
});

test.each([
  ['lines', 'application/x-ndjson', lines.join('\n')],
  [
    'CloudEvents',
    'application/cloudevents-batch+json',
    `[${lines.map((line, place) => `{"specversion":"1.0","id":"${place}","source":"/shop","type":"changed","time":"${at(place)}","data":${line}}`).join(',')}]`,
  ],
  [
    'events of Debezium',
    'application/json',
    `[${documents
      .map(([op, before = 'null', after], place) => {
        const origin = { connector: 'postgresql', name: 'shop', ts_ms: Date.now() - 9_000 + place, db: 'shop', schema: 'public', table: 'sent', lsn: place + 1 }; // biome-ignore format: one line
        return `{"op":"${op.replace('insert', 'create').slice(0, 1)}","before":${before},"after":${after},"source":${JSON.stringify(origin)},"ts_ms":1}`;
      })
      .join(',')}]`,
  ],
])('over HTTP as %s', async (name, type, body) => {
  const tenant = name.replaceAll(' ', '').toLowerCase();
  await createTenant(server.database.db, tenant);
  const token = await server.token(tenant);
  const response = await recorder.post(tenant, body, { token, type });
  expect(await response.json()).toMatchObject(counts);
  expect(await updatesOf(tenant)).toEqual(changed);
});

test('of a document of our own', () => {
  const document = { entity: 'price', entityId: '1', at: 1, actor: 'Jane Doe', type: 'update' } as const;
  expect(changeOfDocuments({ ...document, before: first, after: same })).toBe('unchanged');
  expect(changeOfDocuments({ ...document, before: same, after: different })).toMatchObject({
    paths: '{"long":{"before":9007199254740993.0,"after":9007199254740992}}',
  });
});

const definition = (name: string) =>
  `create table ${name} (id int primary key, n numeric, f float8, r real, list numeric[], j json, b jsonb, t text, l bigint)`;
const values = `1, 1.10, '-0', '-0', '{1.50,-0.0}', '{"x": -0, "y": [1.10, 1e2]}', '{"x": 1.10}', '{"x": 1.10}', 1`;
const digits = `n = 1.1, f = 0, r = 0, list = '{1.5,0}', j = '{"y": [1.1, 100.0], "x": 0}', b = '{"x": 1.1}', t = '{"x": 1.1}'`;
const more = `n = 1.100, f = '-0', r = '-0', list = '{1.50,-0}', j = '{"x": -0, "y": [1.10, 1E2]}', b = '{"x": 1.10}', t = '{"x": 1.10}', l = 2`;

async function prepared(name: string, alter = ''): Promise<{ source: SourceDatabase; mapping: object }> {
  await createTenant(server.database.db, name);
  const source = await createSourceDatabase(shop);
  await source.pool.query(`${definition('prices')}; ${alter}`);
  const rules = { 'public.prices': { entity: 'price', json: ['t'] } };
  return { source, mapping: { version: 1, tenant: { value: name }, tables: rules } };
}

test.each([
  ['full', 'alter table prices replica identity full'],
  ['key', ''],
])('by capture with the identity %s, and where it compares tables with the history', async (name, alter) => {
  const { source, mapping } = await prepared(name, alter);
  const start = async (resync: boolean) => {
    const running = startCapture({ source, history: server.database, mapping, choice: { resync } });
    await running.running;
    return running;
  };
  const running = await start(true);
  await source.pool.query(`insert into prices values (${values}); update prices set ${digits}`);
  await source.pool.query(`update prices set ${more}`);
  const l = [{ l: { before: '1', after: '2' } }];
  await eventually(() => updatesOf(name)).toEqual(l);
  await running.stop();
  await source.pool.query(`update prices set ${digits}`);
  const again = await start(true);
  expect(await updatesOf(name)).toEqual(l);
  await again.stop();
  await source.pool.query('update prices set l = 3');
  await start(true);
  expect(await updatesOf(name)).toEqual([...l, { l: { before: '2', after: '3' } }]);
  // The values before met what stood there, whatever their digits.
  const tenant = await entriesOf(server.database, name);
  expect(tenant).toHaveLength(3);
});

test('by triggers and the relay, where it never reaches the outbox', async () => {
  const { source, mapping } = await prepared('triggers');
  await source.pool.query(outboxSql(readMapping(JSON.stringify(mapping))));
  await source.pool.query(`insert into prices values (${values}); update prices set ${digits.replace(/, t = .*/, '')}`);
  expect((await source.pool.query('select from annals.outbox')).rowCount).toBe(1);
  await source.pool.query(`update prices set ${digits}`);
  await source.pool.query(`update prices set ${more}`);
  startRelay({ url: source.url, history: server.database, mapping });
  await eventually(() => updatesOf('triggers')).toEqual([{ l: { before: '1', after: '2' } }]);
});

test('an id is a text: by capture and by triggers a row with other digits in its id is another document', async () => {
  const { source, mapping } = await prepared(
    'ids',
    'drop table prices; create table prices (id numeric primary key, t text)',
  );
  const relayed = { ...mapping, tenant: { value: 'relayedids' } };
  await createTenant(server.database.db, 'relayedids');
  await source.pool.query(outboxSql(readMapping(JSON.stringify(mapping))));
  await startCapture({ source, history: server.database, mapping, choice: { resync: true } }).running;
  startRelay({ url: source.url, history: server.database, mapping: relayed });
  await source.pool.query('insert into prices values (1.10)');
  await source.pool.query('update prices set id = 1.1');
  for (const name of ['ids', 'relayedids']) {
    const changes = async () =>
      (await entriesOf(server.database, name)).map(({ type, entityId }) => `${type} ${entityId}`);
    await eventually(async () => (await changes()).sort()).toEqual(['create 1.1', 'create 1.10', 'delete 1.10']);
  }
});
