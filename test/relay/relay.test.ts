import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { readSource } from '../../src/db/source/source.ts';
import { measureRelay } from '../../src/installation-figures.ts';
import { Metrics, textOf } from '../../src/metrics/metrics.ts';
import { readMapping } from '../../src/recording/mapping/read-mapping.ts';
import { removeOutbox } from '../../src/relay/outbox-schema.ts';
import { outboxSql } from '../../src/relay/outbox-sql.ts';
import { startTracing, treesOf } from '../support/server/collector.ts';
import { startAnnals } from '../support/server/command.ts';
import { countOfEntries, entriesOf } from '../support/server/entries.ts';
import { eventually } from '../support/server/patience.ts';
import { createApplication, startRelay } from './relayed.ts';

const orders = 'create table orders (id int primary key, title text, total numeric)';
const tables = { 'public.orders': { entity: 'order', name: 'title' } };

test('whatever writes rows: each change is an entry, by the actor of its transaction', async () => {
  const application = await createApplication(orders, tables);
  const { pool, history } = application;
  startRelay(application);
  await pool.query(
    `begin; select set_config('annals.actor', 'Jane Doe', true), set_config('annals.context', '{"ip": "10.0.0.1"}', true);
     insert into orders values (1, 'one', 1.10); commit`,
  );
  await pool.query(`update orders set total = 2.50; update orders set total = 2.5`);
  await pool.query(`insert into orders values (1, 'new', 3) on conflict (id) do update set title = excluded.title`);
  await pool.query(
    `merge into orders o using (values (1), (2)) as v (id) on o.id = v.id
       when matched then delete when not matched then insert values (v.id, 'merged', 0)`,
  );
  await pool.query(`begin; insert into orders values (9, 'never', 9); rollback`);
  await pool.query('truncate orders');
  await eventually(() => entriesOf(history)).toHaveLength(6);
  const entries = await entriesOf(history);
  const byId = (id: string) =>
    entries
      .filter(({ entityId }) => entityId === id)
      .map(({ type, actor, context, paths }) => [type, actor, context, paths]);
  expect(byId('1')).toEqual([
    ['create', 'Jane Doe', '{"ip":"10.0.0.1"}', { id: { after: 1 }, title: { after: 'one' }, total: { after: 1.1 } }],
    ['update', 'unknown', null, { total: { before: 1.1, after: 2.5 } }],
    ['update', 'unknown', null, { title: { before: 'one', after: 'new' } }],
    ['delete', 'unknown', null, { id: { before: 1 }, title: { before: 'new' }, total: { before: 2.5 } }],
  ]);
  expect(byId('2')).toEqual([
    ['create', 'unknown', null, { id: { after: 2 }, title: { after: 'merged' }, total: { after: 0 } }],
    ['delete', 'unknown', null, { id: { before: 2 }, title: { before: 'merged' }, total: { before: 0 } }],
  ]);
  await eventually(async () => (await pool.query('select 1 from annals.outbox')).rowCount).toBe(0);
});

test('masked and ignored values are in neither database, and a masked value that changes is told', async () => {
  const application = await createApplication(
    'create table orders (id int primary key, card text, note text, payload jsonb, extra text)',
    {
      'public.orders': {
        entity: 'order',
        mask: ['card', 'payload.cards.number', 'payload.*.secret', 'extra.pin'],
        ignore: ['note', 'payload.etag'],
        json: ['extra'],
      },
    },
  );
  const { pool, history } = application;
  const payload = (number: string, etag: string) =>
    JSON.stringify({
      cards: [{ number }, { number: 'canary-2', kind: 'v' }],
      a: { secret: 'canary-3' },
      etag: `canary-${etag}`,
    });
  const insert = 'insert into orders values ($1, $2, $3, $4, $5)';
  await pool.query(insert, [1, 'canary-1', 'canary-n', payload('canary-4', 'x'), '{"pin":"canary-5","b":1}']);
  await pool.query('update orders set note = $1, payload = $2', ['canary-m', payload('canary-4', 'y')]);
  await pool.query('update orders set card = $1, payload = $2', ['canary-6', payload('canary-7', 'y')]);
  await pool.query('update orders set card = null');
  const waiting = await pool.query('select o::text as row from annals.outbox o');
  expect(waiting.rows.map(({ row }) => row).join()).not.toContain('canary');
  startRelay(application);
  await eventually(() => entriesOf(history)).toHaveLength(3);
  const entries = await entriesOf(history);
  expect(JSON.stringify(entries)).not.toContain('canary');
  expect(entries.map(({ paths }) => paths)).toEqual([
    {
      id: { after: 1 },
      card: { after: '********' },
      'payload.a.secret': { after: '********' },
      'payload.cards': { after: [{ number: '********' }, { kind: 'v', number: '********' }] },
      'extra.pin': { after: '********' },
      'extra.b': { after: 1 },
    },
    {
      card: { before: '********', after: '********' },
      'payload.cards.0.number': { before: '********', after: '********' },
    },
    { card: { before: '********', after: null } },
  ]);
});

test('the application needs no rights on the outbox and gets none, also below row-level security', async () => {
  const application = await createApplication(
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

test('a row that moves between partitions is one update, and a truncate of one partition deletes its documents', async () => {
  const application = await createApplication(
    `create table orders (id int, region text, title text, primary key (id, region)) partition by list (region);
     create table north partition of orders for values in ('north');
     create table south partition of orders for values in ('south')`,
    { 'public.orders': { entity: 'order', id: ['id'] } },
  );
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

test('each row of a statement belongs to itself, and the order of the statements is kept', async () => {
  const application = await createApplication(orders, tables);
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
  const warning = 'the table now needs a trigger for each row: run annals outbox again';
  await eventually(() => warnings).toEqual([warning]);
  await application.install();
  expect(await triggers('orders')).toEqual(byRow);
  await pool.query('drop trigger audit on orders');
  await application.install();
  expect(await triggers('orders')).toEqual(byStatement);
});

test('a table that the mapping names no longer loses its triggers', async () => {
  const application = await createApplication(`${orders}; create table old (id int primary key)`, {
    ...tables,
    'public.old': { entity: 'old' },
  });
  const { pool } = application;
  await pool.query(outboxSql(readMapping(JSON.stringify({ ...application.mapping, tables }))));
  expect((await pool.query(triggersOf, ['old'])).rows[0].names).toBeNull();
  expect((await pool.query(triggersOf, ['orders'])).rows[0].names).toEqual(byStatement);
});

test('a truncate above read committed is refused: it would not see every row', async () => {
  const { pool } = await createApplication(orders, tables);
  await expect(pool.query('begin isolation level repeatable read; truncate orders; commit')).rejects.toThrow(
    'read committed',
  );
  await pool.query('rollback');
});

test('columns that come and go do not disturb the application', async () => {
  const application = await createApplication(
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
    { size: { before: null, after: 4 } },
  ]);
});

test('a row that cannot be written as JSON does not fail the application, and is kept aside', async () => {
  const application = await createApplication(
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

test('a change can be written by hand, and the rules of its entity apply', async () => {
  const application = await createApplication(orders, tables, { entities: { note: { mask: ['secret'] } } });
  const { pool, history } = application;
  await pool.query(`select annals.record('note', '7', null, '{"a": 1, "secret": "canary"}', name => 'Seven')`);
  expect((await pool.query('select o::text as row from annals.outbox o')).rows[0].row).not.toContain('canary');
  startRelay(application);
  await eventually(() => entriesOf(history)).toHaveLength(1);
  expect((await entriesOf(history))[0]).toMatchObject({
    entity: 'note',
    entityId: '7',
    name: 'Seven',
    paths: { a: { after: 1 }, secret: { after: '********' } },
  });
});

test('two relays and four writers: each document in the order of its changes, and nothing twice', async () => {
  const application = await createApplication('create table items (id int primary key, version int)', {
    'public.items': { entity: 'item' },
  });
  const { pool, history } = application;
  startRelay(application);
  startRelay(application);
  await pool.query('insert into items select n, 0 from generate_series(1, 8) n');
  await Promise.all(
    [0, 1, 2, 3].map(async (writer) => {
      for (let round = 0; round < 40; round++) {
        await pool.query('update items set version = version + 1 where id = $1', [1 + ((writer + round) % 8)]);
      }
    }),
  );
  await eventually(() => entriesOf(history)).toHaveLength(168);
  const entries = await entriesOf(history);
  for (let id = 1; id <= 8; id++) {
    const versions = entries.filter(({ entityId }) => entityId === String(id)).map(({ paths }) => paths.version?.after);
    expect(versions).toEqual(Array.from({ length: 21 }, (_, version) => version));
  }
});

// More of them: ANNALS_KILLS=30
const kills = Number(process.env.ANNALS_KILLS ?? 1);

test('kill -9 of the relay: every committed change is an entry exactly once', async () => {
  const application = await createApplication(
    `create table items (id int primary key, version int);
     create table happened (id int, version int);
     create function happen() returns trigger language plpgsql as
       $$ begin insert into happened values (new.id, new.version); return new; end $$;
     create trigger happen after insert or update on items for each row execute function happen()`,
    { 'public.items': { entity: 'item' } },
  );
  const { pool, history, mapping, url } = application;
  const folder = await mkdtemp(join(tmpdir(), 'annals-relay-'));
  const file = join(folder, 'mapping.json');
  await writeFile(file, JSON.stringify(mapping));
  const key = Buffer.alloc(32, 7).toString('base64');
  const environment = { DATABASE_URL: history.url, ANNALS_SECRET_KEY: key, ANNALS_SOURCE_URL: url };
  const start = () => startAnnals(['relay', '--mapping', file], environment);
  let isWriting = true;
  await pool.query('insert into items select n, 0 from generate_series(1, 8) n');
  const writers = [0, 1, 2, 3].map(async (writer) => {
    for (let round = 0; isWriting; round++) {
      await pool.query('update items set version = version + 1 where id = $1', [1 + ((writer + round) % 8)]);
      // The relay shall not have to catch up with a busy machine's writers for long.
      await sleep(5);
    }
  });
  for (let kill = 0; kill < kills; kill++) {
    const running = start();
    await running.firstLine;
    const before = await countOfEntries(history);
    await eventually(() => countOfEntries(history)).toBeGreaterThan(before);
    running.process.kill('SIGKILL');
    await running.ended;
  }
  isWriting = false;
  await Promise.all(writers);
  const last = start();
  const { rows: happened } = await pool.query('select id::text, version from happened order by id, version');
  await eventually(() => countOfEntries(history)).toBe(happened.length);
  const recorded = (await entriesOf(history)).map(({ entityId, paths }) => ({
    id: entityId,
    version: paths.version?.after,
  }));
  expect(recorded.toSorted((one, other) => one.id.localeCompare(other.id))).toEqual(happened);
  last.process.kill('SIGTERM');
  expect((await last.ended).code).toBe(0);
  await rm(folder, { recursive: true });
});

test('the SQL may run again, refuses a schema that is not ours, and is removed once the outbox is empty', async () => {
  const application = await createApplication(orders, tables);
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
  await expect(application.install()).rejects.toThrow('that is not the outbox of Annals');
  await pool.query('rollback');
  await expect(startRelay(application).ended).rejects.toThrow('the source has no outbox');
});

test('a batch of the relay is a trace with its steps, a look that finds nothing is none, and the port tells what waits', async () => {
  const { spans, tracer } = await startTracing();
  const application = await createApplication(orders, tables);
  const metrics = new Metrics();
  measureRelay(metrics, readSource(application.url));
  const source = new Metrics();
  measureRelay(source, readSource(application.url.replace(/:\d+\//, ':9/')));
  await application.pool.query("insert into orders values (1, 'a title that no span may have', 1)");
  const text = await textOf([await metrics.read()]);
  expect(text).toMatch(/^annals_relay_source_up 1$/m);
  expect(text).toMatch(/^annals_relay_pending_changes 1$/m);
  expect(text).toMatch(/^annals_relay_oldest_seconds [\d.e-]+$/m);
  const away = await textOf([await source.read()]);
  expect(away).toMatch(/^annals_relay_source_up 0$/m);
  expect(away).not.toContain('annals_relay_pending_changes ');

  const { stop } = startRelay(application, tracer);
  await eventually(() => entriesOf(application.history)).toHaveLength(1);
  await stop();
  await tracer.close();
  expect(treesOf(spans)).toEqual([
    { name: 'relay', changes: 1, hasFailed: false, steps: ['delete', 'map', 'read', 'record'] },
  ]);
  expect(JSON.stringify(spans)).not.toContain('no span may');
});
