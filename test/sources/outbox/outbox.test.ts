import pg from 'pg';
import { expect, test } from 'vitest';
import { readMapping } from '../../../src/recording/mapping/read-mapping.ts';
import { removeOutbox } from '../../../src/sources/outbox/outbox-schema.ts';
import { outboxSql } from '../../../src/sources/outbox/outbox-sql.ts';
import { entriesOf } from '../../support/server/entries.ts';
import { eventually } from '../../support/server/patience.ts';
import { useHistory } from '../history.ts';
import { createApplication, startRelay } from './relayed.ts';

const openHistory = useHistory();

const orders = 'create table orders (id int primary key, title text, total numeric)';
const tables = { 'public.orders': { entity: 'order', name: 'title' } };

test('the application needs no rights on the outbox and gets none, also below row-level security', async () => {
  const application = await createApplication(
    openHistory(),
    `${orders}; alter table orders enable row level security;
    create policy own on orders using (true)`,
    tables,
  );
  const { pool, history } = application;
  const role = `app_${Math.random().toString(36).slice(2)}`;
  await pool.query(`create role ${role}; grant select, insert, update, delete, truncate on orders to ${role}`);
  const client = await pool.connect();
  try {
    await client.query(`set role ${role}`);
    await client.query(`insert into orders values (1, 'one', 1)`);
    await expect(client.query('select 1 from annals.outbox')).rejects.toThrow('permission denied');
    await expect(client.query(`select annals.record('a', 'b', null, '{}')`)).rejects.toThrow('permission denied');
    await client.query('reset role');
  } finally {
    client.release();
    await pool.query(`drop owned by ${role}; drop role ${role}`);
  }
  startRelay(application);
  await eventually(() => entriesOf(history)).toHaveLength(1);
});

const partitioned = [
  `create table orders (id int, region text, title text, primary key (id, region)) partition by list (region);
   create table north partition of orders for values in ('north');
   create table south partition of orders for values in ('south')`,
  { 'public.orders': { entity: 'order', id: ['id'] } },
] as const;

test('a row that moves between partitions is one update, and a truncate of one partition deletes its documents', async () => {
  const application = await createApplication(openHistory(), ...partitioned);
  const { pool, history } = application;
  startRelay(application);
  await pool.query(`insert into orders values (1, 'north', 'one'), (2, 'north', 'two')`);
  await pool.query(`update orders set region = 'south' where id = 1`);
  await pool.query('truncate south');
  await eventually(() => entriesOf(history)).toHaveLength(4);
  const entries = (await entriesOf(history)).filter(({ entityId }) => entityId === '1');
  expect(entries.map(({ type, paths }) => [type, paths])).toEqual([
    ['create', { id: { after: 1 }, region: { after: 'north' }, title: { after: 'one' } }],
    ['update', { region: { before: 'north', after: 'south' } }],
    ['delete', { id: { before: 1 }, region: { before: 'south' }, title: { before: 'one' } }],
  ]);
});

test('so is one whose halves are on two pages', async () => {
  const application = await createApplication(openHistory(), ...partitioned);
  const { pool, history } = application;
  await pool.query(`insert into orders values (1, 'north', 'one')`);
  // With the create and the first half of the move these are a page.
  await pool.query(`do $$ begin for n in 1..1998 loop update orders set title = n::text; end loop; end $$`);
  await pool.query(`update orders set region = 'south'`);
  startRelay(application);
  await eventually(async () => (await pool.query('select from annals.outbox')).rowCount).toBe(0);
  const types = (await entriesOf(history)).map(({ type }) => type);
  expect([types.length, ...types.filter((type) => type !== 'update')]).toEqual([2_000, 'create']);
});

test('each row of a statement belongs to itself, and the order of the statements is kept', async () => {
  const application = await createApplication(openHistory(), orders, tables);
  const { pool, history } = application;
  await pool.query(
    `begin; copy orders from program 'printf "3,three,3\\\\n2,two,2\\\\n1,one,1"' (format csv);
     update orders set total = total * 10; update orders set id = id + 1; delete from orders where id = 4;
     with moved as (delete from orders where id = 3 returning *) insert into orders select id, 'new', total from moved; commit`,
  );
  startRelay(application);
  await eventually(() => entriesOf(history)).toHaveLength(14);
  const entries = await entriesOf(history);
  const byId = (id: string) =>
    entries
      .filter(({ entityId }) => entityId === id)
      .map(({ type, paths }) => `${type} ${JSON.stringify(paths.title)} ${JSON.stringify(paths.total)}`);
  const side = (name: string, value: unknown) => JSON.stringify({ [name]: value });
  expect(byId('1')).toEqual([
    `create ${side('after', 'one')} ${side('after', 1)}`,
    `update undefined ${JSON.stringify({ before: 1, after: 10 })}`,
    `delete ${side('before', 'one')} ${side('before', 10)}`,
  ]);
  expect(byId('3')).toEqual([
    `create ${side('after', 'three')} ${side('after', 3)}`,
    `update undefined ${JSON.stringify({ before: 3, after: 30 })}`,
    `delete ${side('before', 'three')} ${side('before', 30)}`,
    `create ${side('after', 'two')} ${side('after', 20)}`,
    `update ${JSON.stringify({ before: 'two', after: 'new' })} undefined`,
  ]);
});

const triggersOf = `select array_agg(tgname::text order by tgname::text) as names from pg_trigger
  where tgrelid = $1::regclass and not tgisinternal and tgname like 'annals%'`;
const byStatement = ['annals_delete', 'annals_insert', 'annals_truncate', 'annals_update'];
const byRow = ['annals_row', 'annals_truncate'];

test('a table is written row by row where a trigger for the statement would miss rows or be late', async () => {
  const application = await createApplication(
    openHistory(),
    `${orders}; create table tree (id int primary key, parent int references tree on update cascade, children int default 0);
     create table base (id int primary key); create table child () inherits (base);
     create table counted (id int primary key, parent int, children int default 0);
     create function count_counted() returns trigger language plpgsql as
       $$ begin update counted set children = children + 1 where id = new.parent; return null; end $$;
     create trigger count after insert on counted for each row execute function count_counted()`,
    Object.fromEntries(['orders', 'tree', 'base', 'counted'].map((name) => [`public.${name}`, { entity: name }])),
  );
  const { pool, history } = application;
  const triggers = async (table: string) => (await pool.query(triggersOf, [table])).rows[0].names;
  expect(await triggers('orders')).toEqual(byStatement);
  for (const table of ['tree', 'base', 'counted']) expect(await triggers(table)).toEqual(byRow);
  await pool.query('insert into counted values (1, null), (2, 1)');
  const { messages } = startRelay(application);
  await eventually(() => entriesOf(history)).toHaveLength(3);
  const first = (await entriesOf(history)).filter(({ entityId }) => entityId === '1');
  expect(first.map(({ type }) => type)).toEqual(['create', 'update']);
  expect(messages).toEqual([]);

  await pool.query(`create function nothing() returns trigger language plpgsql as 'begin return null; end';
    create trigger audit after update on orders for each row execute function nothing()`);
  const { messages: warnings } = startRelay(application);
  const warning = 'the table public.orders now needs a trigger for each row. Run the SQL of annals outbox again';
  await eventually(() => warnings).toEqual([warning]);
  await application.install();
  expect(await triggers('orders')).toEqual(byRow);
  await pool.query('drop trigger audit on orders');
  await application.install();
  expect(await triggers('orders')).toEqual(byStatement);
});

test('a table that the mapping names no longer loses its triggers', async () => {
  const application = await createApplication(openHistory(), `${orders}; create table old (id int primary key)`, {
    ...tables,
    'public.old': { entity: 'old' },
  });
  const { pool } = application;
  await pool.query(outboxSql(readMapping(JSON.stringify({ ...application.mapping, tables }))));
  expect((await pool.query(triggersOf, ['old'])).rows[0].names).toBeNull();
  expect((await pool.query(triggersOf, ['orders'])).rows[0].names).toEqual(byStatement);
});

test('columns that come and go do not disturb the application, and one that came is masked', async () => {
  const application = await createApplication(
    openHistory(),
    `create type address as (street text, number int); ${orders}; alter table orders add home address`,
    tables,
  );
  const { pool, history } = application;
  await pool.query(`insert into orders values (1, 'one', 1, row('Main', 5))`);
  await pool.query('alter table orders drop column home; alter table orders add column size int');
  await pool.query('update orders set size = 4');
  startRelay(application);
  await eventually(() => entriesOf(history)).toHaveLength(2);
  expect((await entriesOf(history)).map(({ paths }) => paths)).toEqual([
    { id: { after: 1 }, title: { after: 'one' }, total: { after: 1 }, home: { after: '(Main,5)' } },
    { size: { before: null, after: '********' } },
  ]);
});

test('a row that cannot be written as JSON does not fail the application, and is kept aside', async () => {
  const application = await createApplication(
    openHistory(),
    `create type odd as enum ('odd');
     create function fail(odd) returns json language plpgsql as $$ begin raise exception 'canary'; end $$;
     create cast (odd as json) with function fail(odd);
     create table orders (id int primary key, value odd)`,
    { 'public.orders': { entity: 'order' } },
  );
  const { pool, history } = application;
  await pool.query(`insert into orders values (1, 'odd')`);
  startRelay(application);
  await eventually(async () => (await history.pool.query('select reason from change_rejected')).rows).toEqual([
    { reason: 'the row cannot be written as JSON (SQLSTATE P0001)' },
  ]);
});

test('the SQL may run again, refuses a schema that is not ours, and is removed once the outbox is empty', async () => {
  const application = await createApplication(openHistory(), orders, tables);
  const { pool, history } = application;
  await application.install();
  await pool.query(`insert into orders values (1, 'one', 1)`);
  await expect(pool.query(removeOutbox)).rejects.toThrow('still has 1 changes');
  await pool.query('rollback');
  const running = startRelay(application);
  await eventually(() => entriesOf(history)).toHaveLength(1);
  await running.stop();
  await pool.query(removeOutbox);
  await pool.query(`update orders set total = 2; create schema annals`);
  await expect(application.install()).rejects.toThrow('the schema annals belongs to postgres');
  await pool.query('rollback');
  await expect(startRelay(application).ended).rejects.toThrow('the schema annals belongs to postgres');
  await pool.query('drop schema annals');
  await expect(startRelay(application).ended).rejects.toThrow('the source has no outbox');
});

test('half of the printed SQL does nothing, wherever it is cut', async () => {
  const application = await createApplication(openHistory(), orders, tables);
  const { pool, url } = application;
  const install = outboxSql(readMapping(JSON.stringify(application.mapping)));
  const state = async () =>
    (
      await pool.query(`select (select count(*)::int from pg_trigger where tgname like 'annals%') as triggers,
      (select count(*)::int from pg_proc where pronamespace = to_regnamespace('annals')) as functions`)
    ).rows[0];
  for (const sql of [removeOutbox, install]) {
    const before = await state();
    const ends = [...sql.matchAll(/;\n/g)].map(({ index }) => index + 1).filter((end) => end < sql.indexOf('commit;'));
    for (const end of ends.filter((_, index) => index % 10 === 0 || index > ends.length - 3)) {
      const client = new pg.Client(url);
      await client.connect();
      // A cut inside of a statement is one that psql does not send.
      await client.query(sql.slice(0, end)).catch((error) => expect(error.message).toContain('unterminated'));
      await client.end();
      expect(await state()).toEqual(before);
    }
    await pool.query(sql);
    expect(await state()).not.toEqual(before);
  }
});

test('names of the mapping may hold the tag of the SQL, quotes and backslashes', async () => {
  const names = ['$annals$', '$annals1$', "it's", 'a"b', 'back\\slash', '%s'];
  const application = await createApplication(
    openHistory(),
    `create table orders (id int primary key, ${names.map((name) => `${pg.escapeIdentifier(name)} text`).join(', ')})`,
    { 'public.orders': { entity: '$annals$', ignore: [names[0]], related: [{ entity: '$$', id: [names[2]] }] } },
    { entities: { $annals$: { mask: ['$annals$'] } } },
  );
  const { pool, history } = application;
  await pool.query(`insert into orders values (1, 'ignored', 'b', 'c', 'd', 'e', 'f')`);
  startRelay(application);
  await eventually(() => entriesOf(history)).toHaveLength(1);
  expect(Object.keys((await entriesOf(history))[0]?.paths ?? {}).length).toBe(names.length);
});
