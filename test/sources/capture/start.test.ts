import { describe, expect, test } from 'vitest';
import { readSource } from '../../../src/postgres/source/source.ts';
import { readMapping } from '../../../src/recording/mapping/read-mapping.ts';
import { captureScript } from '../../../src/sources/capture/capture-script.ts';
import { removeCapture } from '../../../src/sources/capture/setup.ts';
import type { TestDatabase } from '../../support/server/database.ts';
import { entriesOf } from '../../support/server/entries.ts';
import { eventually } from '../../support/server/patience.ts';
import type { SourceDatabase } from '../../support/server/source-server.ts';
import { tenant } from '../history.ts';
import { type CaptureSetup, createHistory, startCapture, useCaptureDatabases } from './captured.ts';

const databases = useCaptureDatabases();

const orders = 'create table orders (id int primary key, title text); alter table orders replica identity full';
const tables = { 'public.orders': { entity: 'order' } };

async function prepared(
  definition = orders,
): Promise<CaptureSetup & { source: SourceDatabase; history: TestDatabase }> {
  const source = databases.openSource();
  await source.pool.query(definition);
  return { source, history: databases.openHistory(), tables };
}

/** The server ends its side of a replication connection a moment after the client has left. */
async function slotIsFree({ pool, slot }: CaptureSetup['source']): Promise<void> {
  const active = 'select count(*)::int as count from pg_replication_slots where slot_name = $1 and active';
  await eventually(async () => (await pool.query<{ count: number }>(active, [slot])).rows[0]?.count).toBe(0);
}

const idsOf = async (history: TestDatabase) =>
  (await entriesOf(history)).map(({ type, entityId }) => `${type} ${entityId}`);

describe('the application is never broken', () => {
  test('a table without replica identity is refused with the statement to run, and nothing is published', async () => {
    const setup = await prepared('create table orders (id int, title text)');
    const tablesWithId = { 'public.orders': { entity: 'order', id: ['id'] } };
    await expect(startCapture({ ...setup, tables: tablesWithId }).ended).rejects.toThrow(
      'alter table "public"."orders" replica identity full;',
    );
    await setup.source.pool.query(`insert into orders values (1, 'one')`);
    await setup.source.pool.query(`update orders set title = 'two'`);
    const { rows } = await setup.source.pool.query('select 1 from pg_publication');
    expect(rows).toEqual([]);
    await startCapture({ ...setup, tables: tablesWithId, choice: { alter: true } }).running;
    await setup.source.pool.query(`update orders set title = 'three'`);
    await eventually(() => idsOf(setup.history)).toEqual(['update 1']);
  });

  test('a name outside of the replica identity is refused', async () => {
    const setup = await prepared('create table orders (id int primary key, title text)');
    const named = { 'public.orders': { entity: 'order', name: 'title' } };
    await expect(startCapture({ ...setup, tables: named }).ended).rejects.toThrow(
      'title is not in its replica identity',
    );
  });

  test('every partition needs the identity of its root, and a partitioned table needs a primary key', async () => {
    const setup = await prepared(
      `create table orders (id int, region text, primary key (id, region)) partition by list (region);
       create table orders_north partition of orders for values in ('north');
       alter table orders replica identity full;
       create table log (id int, region text) partition by list (region);
       alter table log replica identity full`,
    );
    await expect(startCapture(setup).ended).rejects.toThrow(
      'alter table "public"."orders_north" replica identity full;',
    );
    const log = { 'public.log': { entity: 'log', id: ['id'] } };
    await expect(startCapture({ ...setup, tables: log }).ended).rejects.toThrow(
      'is partitioned and has no primary key',
    );
    await setup.source.pool.query(
      `alter table log add primary key (id, region) deferrable; create table log_north partition of log for values in ('north');
       alter table log_north replica identity full`,
    );
    await expect(startCapture({ ...setup, tables: log }).ended).rejects.toThrow(
      'has no primary key but a deferrable one',
    );
  });

  test('a role without rights gets the statements for an owner, and after them capture works', async () => {
    const setup = await prepared();
    const { pool, slot } = setup.source;
    const role = `role_${slot}`;
    await pool.query(`create role ${role} login password 'hunter2'; grant select on orders to ${role}`);
    try {
      const url = new URL(setup.source.url);
      url.username = role;
      url.password = 'hunter2';
      const start = () => startCapture({ ...setup, url: url.href });
      const forbidden = await start().ended.catch((error: Error) => error.message);
      expect(forbidden).toContain('alter role NAME replication;');
      expect(forbidden).not.toContain('hunter2');
      await pool.query(`alter role ${role} replication`);
      const refused = await start().ended.catch((error: Error) => error.message);
      expect(refused).toContain('Let an owner run');
      const statements = String(refused).split('\n').slice(1).join('\n');
      await pool.query(statements);
      const running = start();
      await running.running;
      await pool.query(`insert into orders values (1, 'one')`);
      await eventually(() => idsOf(setup.history)).toEqual(['create 1']);
      await running.stop();
      await expect(removeCapture(readSource(url.href), slot)).rejects.toThrow(`drop publication "${slot}";`);
    } finally {
      await pool.query(`drop owned by ${role}; drop role ${role}`);
    }
  });

  test('a slot of another database of the server is named with that database, and --remove leaves it alone', async () => {
    const setup = await prepared();
    const secondSource = await databases.openSecondSource();
    await secondSource.pool.query(orders);
    const running = startCapture(setup);
    await running.running;
    await running.stop();
    await slotIsFree(setup.source);
    const name = (url: string) => new URL(url).pathname.slice(1);
    const { slot } = setup.source;
    const elsewhere = { ...setup, history: await createHistory(), source: { ...secondSource, slot } };
    await expect(startCapture(elsewhere).ended).rejects.toThrow(
      `the slot ${slot} belongs to the database ${name(setup.source.url)}, and this one is ${name(secondSource.url)}`,
    );
    expect((await secondSource.pool.query('select from pg_publication')).rowCount).toBe(0);
    const mapping = readMapping(JSON.stringify({ version: 1, tenant: { value: tenant }, tables }));
    await expect(captureScript(mapping, readSource(secondSource.url), slot)).rejects.toThrow('belongs to the database');
    expect(await removeCapture(readSource(secondSource.url), slot)).toEqual({ slot: false, publication: false });
    expect(await removeCapture(readSource(setup.source.url), slot)).toEqual({ slot: true, publication: true });
  });
});

describe('a gap is reported and never skipped', () => {
  interface Gap {
    what: string;
    message: string;
    make: (source: SourceDatabase, history: TestDatabase) => Promise<unknown>;
    /** Whether the slot starts over, so that what happened since is missing. */
    isLost: boolean;
  }
  const gaps: Gap[] = [
    {
      what: 'the slot was dropped',
      message: 'is missing',
      make: ({ pool, slot }) => pool.query('select pg_drop_replication_slot($1)', [slot]),
      isLost: true,
    },
    {
      what: 'the slot was dropped and made again',
      message: 'and the log was recorded until',
      make: async ({ pool, slot }) => {
        await pool.query('select pg_drop_replication_slot($1)', [slot]);
        await pool.query(`insert into orders values (50, 'between')`);
        await pool.query(`select pg_create_logical_replication_slot($1, 'pgoutput')`, [slot]);
      },
      isLost: false,
    },
    {
      what: 'the slot was advanced',
      message: 'and the log was recorded until',
      make: async ({ pool, slot }) => {
        await pool.query(`insert into orders values (50, 'between')`);
        await pool.query('select pg_replication_slot_advance($1, pg_current_wal_lsn())', [slot]);
      },
      isLost: false,
    },
    {
      what: 'the source was restored and its log ends before the position',
      message: "the source's log ends at",
      make: (_source, { pool }) =>
        pool.query(`update capture_position set commit_lsn = commit_lsn + 1000000000, end_lsn = end_lsn + 1000000000`),
      isLost: false,
    },
    {
      what: 'the source was restored and went another way',
      message: 'does not have the transaction',
      make: async ({ pool }, { pool: annals }) => {
        await pool.query(`insert into orders values (50, 'between')`);
        await annals.query(
          `update capture_position set xid = xid + 1, commit_lsn = commit_lsn + 1, end_lsn = end_lsn + 1`,
        );
      },
      isLost: false,
    },
    {
      what: 'Annals was restored',
      message: 'and the log was recorded until',
      make: (_source, { pool }) =>
        pool.query(`update capture_position set end_lsn = end_lsn - 1000, commit_lsn = commit_lsn - 1000`),
      isLost: false,
    },
    {
      what: 'Annals lost the position',
      message: 'Annals has no position for it',
      make: (_source, { pool }) => pool.query('delete from capture_position'),
      isLost: false,
    },
    {
      what: 'the source is another server',
      message: 'another server',
      make: (_source, { pool }) => pool.query(`update capture_position set system_identifier = '1'`),
      isLost: false,
    },
    {
      what: 'the publication was dropped',
      message: 'publication',
      make: ({ pool, slot }) => pool.query(`drop publication ${slot}`),
      isLost: true,
    },
    {
      what: 'the publication was altered',
      message: 'was altered',
      make: ({ pool, slot }) => pool.query(`alter publication ${slot} set (publish = 'insert')`),
      isLost: true,
    },
  ];

  test.each(gaps)('$what', async ({ make, message, isLost }) => {
    const setup = await prepared();
    const first = startCapture(setup);
    await first.running;
    await setup.source.pool.query(`insert into orders values (1, 'one')`);
    await eventually(() => idsOf(setup.history)).toEqual(['create 1']);
    await first.stop();
    await slotIsFree(setup.source);
    await make(setup.source, setup.history);
    await setup.source.pool.query(`insert into orders values (2, 'two')`);
    const failure = await startCapture(setup).ended.catch((error: Error) => error.message);
    expect(failure).toMatch(/^gap: /);
    expect(failure).toContain(message);
    expect(await idsOf(setup.history)).toEqual(['create 1']);

    const accepting = startCapture({ ...setup, choice: { acceptGap: true } });
    await accepting.running;
    await setup.source.pool.query(`insert into orders values (3, 'three')`);
    await eventually(() => idsOf(setup.history)).toContain('create 3');
    expect((await idsOf(setup.history)).includes('create 2')).toBe(!isLost);
    await accepting.stop();
    if (!isLost) return;

    await setup.source.pool.query('delete from orders where id = 1');
    const resyncing = startCapture({ ...setup, choice: { resync: true } });
    await resyncing.running;
    const ids = await idsOf(setup.history);
    expect(ids).toContain('create 2');
    expect(ids).toContain('delete 1');
    expect(new Set(ids).size).toBe(ids.length);
  });
});

describe('the snapshot', () => {
  test('what the history does not know is created, what differs updated, what is gone deleted, what is equal left alone', async () => {
    const setup = await prepared();
    const { source, history } = setup;
    await source.pool.query(`insert into orders select n, 'order ' || n from generate_series(1, 250) n`);
    const first = startCapture({ ...setup, choice: { snapshot: true } });
    await first.running;
    expect(await idsOf(history)).toHaveLength(250);
    await source.pool.query(`insert into orders values (251, 'live')`);
    await eventually(() => idsOf(history)).toHaveLength(251);
    await first.stop();
    await slotIsFree(source);
    await source.pool.query(`select pg_drop_replication_slot($1)`, [source.slot]);
    await source.pool.query(
      `update orders set title = 'changed' where id = 7; delete from orders where id = 9; insert into orders values (300, 'new')`,
    );
    await startCapture({ ...setup, choice: { resync: true } }).running;
    const entries = (await entriesOf(history)).slice(251);
    expect(entries.map(({ type, entityId, actor, paths }) => [type, entityId, actor, paths])).toEqual([
      ['update', '7', 'system', { title: { before: 'order 7', after: 'changed' } }],
      ['create', '300', 'system', { id: { after: 300 }, title: { after: 'new' } }],
      ['delete', '9', 'system', { id: { before: 9 }, title: { before: 'order 9' } }],
    ]);
  });

  test('a snapshot that was broken off starts over, also without the option', async () => {
    const setup = await prepared();
    const { source, history } = setup;
    await source.pool.query(`insert into orders values (1, 'one')`);
    const first = startCapture({ ...setup, choice: { snapshot: true } });
    await first.running;
    await first.stop();
    // As if it had been killed in the middle: the position says so, and only a part is recorded.
    await history.pool.query(`update capture_position set phase = 'copying'`);
    await source.pool.query(`insert into orders values (2, 'two')`);
    await startCapture(setup).running;
    expect(await idsOf(history)).toEqual(['create 1', 'create 2']);
  });

  test('a start without a snapshot records what comes, and --snapshot later does nothing', async () => {
    const setup = await prepared();
    await setup.source.pool.query(`insert into orders values (1, 'one')`);
    const first = startCapture(setup);
    await first.running;
    await first.stop();
    await startCapture({ ...setup, choice: { snapshot: true } }).running;
    await setup.source.pool.query(`insert into orders values (2, 'two')`);
    await eventually(() => idsOf(setup.history)).toEqual(['create 2']);
  });

  test('a policy that hides rows stops the snapshot', async () => {
    const setup = await prepared(
      `${orders}; insert into orders values (1, 'one'), (2, 'two');
       alter table orders enable row level security; create policy own on orders using (id = 1)`,
    );
    const { pool, slot, url } = setup.source;
    const role = `role_${slot}`;
    await pool.query(`create role ${role} login replication password 'hunter2'; grant select on orders to ${role}`);
    await pool.query(`create publication ${slot} for table only orders with (publish_via_partition_root = true)`);
    const asRole = new URL(url);
    asRole.username = role;
    asRole.password = 'hunter2';
    const refused = startCapture({ ...setup, url: asRole.href, choice: { snapshot: true } });
    await expect(refused.ended).rejects.toThrow('may not read every row');
    expect(await entriesOf(setup.history, tenant)).toEqual([]);
    await pool.query(`drop owned by ${role}; drop role ${role}`);
  });
});
