import type pg from 'pg';
import { OperatorError } from '../../core/operator-error.ts';
import { areFormer, createFormerTables, dropFormerTables } from './adopt-baseline.ts';
import { applyIndexedRoutines } from './apply-indexed-routines.ts';
import { applyRoutines } from './apply-routines.ts';
import { createLedger } from './ledger.ts';
import type { Migration } from './migrations.ts';
import type { Schema } from './read-schema.ts';

/**
 * Builds the tables of an earlier schema in an empty database, without routines: those that these migrations make. The
 * caller holds the lock of the ledger, in a transaction. Throws an OperatorError if one of the migrations is not known.
 */
export async function buildEarlierSchema(
  client: pg.ClientBase,
  schema: Schema,
  migrations: readonly string[],
): Promise<void> {
  const isFormer = areFormer(migrations);
  const made = isFormer ? schema.migrations.slice(0, 1).map(({ name }) => name) : migrations;
  const unknown = made.find((name) => !schema.migrations.some((one) => one.name === name));
  if (unknown !== undefined) throw new OperatorError(`This version of Annals does not know the migration ${unknown}`);
  await createLedger(client);
  await applyIndexedRoutines(
    client,
    schema.routines.filter(({ indexed }) => indexed),
  );
  for (const migration of schema.migrations) if (made.includes(migration.name)) await run(client, migration);
  if (isFormer) await createFormerTables(client);
}

/** Brings such a database, with its rows, to the schema, in the same transaction. */
export async function finishSchema(
  client: pg.ClientBase,
  schema: Schema,
  migrations: readonly string[],
): Promise<void> {
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
    const message = cause instanceof Error ? cause.message : String(cause);
    throw new OperatorError(`The migration ${name} failed: ${message}`, { cause });
  }
}
