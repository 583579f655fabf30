import { sql } from 'kysely';
import type { Database } from './database.ts';

/** After this many changed rows, the statistics of a table are out of date: a fixed number plus a share of the table. */
const changedRows = 2_000;
const changedShare = 0.1;

/**
 * Analyses the tables that have changed much since their last analysis. It does so at once and does not wait for
 * autovacuum: until then the planner treats the tables as empty. Skips a table that somebody else analyses.
 */
export async function analyseChanged(db: Database, tables: readonly string[]): Promise<void> {
  const { rows } = await sql<{ name: string }>`
    select relname as name from pg_stat_user_tables
      where schemaname = current_schema() and relname = any (${tables}::text[])
        and n_mod_since_analyze > ${changedRows} + ${changedShare}::float8 * n_live_tup`.execute(db);
  for (const { name } of rows) await sql`analyze (skip_locked) ${sql.id(name)}`.execute(db);
}
