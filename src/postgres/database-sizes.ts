import { sql } from 'kysely';
import type { Database } from './database.ts';

/** In bytes. */
interface DatabaseSizes {
  readonly database: number;
  /** The server's write-ahead log; undefined if the role may not read its size. */
  readonly log: number | undefined;
}

/** The disk space of the database. SQL cannot tell how much is free. */
export async function readDatabaseSizes(db: Database): Promise<DatabaseSizes> {
  const { rows } = await sql<{ database: number; maySeeLog: boolean }>`
    select pg_database_size(current_database()) as database,
           has_function_privilege('pg_catalog.pg_ls_waldir()', 'execute') as "maySeeLog"`.execute(db);
  const [{ database, maySeeLog } = { database: 0, maySeeLog: false }] = rows;
  if (!maySeeLog) return { database, log: undefined };
  const logs = await sql<{ log: number }>`select coalesce(sum(size), 0)::bigint as log from pg_ls_waldir()`.execute(db);
  return { database, log: logs.rows[0]?.log };
}
