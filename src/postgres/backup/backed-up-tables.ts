import pg from 'pg';
import type { BackedUpSequence } from './manifest.ts';

/**
 * Tables that no backup has. Some say which schema the database has and which server it is on: a restore writes these
 * itself. Sessions and links of the console, and e-mails that wait, must not go on in two places. The rates of requests
 * are unlogged on one server and logged in a cluster.
 */
const tablesLeftOut: readonly string[] = [
  'migration',
  'routine',
  'routine_set',
  'schema_process',
  'schema_change',
  'database_origin',
  'console_session',
  'console_link',
  'mail',
  'tenant_rate',
];

/** A table with the columns that a backup has of it. */
export interface TableToBackUp {
  name: string;
  columns: string[];
  /** The identity columns among them. */
  identities: string[];
  /** Part of another table, or made of others: COPY does not read it by its name alone. */
  partitioned: boolean;
}

/**
 * The tables of a backup, from the database's own catalogue, so that none can be forgotten. Unlogged tables are left out,
 * since a crash empties them anyway. So are generated columns, and transaction ids, which mean nothing elsewhere: what is
 * restored counts as recorded by the transaction that restores.
 */
export async function tablesToBackUp(client: pg.ClientBase): Promise<TableToBackUp[]> {
  const { rows } = await client.query<TableToBackUp>(
    `select c.relname as name, c.relkind = 'p' as partitioned,
            array_agg(a.attname::text order by a.attnum) as columns,
            coalesce(array_agg(a.attname::text order by a.attnum) filter (where a.attidentity <> ''), '{}') as identities
       from pg_class c
       join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
       where c.relkind in ('r', 'p') and not c.relispartition and c.relpersistence = 'p'
         and c.relnamespace = current_schema()::regnamespace and c.relname <> all ($1)
         and a.attgenerated = '' and a.atttypid not in ('xid8'::regtype, 'pg_snapshot'::regtype)
         and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')
       group by c.oid, c.relname, c.relkind
       order by c.relname collate "C"`,
    [tablesLeftOut],
  );
  return rows;
}

/** The state of the sequence of each identity column. It is never behind the numbers of the backup. */
export async function readSequences(
  client: pg.ClientBase,
  tables: readonly TableToBackUp[],
): Promise<BackedUpSequence[]> {
  const sequences: BackedUpSequence[] = [];
  const ofCluster = await readClusterNumber(client);
  for (const { name: table, identities } of tables) {
    for (const column of identities) {
      const { rows: names } = await client.query<{ name: string | null }>(
        'select pg_get_serial_sequence(quote_ident($1), $2) as name',
        [table, column],
      );
      const { rows } = await client.query<{ value: string; called: boolean }>(
        `select last_value::text as value, is_called as called from ${names[0]?.name}`,
      );
      for (const { value, called } of rows) {
        const isBehind = ofCluster !== undefined && BigInt(value) < BigInt(ofCluster);
        sequences.push(isBehind ? { table, column, value: ofCluster, called: true } : { table, column, value, called });
      }
    }
  }
  return sequences;
}

/** The last number that a cluster has given to rows of all tables (docs/decisions/cluster.md). Undefined where the database is no cluster. */
async function readClusterNumber(client: pg.ClientBase): Promise<string | undefined> {
  const { rows: found } = await client.query(`select where to_regclass('change_number') is not null`);
  if (found.length === 0) return undefined;
  const { rows } = await client.query<{ last: string }>('select last_value::text as last from change_number');
  return rows[0]?.last;
}

interface TableIndex {
  table: string;
  name: string;
  /** The statement that creates it. */
  definition: string;
  comment: string | null;
}

/** The complete indexes of tables, except for those of constraints. */
export async function readIndexes(client: pg.ClientBase, tables: readonly string[]): Promise<TableIndex[]> {
  const { rows } = await client.query<TableIndex>(
    `select c.relname as "table", n.relname as name, pg_get_indexdef(i.indexrelid, 0, true) as definition,
            obj_description(i.indexrelid, 'pg_class') as comment
       from pg_index i join pg_class n on n.oid = i.indexrelid join pg_class c on c.oid = i.indrelid
       where c.relnamespace = current_schema()::regnamespace and c.relname = any ($1) and i.indisvalid
         and not exists (select from pg_constraint o where o.conindid = i.indexrelid)
       order by n.relname collate "C"`,
    [tables],
  );
  return rows;
}

/**
 * Empties tables and takes away their foreign keys and the indexes that no constraint needs: rows come in any order then,
 * and an index is built in one go. The returned function puts them back.
 */
export async function bareTables(client: pg.ClientBase, tables: readonly string[]): Promise<() => Promise<void>> {
  const { rows: keys } = await client.query<{ table: string; name: string; definition: string }>(
    `select c.relname as "table", o.conname as name, pg_get_constraintdef(o.oid, true) as definition
       from pg_constraint o join pg_class c on c.oid = o.conrelid
       where o.contype = 'f' and c.relnamespace = current_schema()::regnamespace order by c.relname, o.conname`,
  );
  const indexes = await readIndexes(client, tables);
  for (const { table, name } of keys) {
    await client.query(`alter table ${pg.escapeIdentifier(table)} drop constraint ${pg.escapeIdentifier(name)}`);
  }
  for (const { name } of indexes) await client.query(`drop index ${pg.escapeIdentifier(name)}`);
  await client.query(`truncate ${tables.map((name) => pg.escapeIdentifier(name)).join(', ')}`);
  return async () => {
    for (const { definition } of indexes) await client.query(definition);
    for (const { table, name, definition } of keys) {
      await client.query(
        `alter table ${pg.escapeIdentifier(table)} add constraint ${pg.escapeIdentifier(name)} ${definition}`,
      );
    }
  };
}
