import type pg from 'pg';
import { MigrationError } from './migration-error.ts';
import type { Migration } from './migrations.ts';
import { type Predecessors, withdrawnMigrations } from './predecessors.ts';
import type { Schema } from './read-schema.ts';
import { readTableLines, type TableLine } from './table-lines.ts';

// Objects that a later migration creates, because an early form of an earlier migration did not.
const tablesMadeLater: readonly string[] = ['change_folded'];

/**
 * Adopts a database of a version without checksums. It compares the database's tables with those that the applied
 * migrations create from nothing. It stores the checksums of the migrations, and records which routines belong to Annals.
 * The caller holds the lock of the ledger and has created its tables. Throws a MigrationError that names the migration if
 * the tables differ.
 */
export async function adoptDatabase(client: pg.ClientBase, schema: Schema, predecessors: Predecessors): Promise<void> {
  await client.query('delete from migration where checksum is null and name = any ($1)', [withdrawnMigrations]);
  const { rows } = await client.query<{ number: number }>('select number from migration where checksum is null');
  const applied = schema.migrations.filter(({ number }) => rows.some((row) => row.number === number));
  const expected = await tablesOf(client, applied);
  const { rows: own } = await client.query<{ oid: number }>(
    'select current_schema()::regnamespace::oid::bigint as oid',
  );
  const actual = await readTableLines(client, own[0]?.oid ?? 0);
  const fault = firstDifference(expected, actual);
  if (fault !== undefined) throw new MigrationError(describe(fault, applied));
  for (const { number, checksum } of applied) {
    await client.query('update migration set checksum = $2 where number = $1', [number, checksum]);
  }
  await client.query(
    `insert into routine (signature, name, hash)
       select p.oid::regprocedure::text, p.proname, ''
         from unnest($1::text[]) as known (signature)
         join pg_proc p on p.oid = to_regprocedure(known.signature) and p.pronamespace = current_schema()::regnamespace
       on conflict do nothing`,
    [predecessors.routines],
  );
}

/** The tables that migrations create from nothing. They run on temporary tables, which are dropped afterwards. */
async function tablesOf(client: pg.ClientBase, migrations: readonly Migration[]): Promise<TableLine[]> {
  await client.query('savepoint before_tables');
  await client.query('set local search_path = pg_temp');
  // The first temporary table creates the temporary schema.
  await client.query('create temporary table schema_of_nothing () on commit drop');
  for (const { text } of migrations) await client.query(text);
  const { rows } = await client.query<{ oid: number }>('select pg_my_temp_schema()::bigint as oid');
  const lines = await readTableLines(client, rows[0]?.oid ?? 0);
  await client.query('rollback to savepoint before_tables');
  return lines.filter(({ table }) => table !== 'schema_of_nothing');
}

interface Difference {
  table: string;
  missing: string[];
  unexpected: string[];
}

/** These do no harm: an additional index, other options, and a table that does not belong to Annals. */
function firstDifference(expected: TableLine[], actual: TableLine[]): Difference | undefined {
  for (const table of new Set(expected.map((line) => line.table))) {
    const wanted = expected.filter((line) => line.table === table && line.kind !== 'table');
    const found = actual.filter((line) => line.table === table && line.kind !== 'table');
    if (found.length === 0 && tablesMadeLater.includes(table)) continue;
    const missing = wanted.filter(({ line }) => !found.some((other) => other.line === line));
    const unexpected = found.filter(
      ({ line, kind }) => kind !== 'index' && !wanted.some((other) => other.line === line),
    );
    if (missing.length + unexpected.length > 0) {
      return { table, missing: missing.map(({ line }) => line), unexpected: unexpected.map(({ line }) => line) };
    }
  }
  return undefined;
}

function describe({ table, missing, unexpected }: Difference, applied: readonly Migration[]): string {
  const makes = new RegExp(`^(?:create|alter) table (?:if not exists )?${table}\\b|\\bon ${table} \\(`, 'm');
  const last = applied.findLast(({ text }) => makes.test(text));
  const told = [
    missing.length > 0 ? ` Missing: ${missing.join('; ')}.` : '',
    unexpected.length > 0 ? ` Not expected: ${unexpected.join('; ')}.` : '',
  ];
  return (
    `The table ${table} of the database is not as ${last?.name ?? 'the migrations'} makes it: another form of this ` +
    `migration made it, before migrations had checksums.${told.join('')} Annals has changed nothing. Change the table ` +
    'accordingly, or open the database with the version that made it and import its history into a new one'
  );
}
