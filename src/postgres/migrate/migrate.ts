import type pg from 'pg';
import { messageOf, OperatorError } from '../../core/errors.ts';
import { applyDistributedRoutines } from '../cluster/distribute-routines.ts';
import { beginSequential, distributeTables } from '../cluster/distribute-tables.ts';
import { isCopyOfCluster, isDistributed } from '../is-distributed.ts';
import { adoptBaseline, areFormer, checkFinished, checkFormer } from '../schema/adopt-baseline.ts';
import { whileAnnounced } from '../schema/announce-change.ts';
import { applyIndexedRoutines, applyRoutines } from '../schema/apply-routines.ts';
import {
  checkEncoding,
  checkLedger,
  checkServerVersion,
  createLedger,
  type Ledger,
  ledgerState,
  lockLedger,
  readLedger,
} from '../schema/ledger.ts';
import {
  type Migration,
  readPackageSchema,
  readSchema,
  type Schema,
  type SchemaFolders,
} from '../schema/read-schema.ts';
import { resetForeignTransactionIds } from '../schema/transaction-ids.ts';
import { inPoolTransaction } from '../transaction.ts';

// Semicolons in comments, quotes and bodies of routines do not end a statement.
const tokens = /--[^\n]*|\/\*[\s\S]*?\*\/|'(?:[^']|'')*'|"(?:[^"]|"")*"|\$(\w*)\$[\s\S]*?\$\1\$|;/g;

/** Splits an SQL text into statements: a cluster sends the whole text with an "alter table" to its workers. */
export function splitStatements(text: string): string[] {
  const statements: string[] = [];
  let begin = 0;
  for (const { 0: token, index } of text.matchAll(tokens)) {
    if (token !== ';') continue;
    statements.push(text.slice(begin, index));
    begin = index + 1;
  }
  statements.push(text.slice(begin));
  return statements.filter((statement) => statement.replaceAll(/--[^\n]*/g, '').trim() !== '');
}

/**
 * Migrates the database to the current schema and returns the names of the migrations that ran. Migrations go forward
 * only, each in its own transaction; then one transaction applies the routines. Several processes may call this at
 * once. It first notifies processes of other versions and waits for their end. Finally it resets the transaction ids of
 * a copy from another server. New tables and routines of a distributed database are distributed. The pool must allow 2
 * connections. Default: the `folders` of this package.
 *
 * Throws an OperatorError if the database is newer, empty and not in UTF-8, or a copy of a cluster's, if it is from
 * before the baseline and not at its last migration (docs/decisions/migrations.md), if an applied migration was edited,
 * or if a migration fails.
 */
export async function migrate(pool: pg.Pool, folders?: SchemaFolders): Promise<string[]> {
  const distributed = await isDistributed(pool);
  if (!distributed && (await isCopyOfCluster(pool))) {
    throw new OperatorError(
      'The database is a copy of one that a cluster distributes, without its shards, as pg_dump makes it. Use annals ' +
        'backup and annals restore to move it',
    );
  }
  const form = distributed ? 'distributed' : 'single';
  const schema = await (folders === undefined ? readPackageSchema(form) : readSchema(folders, form));
  const ran = await migrateSchema(pool, schema, distributed);
  await resetForeignTransactionIds(pool);
  return ran;
}

async function migrateSchema(pool: pg.Pool, schema: Schema, distributed: boolean): Promise<string[]> {
  await checkServerVersion(pool);
  await prepareLedger(pool);
  const found = await readLedger(pool);
  const isFormer = areFormer(namesOf(found));
  if (isFormer) {
    checkFormer('database', namesOf(found));
    // Before the announcement, which ends the processes that are finishing it. Another process may just have adopted
    // the baseline.
    await inLedger(pool, async (client) => {
      if (areFormer(namesOf(await readLedger(client)))) await checkFinished(client, 'database');
    });
  }
  const ledger = isFormer ? { ...found, migrations: schema.migrations.slice(0, 1) } : found;
  checkLedger(ledger, schema);
  const pending = schema.migrations.filter(({ number }) => !ledger.migrations.some((done) => done.number === number));
  const hasRoutines = ledger.routineSets.some(({ hash, replaced }) => hash === schema.routinesHash && !replaced);
  if (!isFormer && pending.length === 0 && hasRoutines) return [];

  const ran: string[] = [];
  const indexed = schema.routines.filter((routine) => routine.indexed);
  await whileAnnounced(pool, schema, async () => {
    await inLedger(pool, async (client) => {
      if (distributed) await beginSequential(client);
      if (areFormer(namesOf(await readLedger(client)))) await adoptBaseline(client, schema);
      await applyIndexedRoutines(client, indexed);
    });
    for (const migration of pending) {
      if (await run(pool, migration, distributed)) ran.push(migration.name);
    }
    await inLedger(pool, async (client) => {
      if (distributed) await beginSequential(client);
      // Another version may have come first.
      checkLedger(await readLedger(client), schema);
      await (distributed ? applyDistributedRoutines(client, schema) : applyRoutines(client, schema));
    });
  });
  return ran;
}

function namesOf({ migrations }: Ledger): string[] {
  return migrations.map(({ name }) => name);
}

async function prepareLedger(pool: pg.Pool): Promise<void> {
  if ((await ledgerState(pool)) === 'current') return;
  await inLedger(pool, async (client) => {
    const state = await ledgerState(client);
    if (state === 'current') return;
    if (state === 'unchecked') {
      const { rows } = await client.query<{ name: string }>('select name from migration order by number');
      checkFormer(
        'database',
        rows.map(({ name }) => name),
      );
    }
    await checkEncoding(client);
    await createLedger(client);
  });
}

async function inLedger(pool: pg.Pool, work: (client: pg.ClientBase) => Promise<unknown>): Promise<void> {
  await inPoolTransaction(pool, async (client) => {
    await lockLedger(client);
    await work(client);
  });
}

async function run(pool: pg.Pool, migration: Migration, distributed: boolean): Promise<boolean> {
  return await inPoolTransaction(pool, async (client) => {
    // The later transaction of the routines waits for the disk, which then has the migrations too.
    await (distributed ? beginSequential(client) : client.query('set local synchronous_commit = off'));
    const claim = await client.query(
      'insert into migration (number, name, checksum) values ($1, $2, $3) on conflict (number) do nothing',
      [migration.number, migration.name, migration.checksum],
    );
    if (claim.rowCount === 0) return false;
    try {
      for (const text of distributed ? splitStatements(migration.text) : [migration.text]) await client.query(text);
    } catch (cause) {
      throw new OperatorError(`The migration ${migration.name} failed: ${messageOf(cause)}`, { cause });
    }
    if (distributed) await distributeTables(client);
    return true;
  });
}
