import { sql } from 'kysely';
import type { Database } from '../database.ts';

/**
 * The rows of a query over tables of all tenants, which is a constant text of the program. `%1$s` in it stands for the first table. In a cluster
 * these are the rows of each shard by itself, and those of a worker that is away are missing.
 *
 * @example
 * await rowsOfAll<{ mails: number }>(db, 'select count(*) as mails from %1$s', ['mail']);
 */
export async function rowsOfAll<Row>(db: Database, query: string, tables: readonly string[]): Promise<Row[]> {
  const { rows } = await sql<{ found: Row }>`
    select found from rows_of_all(${query}, ${[...tables]}::text[]) as found`.execute(db);
  return rows.map(({ found }) => found);
}
