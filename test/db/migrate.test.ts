import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { migrate, readMigrations, type SchemaFolders } from '../../src/db/migrate.ts';
import { createPool } from '../../src/db/pool.ts';
import { createEmptyTestDatabase, type TestDatabase } from '../support/server/database.ts';

let database: TestDatabase;
let folder: string;
let folders: SchemaFolders;

beforeEach(async () => {
  database = await createEmptyTestDatabase();
  folder = await mkdtemp(join(tmpdir(), 'annals-migrations-'));
  folders = { migrations: folder, routines: join(folder, 'sql') };
  await mkdir(folders.routines);
});

afterEach(async () => {
  await database.drop();
  await rm(folder, { recursive: true });
});

test('the migrations of the package run on an empty database, and a second time there is nothing to do', async () => {
  const ran = await migrate(database.pool);
  expect(ran[0]).toBe('0001-tenants.sql');
  expect(await migrate(database.pool)).toEqual([]);
});

test('of several processes that migrate at once each migration is run by exactly one', async () => {
  await writeFile(join(folder, '0001-one.sql'), 'create table one (n integer); insert into one values (1)');
  await writeFile(join(folder, '0002-two.sql'), 'select pg_sleep(0.1); insert into one values (2)');
  const pools = Array.from({ length: 5 }, () => createPool(database.url));
  const ran = await Promise.all(pools.map((pool) => migrate(pool, folders)));
  await Promise.all(pools.map((pool) => pool.end()));
  expect(ran.flat().sort()).toEqual(['0001-one.sql', '0002-two.sql']);
  const { rows } = await database.pool.query('select n from one order by n');
  expect(rows).toEqual([{ n: 1 }, { n: 2 }]);
});

test('a migration that fails leaves nothing of itself behind and is tried again', async () => {
  const path = join(folder, '0001-one.sql');
  await writeFile(path, 'create table one (n integer); select 1/0');
  await expect(migrate(database.pool, folders)).rejects.toThrow('The migration 0001-one.sql failed: division by zero');
  await writeFile(path, 'create table one (n integer)');
  expect(await migrate(database.pool, folders)).toEqual(['0001-one.sql']);
});

test('a database newer than the program is refused', async () => {
  await writeFile(join(folder, '0001-one.sql'), 'select 1');
  await writeFile(join(folder, '0007-seven.sql'), 'select 1');
  await migrate(database.pool, folders);
  await rm(join(folder, '0007-seven.sql'));
  await expect(migrate(database.pool, folders)).rejects.toThrow(
    'The database was brought to 0007-seven.sql by a newer version of Annals; this one knows it only up to number 1.',
  );
});

test('two migrations of the same number, or a file named otherwise, are refused', async () => {
  await writeFile(join(folder, '0001-one.sql'), '');
  await writeFile(join(folder, '0001-uno.sql'), '');
  await expect(readMigrations(folder)).rejects.toThrow('0001-uno.sql and 0001-one.sql have the same number');
  await rm(join(folder, '0001-uno.sql'));
  await writeFile(join(folder, 'later.sql'), '');
  await expect(readMigrations(folder)).rejects.toThrow('later.sql is not named as a migration is');
});
