import pg from 'pg';
import { describe, expect, test } from 'vitest';
import { readSource } from '../../../src/postgres/source/source.ts';
import { readMapping } from '../../../src/recording/mapping/read-mapping.ts';
import { checkMappingAt } from '../../../src/sources/capture/check-mapping.ts';
import { entriesOf } from '../../support/server/entries.ts';
import { startPackagedPostgres } from '../../support/server/packaged-postgres.ts';
import { eventually } from '../../support/server/patience.ts';
import type { SourceDatabase } from '../../support/server/source-server.ts';
import { createHistory, startCapture, tenant, useCaptureDatabases } from './captured.ts';

const databases = useCaptureDatabases();

const stored = `create table stored (id int primary key, a int, s int generated always as (a * 2) stored);
  alter table stored replica identity full; insert into stored values (1, 1)`;
const virtual = `create table virtual (id int primary key, a int, v int generated always as (a * 2) virtual);
  alter table virtual replica identity full; insert into virtual values (1, 1)`;

/** Tables of this name, each an entity of its name. */
function mapped(name: string, rules: object = {}) {
  return { [`public.${name}`]: { entity: name, id: ['id'], ...rules } };
}

async function prepared(definition: string, tables: Record<string, object>) {
  const source = databases.openSource();
  await source.pool.query(definition);
  const history = databases.openHistory();
  const pathsOf = async () => (await entriesOf(history)).map(({ type, paths }) => [type, paths]);
  return { source, history, tables, pathsOf };
}

const published = async ({ pool }: SourceDatabase) =>
  (await pool.query<{ tablename: string }>('select tablename from pg_publication_tables order by 1')).rows.map(
    ({ tablename }) => tablename,
  );

async function reportOf({ url, slot }: SourceDatabase, tables: Record<string, object>) {
  const mapping = readMapping(JSON.stringify({ version: 1, tenant: { value: tenant }, tables }));
  const [report] = await checkMappingAt(mapping, readSource(url), slot);
  return report;
}

const both = [
  ['update', { a: { before: 1, after: 2 } }],
  ['delete', { id: { before: 1 }, a: { before: 2 } }],
];

describe('a stored generated column in the replica identity', () => {
  test('is published so that the application continues, and is not recorded', async () => {
    const { source, pathsOf, ...setup } = await prepared(stored, mapped('stored'));
    expect((await reportOf(source, setup.tables))?.missing).toEqual([]);
    await startCapture({ source, ...setup }).running;
    await source.pool.query('update stored set a = 2; delete from stored');
    await eventually(pathsOf).toEqual(both);
  });

  test('is published by a publication of an earlier version too, once capture starts; the check says what is missing', async () => {
    const { source, pathsOf, ...setup } = await prepared(stored, mapped('stored'));
    const first = startCapture({ source, ...setup });
    await first.running;
    await first.stop();
    await source.pool.query(`alter publication ${source.slot} set (publish_generated_columns = none)`);
    await expect(source.pool.query('update stored set a = 2')).rejects.toThrow('cannot update table');
    const statement = `alter publication "${source.slot}" set (publish_generated_columns = stored);`;
    expect((await reportOf(source, setup.tables))?.missing).toMatchObject([{ statement }]);
    await startCapture({ source, ...setup }).running;
    await source.pool.query('update stored set a = 2; delete from stored');
    await eventually(pathsOf).toEqual(both);
    expect((await reportOf(source, setup.tables))?.missing).toEqual([]);
  });

  test('may come while capture runs, also one that shows a masked column and stands before a new one', async () => {
    const tables = mapped('stored', { mask: ['card'] });
    const { source, pathsOf, ...setup } = await prepared(
      `create table stored (id int primary key, card text); alter table stored replica identity full;
       insert into stored values (1, 'canary-1')`,
      tables,
    );
    const running = startCapture({ source, ...setup });
    await running.running;
    await source.pool.query(`alter table stored add length text generated always as (card || '!') stored, add b int;
      update stored set card = 'canary-2', b = 1`);
    const masked = { card: { before: '********', after: '********' }, b: { before: null, after: 1 } };
    await eventually(pathsOf).toEqual([['update', masked]]);
    expect(running.messages.filter((message) => message.startsWith('gap'))).toEqual([]);
  });

  test('of the key: it is published, and its advice for another identity leaves the table writable', async () => {
    const { source, ...setup } = await prepared(
      'create table stored (a int, id int generated always as (a * 2) stored primary key); insert into stored values (1)',
      { 'public.stored': { entity: 'stored', id: ['a'] } },
    );
    const report = await reportOf(source, setup.tables);
    expect(report?.missing).toMatchObject([{ statement: 'alter table "public"."stored" replica identity full;' }]);
    await startCapture({ source, ...setup, choice: { alter: true } }).running;
    await source.pool.query('update stored set a = 2; delete from stored');
  });

  test('the advice for a table that others publish never breaks it', async () => {
    const { source, ...setup } = await prepared(
      `create table stored (id int primary key, a int, s int generated always as (a * 2) stored); insert into stored values (1, 1);
       create table listed (id int primary key, a int, b int); insert into listed values (1, 1, 1);
       create publication theirs for table stored, listed (id, a)`,
      { ...mapped('stored', { name: 'a' }), ...mapped('listed') },
    );
    for (const name of ['stored', 'listed']) {
      expect((await reportOf(source, mapped(name)))?.advice).toEqual([]);
    }
    await expect(startCapture({ source, ...setup, choice: { alter: true } }).ended).rejects.toThrow(
      'the publication theirs does not publish its generated columns',
    );
    await source.pool.query('update stored set a = 2; update listed set a = 2');
  });
});

describe('a virtual generated column', () => {
  test('with replica identity full: the table is refused by its name, and nothing is published', async () => {
    const { source, ...setup } = await prepared(virtual, mapped('virtual'));
    const statement = 'alter table "public"."virtual" replica identity default;';
    expect((await reportOf(source, setup.tables))?.missing).toEqual([
      { message: expect.stringContaining('public.virtual: its virtual generated column v'), statement },
    ]);
    await expect(startCapture({ source, ...setup }).ended).rejects.toThrow(statement);
    expect(await published(source)).toEqual([]);
    await source.pool.query('update virtual set a = 2');
  });

  test('--alter takes a unique index that has the name too; where there is none, the table is refused and stays writable', async () => {
    const tables = mapped('virtual', { name: 'a' });
    const { source, pathsOf, ...setup } = await prepared(
      `${virtual}; alter table virtual replica identity default`,
      tables,
    );
    const start = () => startCapture({ source, ...setup, choice: { alter: true } });
    await expect(start().ended).rejects.toThrow('create a unique index of not null columns with id, a');
    for (const index of ['(id, a)', '(id, a) where a > 0', '(id, (a + 1))']) {
      await source.pool.query(`create unique index on virtual ${index}`);
    }
    await expect(start().ended).rejects.toThrow('create a unique index of not null columns with id, a');
    expect(await published(source)).toEqual([]);
    await source.pool.query('update virtual set a = 2; alter table virtual alter a set not null');
    await start().running;
    await source.pool.query('update virtual set a = 3');
    await eventually(pathsOf).toEqual([['update', { a: { before: 2, after: 3 } }]]);
  });

  test('--identity full leaves it with its key and says so; the others get full', async () => {
    const { source, ...setup } = await prepared(
      `${virtual}; alter table virtual replica identity default; ${stored}; alter table stored replica identity default`,
      { ...mapped('virtual'), ...mapped('stored') },
    );
    expect((await reportOf(source, mapped('virtual')))?.advice).toEqual([]);
    const running = startCapture({ source, ...setup, choice: { alter: true, identity: 'full' } });
    await running.running;
    expect(running.messages).toContain(
      'public.virtual keeps its replica identity, because its virtual generated column v can never be published',
    );
    const { rows } = await source.pool.query(
      `select relname, relreplident from pg_class where relname in ('stored', 'virtual') order by 1`,
    );
    expect(rows).toEqual([
      { relname: 'stored', relreplident: 'f' },
      { relname: 'virtual', relreplident: 'd' },
    ]);
    await source.pool.query('update virtual set a = 2; update stored set a = 2');
  });

  test('of partitions: the root and each partition get the key', async () => {
    const { source, pathsOf, ...setup } = await prepared(
      `create table parted (id int primary key, a int, v int generated always as (a * 2) virtual) partition by range (id);
       create table low partition of parted for values from (0) to (10); alter table parted replica identity full;
       alter table low replica identity full; insert into parted values (1, 1)`,
      mapped('parted'),
    );
    await expect(startCapture({ source, ...setup }).ended).rejects.toThrow(
      'public.low: its virtual generated column v',
    );
    await startCapture({ source, ...setup, choice: { alter: true } }).running;
    await source.pool.query(`create table high partition of parted for values from (10) to (20);
      update parted set a = 2; update low set a = 3; update parted set id = 11; update high set a = 4; delete from parted`);
    await eventually(async () => (await pathsOf()).length).toBe(6);
  });
});

test('a deferrable primary key is no replica identity', async () => {
  const { source, pathsOf, ...setup } = await prepared(
    'create table later (id int primary key deferrable, a int); insert into later values (1, 1)',
    mapped('later'),
  );
  await expect(startCapture({ source, ...setup }).ended).rejects.toThrow('public.later has no replica identity');
  await source.pool.query('update later set a = 1');
  await startCapture({ source, ...setup, choice: { alter: true } }).running;
  await source.pool.query('update later set a = 2; delete from later');
  await eventually(pathsOf).toEqual(both);
});

test('PostgreSQL of the version that Debian packages: stored columns never fail an update, with the key, full and a deferrable key', async () => {
  const { url } = await startPackagedPostgres({ settings: { wal_level: 'logical' } });
  const pool = new pg.Pool({ connectionString: url });
  pool.on('error', () => {});
  const source = { url, slot: 'annals_old', pool };
  const history = await createHistory();
  await pool.query(`${stored}; create table keyed (id int primary key, a int, s int generated always as (a * 2) stored);
      create table later (id int primary key deferrable, a int); insert into keyed values (1, 1); insert into later values (1, 1)`);
  const tables = { ...mapped('stored'), ...mapped('keyed'), ...mapped('later') };
  const report = await reportOf(source, mapped('keyed'));
  expect(report?.missing).toEqual([]);
  expect(report?.advice).toMatchObject([{ statement: 'alter table "public"."keyed" replica identity full;' }]);
  await expect(startCapture({ source, history, tables }).ended).rejects.toThrow('public.later has no replica identity');
  await pool.query('update later set a = 1; update keyed set a = 1; update stored set a = 1');
  const running = startCapture({ source, history, tables, choice: { alter: true, identity: 'full' }, heartbeat: 100 });
  await running.running;
  await pool.query('update later set a = 2; update keyed set a = 2; update stored set a = 2');
  await pool.query('delete from later; delete from keyed; delete from stored');
  const paths = async () => (await entriesOf(history)).map(({ type, paths: found }) => [type, found]);
  await eventually(paths).toEqual([both[0], both[0], both[0], both[1], both[1], both[1]]);
  await pool.query('alter table stored add b int generated always as (a * 3) stored; insert into stored values (2, 1)');
  await pool.query('alter table stored replica identity nothing');
  await eventually(async () => running.messages.filter((message) => message.startsWith('gap'))).toHaveLength(1);
  await pool.query('update stored set a = 2');
  await running.stop();
  await pool.end();
});
