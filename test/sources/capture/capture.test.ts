import { expect, test } from 'vitest';
import { createTenant } from '../../../src/postgres/tenants/tenants.ts';
import { readMapping } from '../../../src/recording/mapping/read-mapping.ts';
import { outboxSql } from '../../../src/sources/outbox/outbox-sql.ts';
import { countOfEntries, type Entry, entriesOf } from '../../support/server/entries.ts';
import { eventually } from '../../support/server/patience.ts';
import { startRelay } from '../outbox/relayed.ts';
import { captureOrders, startCapture, useCaptureDatabases } from './captured.ts';

const databases = useCaptureDatabases();

test('inserts, updates and deletes become entries in the order of the commits', async () => {
  const { source, history } = await captureOrders(databases, undefined, { entity: 'order', name: 'title' });
  await source.pool.query(`insert into orders values (1, 'one', 1.10)`);
  await source.pool.query(`update orders set total = 2.50 where id = 1`);
  await source.pool.query(`update orders set total = 2.50 where id = 1`);
  await source.pool.query(`delete from orders where id = 1`);
  await eventually(() => entriesOf(history)).toHaveLength(3);
  const entries = await entriesOf(history);
  expect(entries.map(({ type, entityId, name, actor, paths }) => [type, entityId, name, actor, paths])).toEqual([
    ['create', '1', 'one', 'unknown', { id: { after: 1 }, title: { after: 'one' }, total: { after: 1.1 } }],
    ['update', '1', 'one', 'unknown', { total: { before: 1.1, after: 2.5 } }],
    ['delete', '1', 'one', 'unknown', { id: { before: 1 }, title: { before: 'one' }, total: { before: 2.5 } }],
  ]);
});

test('a transaction larger than memory would like is recorded whole, masked, with the actor that it names at its end', async () => {
  const { source, history } = await captureOrders(databases, undefined, { entity: 'order', mask: ['title'] });
  const client = await source.pool.connect();
  await client.query('begin');
  // From 2,000 rows on, a transaction waits in a file for its end, and is recorded in portions.
  const rows = 2_100;
  await client.query(`insert into orders select n, 'canary ' || n, n from generate_series(1, ${rows}) n`);
  await client.query(`select pg_logical_emit_message(true, 'annals.actor', '{"actor":"Nobody"}')`);
  await client.query(
    `select pg_logical_emit_message(true, 'annals.actor', '{"actor":"Jane Doe","context":{"ip":"10.0.0.1"}}')`,
  );
  await client.query('commit');
  client.release();
  await eventually(() => countOfEntries(history)).toBe(rows);
  const entries = await entriesOf(history);
  expect(new Set(entries.map(({ actor }) => actor))).toEqual(new Set(['Jane Doe']));
  expect(new Set(entries.map(({ context }) => context))).toEqual(new Set(['{"ip":"10.0.0.1"}']));
  expect(entries.map(({ entityId }) => Number(entityId))).toEqual(
    Array.from({ length: rows }, (_, index) => index + 1),
  );
  expect(new Set(entries.map(({ paths }) => paths.title?.after))).toEqual(new Set(['********']));
  expect(new Set(entries.map(({ at }) => at)).size).toBe(1);
});

test('a message about the actor that cannot be read is ignored, and the log does not show its content', async () => {
  const { source, history, running } = await captureOrders(databases);
  await source.pool.query(
    `begin; select pg_logical_emit_message(true, 'annals.actor', '{"actor":17, "secret":"hunter2"}');
     insert into orders values (1, 'one', 1); commit`,
  );
  await eventually(() => entriesOf(history)).toHaveLength(1);
  expect((await entriesOf(history))[0]?.actor).toBe('unknown');
  expect(running.messages.join('\n')).toContain('annals.actor');
  expect(running.messages.join('\n')).not.toContain('hunter2');
});

test('a value that is stored outside of the row and does not change comes from the row before', async () => {
  const { source, history } = await captureOrders(databases);
  await source.pool.query(`alter table orders alter title set storage external`);
  await source.pool.query(`insert into orders values (1, repeat('x', 20000), 1)`);
  await source.pool.query(`update orders set total = 2`);
  await eventually(() => entriesOf(history)).toHaveLength(2);
  expect((await entriesOf(history))[1]?.paths).toEqual({ total: { before: 1, after: 2 } });
});

test('a table with its primary key as identity: updates are compared with the history, deletes have the key', async () => {
  const { source, history } = await captureOrders(databases, 'create table orders (id int primary key, title text)');
  await source.pool.query(`insert into orders values (1, 'one')`);
  await source.pool.query(`update orders set title = 'two'`);
  await source.pool.query(`update orders set id = 2`);
  await source.pool.query(`delete from orders`);
  await eventually(() => entriesOf(history)).toHaveLength(5);
  expect(
    (await entriesOf(history)).map(({ type, entityId, paths, related }) => [type, entityId, paths, related]),
  ).toEqual([
    ['create', '1', { id: { after: 1 }, title: { after: 'one' } }, null],
    ['update', '1', { title: { before: 'one', after: 'two' } }, null],
    ['delete', '1', { id: { before: 1 } }, expect.stringContaining('"2"')],
    ['create', '2', { id: { after: 2 }, title: { after: 'two' } }, expect.stringContaining('"1"')],
    ['delete', '2', { id: { before: 2 } }, null],
  ]);
});

test('partitions: the root names the table, and a row that moves between two is one update', async () => {
  const { source, history } = await captureOrders(
    databases,
    `create table orders (id int, region text, title text, primary key (id, region)) partition by list (region);
     create table orders_north partition of orders for values in ('north');
     create table orders_south partition of orders for values in ('south');
     alter table orders replica identity full;
     alter table orders_north replica identity full;
     alter table orders_south replica identity full`,
    { entity: 'order', id: ['id'] },
  );
  await source.pool.query(`insert into orders values (1, 'north', 'one')`);
  await source.pool.query(`update orders set region = 'south'`);
  await source.pool.query(`begin; delete from orders; insert into orders values (2, 'north', 'two'); commit`);
  await eventually(() => entriesOf(history)).toHaveLength(4);
  expect((await entriesOf(history)).map(({ type, entityId, paths }) => [type, entityId, paths])).toEqual([
    ['create', '1', { id: { after: 1 }, region: { after: 'north' }, title: { after: 'one' } }],
    ['update', '1', { region: { before: 'north', after: 'south' } }],
    ['delete', '1', { id: { before: 1 }, region: { before: 'south' }, title: { before: 'one' } }],
    ['create', '2', { id: { after: 2 }, region: { after: 'north' }, title: { after: 'two' } }],
  ]);
});

test('a partition that was added later has its key alone before a change, and no entry claims nulls', async () => {
  const { source, history, running } = await captureOrders(
    databases,
    `create table orders (id int, region text, title text, total int, primary key (id, region)) partition by list (region);
     create table orders_north partition of orders for values in ('north');
     alter table orders replica identity full;
     alter table orders_north replica identity full`,
    { entity: 'order', id: ['id'] },
  );
  await source.pool.query(`create table orders_south partition of orders for values in ('south')`);
  await source.pool.query(`insert into orders values (1, 'south', 'one', 1), (2, 'north', null, null)`);
  await source.pool.query(`update orders set title = 'two' where id = 1`);
  await source.pool.query(`update orders set region = 'north' where id = 1`);
  await source.pool.query(`update orders set region = 'south' where id = 1`);
  await source.pool.query(`update orders set id = 3 where id = 1`);
  await source.pool.query(`delete from orders where id = 3`);
  await eventually(() => entriesOf(history)).toHaveLength(8);
  const row = (title: string) => ({ region: { after: 'south' }, title: { after: title }, total: { after: 1 } });
  expect((await entriesOf(history)).map(({ type, entityId, paths }) => [type, entityId, paths])).toEqual([
    ['create', '1', { id: { after: 1 }, ...row('one') }],
    ['create', '2', { id: { after: 2 }, region: { after: 'north' }, title: { after: null }, total: { after: null } }],
    ['update', '1', { title: { before: 'one', after: 'two' } }],
    ['update', '1', { region: { before: 'south', after: 'north' } }],
    ['update', '1', { region: { before: 'north', after: 'south' } }],
    ['delete', '1', { id: { before: 1 }, region: { before: 'south' } }],
    ['create', '3', { id: { after: 3 }, ...row('two') }],
    ['delete', '3', { id: { before: 3 }, region: { before: 'south' } }],
  ]);
  expect(running.messages.filter((message) => message.includes('a partition of public.orders'))).toHaveLength(1);
});

test('four writers with savepoints rolled back and long transactions: each document in the order of its commits', async () => {
  const { source, history } = await captureOrders(
    databases,
    'create table orders (id int primary key, version int); alter table orders replica identity full',
  );
  await source.pool.query(`insert into orders select n, 0 from generate_series(1, 6) n`);
  const rounds = 15;
  async function write(writer: number): Promise<void> {
    const client = await source.pool.connect();
    for (let round = 0; round < rounds; round++) {
      await client.query('begin');
      for (const id of [1 + ((writer + round) % 3), 4 + (round % 3)]) {
        await client.query(`update orders set version = version + 1 where id = $1`, [id]);
        await client.query('savepoint s');
        await client.query(`update orders set version = version + 1000 where id = $1`, [id]);
        await client.query('rollback to s');
      }
      if (round % 5 === writer) await client.query('select pg_sleep(0.05)');
      await client.query(round % 7 === 3 ? 'rollback' : 'commit');
    }
    client.release();
  }
  await Promise.all([0, 1, 2, 3].map(write));
  const { rows } = await source.pool.query('select id, version from orders order by id');
  const total = rows.reduce((sum, { version }) => sum + version, 0);
  await eventually(() => entriesOf(history)).toHaveLength(6 + total);
  const entries = await entriesOf(history);
  for (const { id, version } of rows) {
    const versions = entries.filter(({ entityId }) => entityId === String(id)).map(({ paths }) => paths.version?.after);
    expect(versions).toEqual(Array.from({ length: version + 1 }, (_, index) => index));
  }
});

test('a truncate deletes every document that the history has, by the actor of its transaction', async () => {
  const { source, history } = await captureOrders(databases);
  await source.pool.query(`insert into orders values (1, 'one', 1), (2, 'two', 2), (3, 'three', 3)`);
  await source.pool.query('delete from orders where id = 2');
  await source.pool.query(
    `begin; insert into orders values (4, 'four', 4); truncate orders; insert into orders values (1, 'again', 1);
     select pg_logical_emit_message(true, 'annals.actor', '{"actor":"Jane Doe"}'); commit`,
  );
  await eventually(() => entriesOf(history)).toHaveLength(9);
  const later = (await entriesOf(history)).slice(4).map(({ type, entityId, actor }) => `${type} ${entityId} ${actor}`);
  expect(later[0]).toBe('create 4 Jane Doe');
  expect(later.slice(1, 4).sort()).toEqual(['delete 1 Jane Doe', 'delete 3 Jane Doe', 'delete 4 Jane Doe']);
  expect(later[4]).toBe('create 1 Jane Doe');
});

test('a truncate of a table whose mapping ignores truncates deletes nothing', async () => {
  const { source, history } = await captureOrders(databases, undefined, { entity: 'order', truncate: 'ignore' });
  await source.pool.query(`insert into orders values (1, 'one', 1)`);
  await source.pool.query('truncate orders');
  await source.pool.query(`insert into orders values (2, 'two', 2)`);
  await eventually(() => entriesOf(history)).toHaveLength(2);
});

test('masked values are in no table, log or error of Annals', async () => {
  const { source, history, running } = await captureOrders(databases, undefined, { entity: 'order', mask: ['title'] });
  await source.pool.query(`insert into orders values (1, 'canary-hunter2', 1)`);
  await source.pool.query(`update orders set title = 'canary-hunter3' where id = 1`);
  await eventually(() => entriesOf(history)).toHaveLength(2);
  const masked = (await entriesOf(history)).at(-1);
  expect(masked?.paths).toEqual({ title: { before: '********', after: '********' } });
  const { rows } = await history.pool.query(
    `select table_name from information_schema.tables where table_schema = 'public'`,
  );
  for (const { table_name } of rows) {
    const { rows: found } = await history.pool.query(
      `select 1 from "${table_name}" t where t::text like '%canary-hunter%'`,
    );
    expect(found, table_name).toEqual([]);
  }
  expect(running.messages.join()).not.toContain('canary-hunter');
});

test('a change that can never be recorded is kept aside, and what follows is recorded', async () => {
  const source = databases.openSource();
  await source.pool.query(
    'create table orders (id int primary key, org text); alter table orders replica identity full',
  );
  const history = databases.openHistory();
  const mapping = { version: 1, tenant: { column: 'org' }, tables: { 'public.orders': { entity: 'order' } } };
  await startCapture({ source, history, mapping }).running;
  await source.pool.query(`insert into orders values (1, 'nobody'), (2, 'acme'), (3, null)`);
  await eventually(() => entriesOf(history)).toHaveLength(1);
  const { rows } = await history.pool.query('select way, reason from change_rejected order by position');
  expect(rows).toEqual([
    { way: 'capture', reason: 'its tenant does not exist' },
    { way: 'capture', reason: expect.stringContaining('null') },
  ]);
});

test('values are the same by capture, by snapshot and by triggers', async () => {
  const source = databases.openSource();
  await source.pool.query(
    `create extension hstore; create domain tags as hstore; create type hue as enum ('red');
     create function json_of(hue) returns json language sql as $$ select json_build_object('hue', $1::text) $$;
     create cast (hue as json) with function json_of(hue);
     create type mood as enum ('glad'); create type address as (street text, number int); create domain euro as numeric(9, 2);
     create domain stamp as timestamptz; create domain home as address; create domain handle as oid;
     create table things (
       id int primary key, small smallint, big bigint, price euro, ratio double precision, one real, none numeric, flag boolean,
       doc jsonb, raw json, list int[], texts text[], nested numeric[][], moment timestamptz, moments timestamptz[], plain timestamp,
       day date, hour time, bytes bytea, home address, homes address[], period tstzrange, place point, state mood,
       states mood[], short char(5), span interval, key uuid, number oid, stamped stamp, stamps stamp[],
       ancient timestamptz, ancients timestamptz[], antique timestamp, resort home, resorts home[], handled handle, numbers oid[], pairs hstore,
       lists hstore[], tagged tags, hue hue, hues hue[],
       doubled int generated always as (small * 2) stored);
     alter table things replica identity full`,
  );
  const values = `2, 9007199254740993, 1.50, 0.1, 'NaN', '-Infinity', true,
    '{"b": 1.10, "a": [null, {"x": "ü"}]}', '{"b":1.10}', '{1,NULL,3}', '{"a b","c\\"d",NULL}', '{{1,2.50},{3,4}}',
    '2026-01-02 03:04:05.678901+02', '{2026-01-02 03:04:05+00}', '2026-01-02 03:04:05', '2026-01-02', '03:04:05', '\\x00ff',
    row('Main', 5), array[row('Side', 6)::address], '[2026-01-01 00:00+00, 2026-01-02 00:00+00)', '(1,2)', 'glad', '{glad}', 'ab',
    '1 year 2 days 03:00:00', '0190b0a0-0000-7000-8000-000000000001', 4294967295,
    '2026-01-02 03:04:05.6+02', '{2026-01-02 03:04:05+00,NULL}', '0044-03-15 12:00:00+00 BC', '{0044-03-15 12:00:00+00 BC,infinity}',
    '0044-03-15 12:00:00 BC', row('Bay', 7), array[row('Cape', 8)::home], 4294967294, '{1,NULL,4294967293}',
    'a=>1, "b c"=>NULL', array['a=>1'::hstore, null], 'a=>"x\\"y"', 'red', '{red,NULL}'`;
  await source.pool.query(`insert into things values (1, ${values})`);
  const tables = { 'public.things': { entity: 'thing' } };
  const mapping = { version: 1, tenant: { value: 'acme' }, tables };
  await source.pool.query(outboxSql(readMapping(JSON.stringify(mapping))));
  const history = databases.openHistory();
  const relayed = 'relayed';
  await createTenant(history.db, relayed);
  await startCapture({ source, history, tables, choice: { snapshot: true } }).running;
  startRelay({ url: source.url, history, mapping: { ...mapping, tenant: { value: relayed } } });
  await source.pool.query(
    `set timezone = 'Asia/Tokyo'; set intervalstyle = 'iso_8601'; set datestyle = 'German'; insert into things values (2, ${values})`,
  );
  await eventually(() => entriesOf(history)).toHaveLength(2);
  await eventually(() => entriesOf(history, relayed)).toHaveLength(1);
  const [copied, captured] = await entriesOf(history);
  const [triggered] = await entriesOf(history, relayed);
  const without = (entry: Entry | undefined) => ({ ...entry?.paths, id: undefined });
  expect(without(captured)).toEqual(without(copied));
  expect(without(triggered)).toEqual(without(captured));
  expect(captured?.paths).toMatchObject({
    'doc.b': { after: 1.1 },
    none: { after: '-Infinity' },
    moment: { after: '2026-01-02T01:04:05.678901Z' },
    home: { after: '(Main,5)' },
    number: { after: 4294967295 },
    period: { after: '["2026-01-01 00:00:00+00","2026-01-02 00:00:00+00")' },
    stamped: { after: '2026-01-02T01:04:05.6Z' },
    stamps: { after: ['2026-01-02T03:04:05Z', null] },
    ancient: { after: '0044-03-15T12:00:00Z BC' },
    ancients: { after: ['0044-03-15T12:00:00Z BC', 'infinity'] },
    antique: { after: '0044-03-15T12:00:00 BC' },
    resort: { after: '(Bay,7)' },
    handled: { after: 4294967294 },
    numbers: { after: [1, null, 4294967293] },
    pairs: { after: '"a"=>"1", "b c"=>NULL' },
    lists: { after: ['"a"=>"1"', null] },
    tagged: { after: '"a"=>"x\\"y"' },
    hue: { after: 'red' },
    hues: { after: ['red', null] },
  });
  expect(captured?.paths).not.toHaveProperty('doubled');
});

test('a mask that leads into a value without members is refused by capture and by the SQL of the outbox; one of the whole column is not', async () => {
  const source = databases.openSource();
  const history = databases.openHistory();
  await source.pool.query(
    `create extension hstore; create type address as (street text);
     create table people (id int primary key, tags hstore, homes address[], doc jsonb); alter table people replica identity full`,
  );
  const refused = 'a mask leads into the column tags, whose values are text: mask the whole column';
  const start = (mask: string[]) => {
    const tables = { 'public.people': { entity: 'person', mask } };
    const sql = outboxSql(readMapping(JSON.stringify({ version: 1, tenant: { value: 'acme' }, tables })));
    return { running: startCapture({ source, history, tables }), made: source.pool.query(sql) };
  };
  const { running, made } = start(['tags.pin', 'homes.*.street']);
  await expect(made).rejects.toThrow('leads into the column tags, homes, whose values are text: mask the whole column');
  await expect(running.ended).rejects.toThrow(refused);
  const whole = start(['tags', 'homes', 'doc.pin']);
  await whole.made;
  await whole.running.running;
  await source.pool.query(
    `insert into people values (1, 'pin=>canary', array[row('canary')::address], '{"pin": "canary"}')`,
  );
  await eventually(async () => (await entriesOf(history)).map(({ paths }) => paths)).toMatchObject([
    { tags: { after: '********' }, homes: { after: '********' }, 'doc.pin': { after: '********' } },
  ]);
  const { rows } = await source.pool.query('select o::text as row from annals.outbox o');
  expect(rows.map(({ row }) => row).join()).not.toContain('canary');
});
