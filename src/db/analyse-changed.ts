import { sql } from 'kysely';
import type { Database } from './database.ts';

/** Rows that may change before a table's statistics are out of date: so many, and a share of the table. */
const changedRows = 2_000;
const changedShare = 0.1;

/**
 * Analyses those tables of which much has changed since it was done last, at once and not when autovacuum comes to it: until
 * then plans are made for tables that look empty. Leaves out a table that somebody else analyses.
 */
export async function analyseChanged(db: Database, tables: readonly string[]): Promise<void> {
  const { rows } = await sql<{ name: string }>`
    select relname as name from pg_stat_user_tables
      where schemaname = current_schema() and relname = any (${tables}::text[])
        and n_mod_since_analyze > ${changedRows} + ${changedShare}::float8 * n_live_tup`.execute(db);
  for (const { name } of rows) await sql`analyze (skip_locked) ${sql.id(name)}`.execute(db);
}
