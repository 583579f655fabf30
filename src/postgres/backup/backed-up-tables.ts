import pg from 'pg';
import type { BackedUpSequence } from './manifest.ts';

/**
 * Tables without a backup. A restore writes those about the schema and the server itself. Sessions and links of the
 * console, with their grants and the logout tokens that ended them, and queued e-mails must not continue in two places. Request rates are unlogged, except in a cluster.
 */
const tablesLeftOut: readonly string[] = [
  'migration',
  'routine',
  'routine_set',
  'schema_process',
  'schema_change',
  'database_origin',
  'access_grant',
  'console_session',
  'console_link',
  'logout_token',
  'mail',
  'tenant_rate',
];

/** A table with its columns in a backup. */
export interface TableToBackUp {
  name: string;
  columns: string[];
  /** The identity columns among them. */
  identities: string[];
  /** COPY does not read a partitioned table by its name. */
  partitioned: boolean;
}

/**
 * The tables of a backup, from the database's catalogue, so that none can be forgotten. Unlogged tables are left out,
 * since a crash empties them anyway. So are generated columns, and transaction ids, which are meaningless elsewhere:
 * restored rows count as recorded by the transaction that restores.
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

/** The state of the sequence of each identity column, never behind the numbers in the backup. */
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

/** The last number of a cluster's common sequence (docs/decisions/cluster.md); undefined on one server. */
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

/** The valid indexes of tables, except those of constraints. */
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
 * Empties tables and drops their foreign keys and the indexes that no constraint needs, so that rows can come in any
 * order and indexes are built in one pass. The returned function recreates them.
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
