import { sql } from 'kysely';
import type { Database } from './database.ts';

/** In bytes. */
export interface DatabaseSizes {
  readonly database: number;
  /** The write-ahead log that the server keeps. Undefined: the role may not read that. */
  readonly log: number | undefined;
}

/** What the database takes of its server's disk. SQL does not tell how much of it is left. */
export async function readDatabaseSizes(db: Database): Promise<DatabaseSizes> {
  const { rows } = await sql<{ database: number; maySeeLog: boolean }>`
    select pg_database_size(current_database()) as database,
           has_function_privilege('pg_catalog.pg_ls_waldir()', 'execute') as "maySeeLog"`.execute(db);
  const [{ database, maySeeLog } = { database: 0, maySeeLog: false }] = rows;
  if (!maySeeLog) return { database, log: undefined };
  const logs = await sql<{ log: number }>`select coalesce(sum(size), 0)::bigint as log from pg_ls_waldir()`.execute(db);
  return { database, log: logs.rows[0]?.log };
}
