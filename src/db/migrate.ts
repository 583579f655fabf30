import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type pg from 'pg';
import { packageFolder } from '../package-folder.ts';
import { applyRoutines } from './apply-routines.ts';
import { type Routine, readRoutines } from './routines.ts';
import { inPoolTransaction } from './transaction.ts';

export interface Migration {
  number: number;
  name: string;
  path: string;
}

/** The folders that a schema is made of. */
export interface SchemaFolders {
  migrations: string;
  routines: string;
}

/** The database cannot be brought to what this version of Annals needs. */
export class MigrationError extends Error {
  constructor(message: string, options: { cause?: unknown } = {}) {
    super(message, options);
    this.name = 'MigrationError';
  }
}

const leastServerVersion = 15;
const fileName = /^(\d{4})-([a-z0-9-]+)\.sql$/;
// Any number does, as long as all versions of Annals use the same one.
const creationLock = 7_229_148_366;

/**
 * Brings the database to the current schema and returns the names of the migrations it ran. Migrations only go forward,
 * each in a transaction of its own: it begins by claiming its row, for which a second process waits, and which that one
 * then finds taken. Afterwards the routines of the database are made those of the folder, in one transaction.
 * Several processes may call this at once.
 */
export async function migrate(pool: pg.Pool, folders: SchemaFolders = packageSchema()): Promise<string[]> {
  const migrations = await readMigrations(folders.migrations);
  const routines = await readRoutines(folders.routines);
  await createLedger(pool);
  await refuseNewerDatabase(pool, migrations);
  const ran: string[] = [];
  for (const migration of migrations) {
    if (await run(pool, migration)) ran.push(migration.name);
  }
  await runRoutines(pool, routines);
  return ran;
}

/** The folders of this package. */
export function packageSchema(): SchemaFolders {
  return { migrations: join(packageFolder(), 'migrations'), routines: join(packageFolder(), 'sql') };
}

/** The migrations of a folder, in order. */
export async function readMigrations(folder: string): Promise<Migration[]> {
  const migrations: Migration[] = [];
  for (const file of (await readdir(folder)).filter((name) => name.endsWith('.sql')).sort()) {
    const match = fileName.exec(file);
    if (match === null) throw new MigrationError(`${file} is not named as a migration is: 0001-name.sql`);
    const number = Number(match[1]);
    const twin = migrations.find((other) => other.number === number);
    if (twin !== undefined) throw new MigrationError(`${file} and ${twin.name} have the same number`);
    migrations.push({ number, name: file, path: join(folder, file) });
  }
  return migrations;
}

async function createLedger(pool: pg.Pool): Promise<void> {
  const version = await pool.query<{ server_version_num: string }>('show server_version_num');
  const major = Math.floor(Number(version.rows[0]?.server_version_num) / 10_000);
  if (major < leastServerVersion) {
    throw new MigrationError(`DATABASE_URL names a PostgreSQL ${major}; Annals needs ${leastServerVersion} or later`);
  }
  await inPoolTransaction(pool, async (client) => {
    // "if not exists" alone still fails where two processes create at the same moment.
    await client.query('select pg_advisory_xact_lock($1)', [creationLock]);
    await client.query(`create table if not exists migration (
      number integer primary key,
      name   text not null,
      ran_at timestamptz not null default now()
    )`);
    await client.query(`create table if not exists routine (
      signature text primary key,
      name      text not null,
      hash      text not null
    )`);
    await client.query(`create table if not exists routine_set (
      hash       text primary key,
      applied_at timestamptz not null default now()
    )`);
  });
}

async function refuseNewerDatabase(pool: pg.Pool, migrations: Migration[]): Promise<void> {
  const newest = migrations.at(-1)?.number ?? 0;
  const { rows } = await pool.query<{ name: string }>(
    'select name from migration where number > $1 order by number desc limit 1',
    [newest],
  );
  if (rows[0] === undefined) return;
  throw new MigrationError(
    `The database was brought to ${rows[0].name} by a newer version of Annals; this one knows it only up to ` +
      `number ${newest}. Install that version, or give this one another database`,
  );
}

async function run(pool: pg.Pool, migration: Migration): Promise<boolean> {
  const text = await readFile(migration.path, 'utf8');
  return await inPoolTransaction(pool, async (client) => {
    const claim = await client.query(
      'insert into migration (number, name) values ($1, $2) on conflict (number) do nothing',
      [migration.number, migration.name],
    );
    if (claim.rowCount === 0) return false;
    try {
      await client.query(text);
    } catch (cause) {
      const message = cause instanceof Error ? cause.message : String(cause);
      throw new MigrationError(`The migration ${migration.name} failed: ${message}`, { cause });
    }
    return true;
  });
}

async function runRoutines(pool: pg.Pool, routines: Routine[]): Promise<void> {
  await inPoolTransaction(pool, async (client) => {
    await client.query('select pg_advisory_xact_lock($1)', [creationLock]);
    try {
      await applyRoutines(client, routines);
    } catch (cause) {
      const message = cause instanceof Error ? cause.message : String(cause);
      throw new MigrationError(`The routines of sql/ could not be brought into the database: ${message}`, { cause });
    }
  });
}
