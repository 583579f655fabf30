import type pg from 'pg';
import { OperatorError } from '../../core/operator-error.ts';
import type { Migration } from './migrations.ts';
import { type Predecessors, withdrawnMigrations } from './predecessors.ts';
import type { Schema } from './read-schema.ts';

// Objects that a later migration creates, because an early form of an earlier migration did not.
const tablesMadeLater: readonly string[] = ['change_folded'];

/**
 * Adopts a database of a version without checksums. It compares the database's tables with those that the applied
 * migrations create from nothing. It stores the checksums of the migrations, and records which routines belong to Annals.
 * The caller holds the lock of the ledger and has created its tables. Throws an OperatorError that names the migration if
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
  if (fault !== undefined) throw new OperatorError(describe(fault, applied));
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

/** One part of a table. */
export interface TableLine {
  table: string;
  /** The kind of the part: the table itself, a column, a constraint, an index, a unique index. */
  kind: 'table' | 'column' | 'constraint' | 'index' | 'unique index';
  line: string;
}

// Constraints of type "n" repeat what the columns say, and only on PostgreSQL 18 and later.
const statement = `
  select c.relname as "table", found.kind, found.line
    from pg_class c
    cross join lateral (
      select 'table' as kind, 'table ' || c.relname || coalesce(' with (' || array_to_string(c.reloptions, ', ') || ')', '') as line
      union all
      select 'column',
             quote_ident(a.attname) || ' ' || format_type(a.atttypid, a.atttypmod)
               || case when a.attcollation <> t.typcollation then ' collate ' || quote_ident(l.collname) else '' end
               || case when a.attnotnull then ' not null' else '' end
               || case a.attidentity when 'a' then ' generated always as identity'
                                     when 'd' then ' generated by default as identity' else '' end
               || coalesce(case when a.attgenerated = '' then ' default ' else ' generated always as ' end
                             || pg_get_expr(d.adbin, d.adrelid), '')
               || case when a.attstorage <> t.typstorage then ' storage ' || a.attstorage::text else '' end
        from pg_attribute a
        join pg_type t on t.oid = a.atttypid
        left join pg_collation l on l.oid = a.attcollation
        left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
        where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
      union all
      select 'constraint', quote_ident(o.conname) || ' ' || pg_get_constraintdef(o.oid, true)
        from pg_constraint o where o.conrelid = c.oid and o.contype <> 'n'
      union all
      select case when i.indisunique then 'unique index' else 'index' end,
             pg_get_indexdef(i.indexrelid, 0, true) || case when i.indisvalid then '' else ' invalid' end
        from pg_index i
        where i.indrelid = c.oid and not exists (select from pg_constraint o where o.conindid = i.indexrelid)
    ) as found
    where c.relkind in ('r', 'p') and c.relnamespace = $1::oid
    order by c.relname collate "C", array_position('{table,column,constraint,unique index,index}', found.kind),
             found.line collate "C"`;

/** The parts of the tables of a schema, always in the same order. The schema must be the first one in the search path. */
export async function readTableLines(client: pg.ClientBase, namespace: number): Promise<TableLine[]> {
  return (await client.query<TableLine>(statement, [namespace])).rows;
}
