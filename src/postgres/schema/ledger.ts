import type pg from 'pg';
import { OperatorError } from '../../core/errors.ts';
import type { Schema } from './read-schema.ts';

/** The oldest PostgreSQL that Annals supports. */
export const minServerVersion = 15;
// Any number, but the same in all versions of Annals.
const ledgerLock = 7_229_148_366;

/** What the database records about its schema. */
export interface Ledger {
  migrations: readonly { number: number; name: string; checksum: string }[];
  /** The sets of routines by hash. The set without `replaced` is the current one. */
  routineSets: readonly { hash: string; version: number; replaced: boolean }[];
}

/** Locks the ledger and the routines until the end of the transaction. */
export async function lockLedger(client: pg.ClientBase): Promise<void> {
  await client.query('select pg_advisory_xact_lock($1)', [ledgerLock]);
}

/** Throws an OperatorError if the server is too old. */
export async function checkServerVersion(pool: pg.Pool): Promise<void> {
  const { rows } = await pool.query<{ server_version_num: string }>('show server_version_num');
  const major = Math.floor(Number(rows[0]?.server_version_num) / 10_000);
  if (major < minServerVersion) {
    throw new OperatorError(`DATABASE_URL names a PostgreSQL ${major}; Annals needs ${minServerVersion} or later`);
  }
}

/**
 * Throws an OperatorError if the database is not in UTF-8. In other encodings, lengths and patterns may count bytes,
 * and some names cannot be stored.
 */
export async function checkEncoding(client: pg.ClientBase): Promise<void> {
  const { rows } = await client.query<{ server_encoding: string }>('show server_encoding');
  const encoding = rows[0]?.server_encoding;
  if (encoding !== 'UTF8') {
    throw new OperatorError(
      `The database has the encoding ${encoding}; Annals needs UTF8. Create one with: ` +
        "create database annals owner annals encoding 'UTF8' template template0",
    );
  }
}

/** The state of a database's ledger: none, one without checksums, or the current one. */
export async function ledgerState(client: pg.ClientBase | pg.Pool): Promise<'none' | 'unchecked' | 'current'> {
  const { rows } = await client.query<{ is_there: boolean; current: boolean }>(`
    select to_regclass('migration') is not null as is_there,
           to_regclass('schema_change') is not null
             and exists (select from pg_attribute where attrelid = to_regclass('migration') and attname = 'checksum') as current`);
  if (rows[0]?.current) return 'current';
  return rows[0]?.is_there ? 'unchecked' : 'none';
}

/** Creates the tables of the ledger. The caller holds the lock of the ledger. */
export async function createLedger(client: pg.ClientBase): Promise<void> {
  await client.query(`
    create table migration (
      number   integer primary key,
      name     text not null,
      ran_at   timestamptz not null default now(),
      checksum text
    );

    -- The routines that Annals created, so that it drops those and no others.
    create table routine (
      signature text primary key,
      name      text not null,
      hash      text not null
    );

    -- The sets of routines that the database has had; replaced_at is null for the one it has.
    create table routine_set (
      hash        text primary key,
      applied_at  timestamptz not null default now(),
      version     integer not null default 1,
      replaced_at timestamptz
    );
    create unique index routine_set_current on routine_set ((true)) where replaced_at is null;

    -- The processes that use the database, each with the schema it needs.
    create table schema_process (
      process       uuid primary key,
      newest        integer not null,
      routines_hash text not null,
      seen_at       timestamptz not null
    );

    -- The schema that a process is about to bring the database to.
    create table schema_change (
      singleton     boolean primary key default true check (singleton),
      newest        integer not null,
      routines_hash text not null,
      announced_at  timestamptz not null
    )`);
}

/** Reads the ledger. */
export async function readLedger(client: pg.ClientBase | pg.Pool): Promise<Ledger> {
  const migrations = await client.query('select number, name, checksum from migration order by number');
  const sets = await client.query('select hash, version, replaced_at is not null as replaced from routine_set');
  return { migrations: migrations.rows, routineSets: sets.rows };
}

/** Throws an OperatorError if a newer version has used the database, or if an applied migration was edited. */
export function checkLedger(ledger: Ledger, schema: Schema): void {
  const last = ledger.migrations.at(-1);
  if (last !== undefined && last.number > schema.newest) {
    throw new OperatorError(
      `The database was brought to ${last.name} by a newer version of Annals; this one knows it only up to ` +
        `number ${schema.newest}. Install that version, or give this one another database`,
    );
  }
  for (const { number, name, checksum } of ledger.migrations) {
    const migration = schema.migrations.find((known) => known.number === number);
    if (migration === undefined) {
      throw new OperatorError(`The database has the migration ${name}, which this version of Annals does not know`);
    }
    if (migration.name !== name || migration.checksum !== checksum) {
      throw new OperatorError(
        `The migration ${migration.name} was edited after the database had applied ${name}. A migration that has been ` +
          'applied never changes: restore the file, and put the change into a new migration',
      );
    }
  }
  checkRoutineSets(ledger, schema);
}

function checkRoutineSets({ routineSets }: Ledger, { routinesHash, routinesVersion }: Schema): void {
  const current = routineSets.find(({ replaced }) => !replaced);
  if (current === undefined || current.hash === routinesHash) return;
  if (current.version > routinesVersion) {
    throw new OperatorError(
      `The database has routines of version ${current.version} from a newer version of Annals; this one has version ` +
        `${routinesVersion}. Install that version, or give this one another database`,
    );
  }
  if (routineSets.some(({ hash, version }) => hash === routinesHash && version === routinesVersion)) {
    throw new OperatorError(
      'Another version of Annals has replaced the routines of this one in the database. Install that version; or, to ' +
        'restore the older routines, raise the number in sql/version.txt',
    );
  }
}
