import { mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createPool } from '../../src/postgres/connections/pool.ts';
import { migrate } from '../../src/postgres/migrate/migrate.ts';
import { readMigrations, type SchemaFolders } from '../../src/postgres/schema/read-schema.ts';
import {
  createEmptyTestDatabase,
  createSingleTestDatabase,
  createTestDatabaseForThisTest,
  type TestDatabase,
} from '../support/server/database.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

let database: TestDatabase;
let folder: string;
let folders: SchemaFolders;

beforeEach(async () => {
  database = await createEmptyTestDatabase();
  folder = temporaryFolder();
  folders = { migrations: folder, routines: join(folder, 'sql') };
  await writeRoutine('version.txt', '1\n');
});

afterEach(async () => {
  await database.drop();
});

async function writeMigration(name: string, text: string): Promise<void> {
  await writeFile(join(folder, name), text);
}

async function writeRoutine(file: string, text: string): Promise<void> {
  const path = join(folders.routines, file);
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, text);
}

async function removeRoutine(file: string): Promise<void> {
  await rm(join(folders.routines, file));
}

async function signatures(): Promise<string[]> {
  const { rows } = await database.pool.query<{ signature: string }>(
    `select oid::regprocedure::text as signature from pg_proc where pronamespace = 'public'::regnamespace order by 1`,
  );
  return rows.map(({ signature }) => signature);
}

async function ask(expression: string): Promise<unknown> {
  const { rows } = await database.pool.query<{ value: unknown }>(`select ${expression} as value`);
  return rows[0]?.value;
}

test('a copy of a cluster’s database without its shards is refused', async () => {
  const { pool } = await createTestDatabaseForThisTest(createSingleTestDatabase);
  await pool.query('create sequence change_number');
  await expect(migrate(pool)).rejects.toThrow('The database is a copy of one that a cluster distributes');
  await pool.query('drop sequence change_number');
  expect(await migrate(pool)).toEqual([]);
});

test('several processes that migrate at once run each migration once and apply the routines once', async () => {
  await writeMigration('0001-one.sql', 'create table one (n integer); insert into one values (1)');
  await writeMigration('0002-two.sql', 'select pg_sleep(0.1); insert into one values (2)');
  await writeRoutine('room/two.sql', `create function two() returns integer language sql as 'select 2'`);
  const pools = Array.from({ length: 5 }, () => createPool(database.url));
  const ran = await Promise.all(pools.map((pool) => migrate(pool, folders)));
  await Promise.all(pools.map((pool) => pool.end()));
  expect(ran.flat().sort()).toEqual(['0001-one.sql', '0002-two.sql']);
  const { rows } = await database.pool.query('select n from one order by n');
  expect(rows).toEqual([{ n: 1 }, { n: 2 }]);
  expect(await ask('two()')).toBe(2);
  expect(await ask('(select count(*) from routine_set)')).toBe(1);
});

test('several processes of the package migrate an empty database at once, and later there is nothing to do', async () => {
  const pools = Array.from({ length: 3 }, () => createPool(database.url, { maximum: 2 }));
  const ran = await Promise.all(pools.map((pool) => migrate(pool)));
  await Promise.all(pools.map((pool) => pool.end()));
  expect(ran.flat().length).toBe(new Set(ran.flat()).size);
  expect(ran.flat().sort()[0]).toBe('0001-baseline.sql');
  expect(await migrate(database.pool)).toEqual([]);
});

test('a migration that fails leaves nothing of itself behind and is tried again', async () => {
  await writeMigration('0001-one.sql', 'create table one (n integer); select 1/0');
  await expect(migrate(database.pool, folders)).rejects.toThrow('The migration 0001-one.sql failed: division by zero');
  await writeMigration('0001-one.sql', 'create table one (n integer)');
  expect(await migrate(database.pool, folders)).toEqual(['0001-one.sql']);
});

test('a database newer than the program is refused', async () => {
  await writeMigration('0001-one.sql', 'select 1');
  await writeMigration('0007-seven.sql', 'select 1');
  await migrate(database.pool, folders);
  await rm(join(folder, '0007-seven.sql'));
  await expect(migrate(database.pool, folders)).rejects.toThrow(
    'The database was brought to 0007-seven.sql by a newer version of Annals; this one knows it only up to number 1.',
  );
});

test('a migration that was edited after it was applied stops the start, by its name', async () => {
  await writeMigration('0001-one.sql', 'create table one (n integer);\n');
  await writeMigration('0002-two.sql', 'select 1');
  await migrate(database.pool, folders);
  await writeMigration('0001-one.sql', 'create table one (n integer);\r\n');
  expect(await migrate(database.pool, folders)).toEqual([]);
  await writeMigration('0001-one.sql', 'create table one (n bigint);\n');
  await expect(migrate(database.pool, folders)).rejects.toThrow(
    'The migration 0001-one.sql was edited after the database had applied 0001-one.sql.',
  );
});

test('a migration under the number of another one, or that the program does not know, stops the start', async () => {
  await writeMigration('0001-one.sql', 'select 1');
  await writeMigration('0002-two.sql', 'select 2');
  await migrate(database.pool, folders);
  await rm(join(folder, '0001-one.sql'));
  await expect(migrate(database.pool, folders)).rejects.toThrow('has the migration 0001-one.sql, which this version');
  await writeMigration('0001-uno.sql', 'select 1');
  await expect(migrate(database.pool, folders)).rejects.toThrow(
    'The migration 0001-uno.sql was edited after the database had applied 0001-one.sql.',
  );
});

test('two migrations of the same number, or a file named otherwise, are refused', async () => {
  await writeMigration('0001-one.sql', '');
  await writeMigration('0001-uno.sql', '');
  await expect(readMigrations(folder)).rejects.toThrow('0001-uno.sql and 0001-one.sql have the same number');
  await rm(join(folder, '0001-uno.sql'));
  await writeMigration('later.sql', '');
  await expect(readMigrations(folder)).rejects.toThrow('later.sql is not named like a migration');
});

test('routines are replaced, change their signature and result, come and go with the folder; others stay', async () => {
  await writeRoutine('a/one.sql', `create function one() returns integer language sql as 'select two() - 1'`);
  await writeRoutine('b/two.sql', `-- Two.\n\ncreate function two() returns integer language sql as 'select 2'`);
  await writeRoutine('b/gone.sql', `create procedure gone() language sql as 'select 1'`);
  await database.pool.query(`create function foreign_to_annals() returns integer language sql as 'select 7'`);
  await database.pool.query(`create function one(of_the_user text) returns text language sql as 'select of_the_user'`);
  await migrate(database.pool, folders);
  expect(await signatures()).toEqual(['foreign_to_annals()', 'gone()', 'one()', 'one(text)', 'two()']);
  expect(await ask('one()')).toBe(1);

  await writeRoutine(
    'b/two.sql',
    `create function two(plus integer default 1) returns bigint language sql as 'select 2::bigint + plus'`,
  );
  await writeRoutine('a/one.sql', `create function one() returns text language sql as 'select (two() - 1)::text'`);
  await removeRoutine('b/gone.sql');
  await migrate(database.pool, folders);
  expect(await signatures()).toEqual(['foreign_to_annals()', 'one()', 'one(text)', 'two(integer)']);
  expect(await ask('one()')).toBe('2');
});

test('an aggregate is rebuilt together with the function it is made of', async () => {
  const step = (type: string) =>
    `create function step(so_far ${type}, next ${type}) returns ${type} language sql immutable as 'select so_far + next'`;
  const all = (type: string) => `create aggregate all_of(${type}) (sfunc = step, stype = ${type}, initcond = '0')`;
  await writeRoutine('a/step.sql', step('integer'));
  await writeRoutine('a/all_of.sql', all('integer'));
  await migrate(database.pool, folders);
  expect(await ask('(select all_of(n) from generate_series(1, 4) n)')).toBe(10);
  await writeRoutine(
    'a/step.sql',
    step('bigint').replace('so_far bigint', 'before bigint').replace('so_far +', 'before +'),
  );
  await writeRoutine('a/all_of.sql', all('bigint'));
  await migrate(database.pool, folders);
  expect(await signatures()).toEqual(['all_of(bigint)', 'step(bigint,bigint)']);
  // only another name of a parameter: it cannot be replaced, nor dropped below its aggregate
  await writeRoutine('a/step.sql', step('bigint'));
  await migrate(database.pool, folders);
  expect(await ask('(select all_of(n) from generate_series(1, 4) n)')).toBe(10);
});

test('a routine that is wrong changes nothing, and is named', async () => {
  await writeRoutine('a/one.sql', `create function one() returns integer language sql as 'select 1'`);
  await migrate(database.pool, folders);
  await writeRoutine('a/one.sql', `create function one() returns integer language sql as 'select 2'`);
  await writeRoutine(
    'a/two.sql',
    `create function two() returns integer language sql as 'select nothing_of_the_kind()'`,
  );
  await expect(migrate(database.pool, folders)).rejects.toThrow(
    'sql/a/two.sql cannot be applied: function nothing_of_the_kind() does not exist',
  );
  await writeRoutine(
    'a/two.sql',
    'create function two() returns integer language plpgsql as $$ begin retrun 2; end $$',
  );
  await expect(migrate(database.pool, folders)).rejects.toThrow('sql/a/two.sql cannot be applied: syntax error');
  await writeRoutine('a/two.sql', `create function three() returns integer language sql as 'select 3'`);
  await expect(migrate(database.pool, folders)).rejects.toThrow(
    'sql/a/two.sql does not begin with "create function two("',
  );
  expect(await ask('one()')).toBe(1);
});

test('an older version brings back no routines: not of a lower version, nor a set that was replaced', async () => {
  const write = (value: number) =>
    writeRoutine('a/one.sql', `create function one() returns integer language sql as 'select ${value}'`);
  await write(1);
  await migrate(database.pool, folders);
  await write(2);
  await migrate(database.pool, folders);
  await write(1);
  await expect(migrate(database.pool, folders)).rejects.toThrow('Another version of Annals has replaced the routines');
  await writeRoutine('version.txt', '2\n');
  await migrate(database.pool, folders);
  expect(await ask('one()')).toBe(1);
  await write(3);
  await writeRoutine('version.txt', '1\n');
  await expect(migrate(database.pool, folders)).rejects.toThrow(
    'The database has routines of version 2 from a newer version of Annals; this one has version 1.',
  );
  expect(await ask('one()')).toBe(1);
});
