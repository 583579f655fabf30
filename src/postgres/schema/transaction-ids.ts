import type pg from 'pg';
import { hasCode, OperatorError } from '../../core/errors.ts';
import { inPoolTransaction } from '../transaction.ts';
import { lockLedger } from './ledger.ts';

type Queryable = pg.ClientBase | pg.Pool;

/**
 * SQL that is true if the database's transaction ids are its own, by the row that records them. False in a copy by
 * pg_dump or logical replication; true in a copy of the server's files, which keeps the ids.
 */
export const hasOwnTransactionIds = `
  exists (select from database_origin o where o.written_by::xid = o.xmin and o.relation = o.tableoid::bigint)`;

const insufficientPrivilege = '42501';

/**
 * Resets all stored transaction ids and snapshots of another server (docs/decisions/backups.md): existing rows then
 * count as recorded before every snapshot, and exports start over. Takes constant time, except for the indexes of
 * names. Several processes may call this at once. Returns whether it has reset them.
 */
export async function resetForeignTransactionIds(pool: pg.Pool): Promise<boolean> {
  const { rows } = await pool.query<{ exists: boolean }>(`select to_regclass('database_origin') is not null as exists`);
  if (!rows[0]?.exists) return false;
  const server = await readSystemIdentifier(pool);
  if (await isOwn(pool, server)) return false;
  return await inPoolTransaction(pool, async (client) => {
    await lockLedger(client);
    if (await isOwn(client, server)) return false;
    try {
      for (const column of await columnsOfTransactionIds(client)) await emptyColumn(client, column);
    } catch (cause) {
      if (!hasCode(cause, insufficientPrivilege)) throw cause;
      const message =
        'The database is a copy from another server, and its transaction ids must be reset, which the role may not do: run ' +
        '"annals migrate" with the role that owns the tables';
      throw new OperatorError(message, { cause });
    }
    await claimTransactionIds(client, server);
    return true;
  });
}

/** Records that this server assigned all transaction ids of the database. */
export async function claimTransactionIds(client: pg.ClientBase, server: string | null): Promise<void> {
  await client.query(
    `insert into database_origin (system_identifier, relation, written_by)
       values ($1, 'database_origin'::regclass::oid::bigint, pg_current_xact_id())
       on conflict (singleton) do update set system_identifier = excluded.system_identifier,
         relation = excluded.relation, written_by = excluded.written_by`,
    [server],
  );
}

/** The identifier of the server; null if the role may not read it. */
export async function readSystemIdentifier(client: Queryable): Promise<string | null> {
  const { rows: rights } = await client.query<{ allowed: boolean | null }>(
    `select has_function_privilege(to_regprocedure('pg_catalog.pg_control_system()'), 'execute') as allowed`,
  );
  if (!rights[0]?.allowed) return null;
  const { rows } = await client.query<{ id: string }>('select system_identifier::text as id from pg_control_system()');
  return rows[0]?.id ?? null;
}

async function isOwn(client: Queryable, server: string | null): Promise<boolean> {
  const { rows } = await client.query<{ own: boolean }>(
    `select ${hasOwnTransactionIds}
        and not exists (select from database_origin o where o.system_identifier <> $1::text) as own`,
    [server],
  );
  return rows[0]?.own ?? false;
}

/** A column of transaction ids or snapshots. Names are quoted if necessary. */
interface TransactionIdColumn {
  table: string;
  column: string;
  type: string;
  required: boolean;
  default: string | null;
  /** The statements that create the indexes of the column. */
  indexes: string[];
}

/** The columns whose values are meaningful on one server only, from the database's catalogue. */
export async function columnsOfTransactionIds(client: Queryable): Promise<TransactionIdColumn[]> {
  const { rows } = await client.query<TransactionIdColumn>(
    `select quote_ident(c.relname) as "table", quote_ident(a.attname) as "column", a.atttypid::regtype::text as type,
            a.attnotnull as required, pg_get_expr(d.adbin, d.adrelid) as "default",
            array(select pg_get_indexdef(i.indexrelid) from pg_index i
                    where exists (select from pg_depend u
                                    where u.classid = 'pg_class'::regclass and u.objid = i.indexrelid
                                      and u.refclassid = 'pg_class'::regclass and u.refobjid = c.oid and u.refobjsubid = a.attnum)
                    order by 1) as indexes
       from pg_class c
       join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
       left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
       where c.relkind in ('r', 'p') and not c.relispartition and c.relnamespace = current_schema()::regnamespace
         and a.atttypid in ('xid8'::regtype, 'pg_snapshot'::regtype) and c.relname <> 'database_origin'
       order by c.relname collate "C", a.attnum`,
  );
  return rows;
}

/**
 * Replaces a column by an empty one of the same name, which PostgreSQL does in its catalogue without writing rows. A
 * required column has 0 then, which precedes every transaction.
 */
async function emptyColumn(client: pg.ClientBase, found: TransactionIdColumn): Promise<void> {
  const { table, column, type, required, indexes } = found;
  await client.query(`alter table ${table} drop column ${column}`);
  await client.query(`alter table ${table} add column ${column} ${type}${required ? ` not null default '0'` : ''}`);
  const later = found.default === null ? 'drop default' : `set default ${found.default}`;
  await client.query(`alter table ${table} alter column ${column} ${later}`);
  for (const index of indexes) await client.query(index);
}
