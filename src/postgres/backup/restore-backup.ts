import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { messageOf, OperatorError } from '../../core/errors.ts';
import { areFormer, checkFormer, createFormerTables, dropFormerTables } from '../schema/adopt-baseline.ts';
import { applyIndexedRoutines, applyRoutines } from '../schema/apply-routines.ts';
import { createLedger, lockLedger } from '../schema/ledger.ts';
import { type Migration, readPackageSchema, type Schema } from '../schema/read-schema.ts';
import { claimTransactionIds, readSystemIdentifier } from '../schema/transaction-ids.ts';
import { bareTables, type TableToBackUp, tablesToBackUp } from './backed-up-tables.ts';
import type { BackedUpIndex, BackedUpSequence, BackupBegin, BackupManifest } from './manifest.ts';
import type { BackupReader } from './read-backup.ts';

interface RestoreOptions {
  signal?: AbortSignal | undefined;
  /** Called with the bytes of the tables so far. */
  onProgress?: ((bytes: number) => void) | undefined;
  /** The statement of an index that operators made; undefined for any other index. Default: there are none. */
  definitionOf?: (index: BackedUpIndex) => string | undefined;
  /** Statements at the end, on the current schema: they stop what must not continue in two places. */
  afterwards?: readonly string[] | undefined;
}

export interface RestoredBackup {
  manifest: BackupManifest;
  /** Tables of the backup that Annals does not have. */
  leftOut: string[];
}

/** Throws an OperatorError if this version cannot migrate the backup's schema. */
export async function checkSchemaOf({ schema, migrations }: BackupBegin): Promise<Schema> {
  const ours = await readPackageSchema();
  if (areFormer(migrations)) checkFormer('backup', migrations);
  else if (schema > ours.newest) {
    throw new OperatorError(
      `The backup has schema ${schema} (${migrations.at(-1)}), from a newer version of Annals; this one knows up to ` +
        `${ours.newest}. Install that version`,
    );
  }
  return ours;
}

/**
 * Restores a backup into an empty database and migrates it to the current schema, in one transaction: after a failure,
 * the database is empty. The pool must allow 2 connections. Throws an OperatorError if the database is not empty, or if
 * the backup is damaged or of a newer schema.
 */
export async function restoreBackup(
  pool: pg.Pool,
  backup: BackupReader,
  { signal, onProgress, definitionOf = () => undefined, afterwards = [] }: RestoreOptions = {},
): Promise<RestoredBackup> {
  const schema = await checkSchemaOf(backup.begin);
  const server = await readSystemIdentifier(pool);
  const client = await pool.connect();
  let released = false;
  const release = (destroy: boolean) => {
    if (!released) client.release(destroy);
    released = true;
  };
  const onAbort = () => release(true);
  signal?.addEventListener('abort', onAbort, { once: true });
  try {
    signal?.throwIfAborted();
    await client.query('begin');
    await client.query('set local statement_timeout = 0; set local idle_in_transaction_session_timeout = 0');
    await lockLedger(client);
    await checkEmpty(client);
    await buildEarlierSchema(client, schema, backup.begin.migrations);
    const leftOut = await fillTables(client, backup, { signal, onProgress });
    await finishSchema(client, schema, backup.begin.migrations);
    await addIndexes(client, backup.manifest.indexes, definitionOf);
    await claimTransactionIds(client, server);
    for (const statement of afterwards) await client.query(statement);
    const names = (await tablesToBackUp(client)).map(({ name }) => pg.escapeIdentifier(name));
    await client.query(`analyze ${names.join(', ')}`);
    await client.query('commit');
    release(false);
    return { manifest: backup.manifest, leftOut };
  } catch (error) {
    // In the middle of a COPY nothing else can be sent, so the connection is closed.
    release(true);
    signal?.throwIfAborted();
    throw isDataFault(error) ? new OperatorError(`The backup is damaged: ${error.message}`, { cause: error }) : error;
  } finally {
    signal?.removeEventListener('abort', onAbort);
  }
}

/** Returns the tables of the backup that the schema does not have. */
async function fillTables(client: pg.ClientBase, backup: BackupReader, options: RestoreOptions): Promise<string[]> {
  const ours = await tablesToBackUp(client);
  const putBack = await bareTables(
    client,
    ours.map(({ name }) => name),
  );
  const leftOut: string[] = [];
  const rows = new Map<string, number>();
  let read = 0;
  for await (const { name, content } of backup.tables()) {
    const table = ours.find((known) => known.name === name);
    if (table === undefined) {
      leftOut.push(name);
      continue;
    }
    const counted = async function* () {
      for await (const chunk of content) {
        yield chunk;
        read += chunk.length;
        options.onProgress?.(read);
      }
    };
    const columns = columnsOf(backup.begin, table);
    const copy = client.query(copyFrom(copyInto(table, columns)));
    await pipeline(Readable.from(counted(), { objectMode: false }), copy, pipelineOptions(options));
    rows.set(name, copy.rowCount);
  }
  const { tables, sequences } = backup.manifest;
  for (const { name, rows: expected } of tables) {
    const found = rows.get(name) ?? 0;
    if (found !== expected && !leftOut.includes(name)) {
      throw new OperatorError(
        `The backup is damaged: its table ${name} has ${found} rows, and its manifest says ${expected}.`,
      );
    }
  }
  await putBack();
  await restoreSequences(client, sequences, ours);
  return leftOut;
}

const pipelineOptions = ({ signal }: RestoreOptions) => (signal === undefined ? {} : { signal });

function columnsOf({ tables }: BackupBegin, { name, columns: ours }: TableToBackUp): readonly string[] {
  const columns = tables.find((table) => table.name === name)?.columns ?? [];
  const unknown = columns.find((column) => !ours.includes(column));
  if (columns.length === 0 || unknown !== undefined) {
    throw new OperatorError(
      `The table ${name} of the backup has a column that its migrations do not make: ${unknown}.`,
    );
  }
  return columns;
}

function copyInto({ name, partitioned }: TableToBackUp, columns: readonly string[]): string {
  const target = `${pg.escapeIdentifier(name)} (${columns.map((column) => pg.escapeIdentifier(column)).join(', ')})`;
  // The rows are invisible until the commit, so PostgreSQL can freeze them at once.
  return `copy ${target} from stdin${partitioned ? '' : ' with (freeze)'}`;
}

async function restoreSequences(
  client: pg.ClientBase,
  sequences: readonly BackedUpSequence[],
  tables: readonly TableToBackUp[],
): Promise<void> {
  for (const { table, column, value, called } of sequences) {
    if (!tables.some(({ name, identities }) => name === table && identities.includes(column))) continue;
    await client.query('select setval(pg_get_serial_sequence(quote_ident($1), $2)::regclass, $3::bigint, $4)', [
      table,
      column,
      value,
      called,
    ]);
  }
}

/** Recreates indexes that operators made. The service recreates its own after its start. */
async function addIndexes(
  client: pg.ClientBase,
  indexes: readonly BackedUpIndex[],
  definitionOf: (index: BackedUpIndex) => string | undefined,
): Promise<void> {
  for (const index of indexes) {
    const definition = definitionOf(index);
    if (definition === undefined) continue;
    await client.query(definition);
    if (index.comment !== null) {
      await client.query(`comment on index ${pg.escapeIdentifier(index.name)} is ${pg.escapeLiteral(index.comment)}`);
    }
  }
}

/** The database refuses the rows: SQLSTATE classes 22 (data exception) and 23 (constraint violation). */
function isDataFault(error: unknown): error is pg.DatabaseError {
  return error instanceof pg.DatabaseError && /^2[23]/.test(error.code ?? '');
}

/** Ignores objects of extensions, which a provider may install in every database. */
async function checkEmpty(client: pg.ClientBase): Promise<void> {
  const { rows } = await client.query<{ name: string }>(
    `select c.relname as name from pg_class c
       where c.relkind in ('r', 'p', 'v', 'm', 'S', 'f') and c.relnamespace = current_schema()::regnamespace
         and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')
       order by c.relkind = 'r' desc, c.relname limit 1`,
  );
  const [found] = rows;
  if (found !== undefined) {
    throw new OperatorError(`The database is not empty: it has ${found.name}. A backup is restored into an empty one`);
  }
}

/**
 * Creates the tables of these migrations in an empty database, without routines. The caller holds the lock of the
 * ledger, in a transaction. Throws an OperatorError if a migration is unknown.
 */
async function buildEarlierSchema(client: pg.ClientBase, schema: Schema, migrations: readonly string[]): Promise<void> {
  const isFormer = areFormer(migrations);
  const made = isFormer ? schema.migrations.slice(0, 1).map(({ name }) => name) : migrations;
  const unknown = made.find((name) => !schema.migrations.some((migration) => migration.name === name));
  if (unknown !== undefined) throw new OperatorError(`This version of Annals does not know the migration ${unknown}`);
  await createLedger(client);
  await applyIndexedRoutines(
    client,
    schema.routines.filter(({ indexed }) => indexed),
  );
  for (const migration of schema.migrations) if (made.includes(migration.name)) await run(client, migration);
  if (isFormer) await createFormerTables(client);
}

/** Migrates such a database, with its rows, to the schema, in the same transaction. */
async function finishSchema(client: pg.ClientBase, schema: Schema, migrations: readonly string[]): Promise<void> {
  if (areFormer(migrations)) await dropFormerTables(client, 'backup');
  const { rows } = await client.query<{ name: string }>('select name from migration');
  for (const migration of schema.migrations) {
    if (!rows.some(({ name }) => name === migration.name)) await run(client, migration);
  }
  await applyRoutines(client, schema);
}

async function run(client: pg.ClientBase, { number, name, checksum, text }: Migration): Promise<void> {
  await client.query('insert into migration (number, name, checksum) values ($1, $2, $3)', [number, name, checksum]);
  try {
    await client.query(text);
  } catch (cause) {
    throw new OperatorError(`The migration ${name} failed: ${messageOf(cause)}`, { cause });
  }
}
