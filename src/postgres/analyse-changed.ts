import { sql } from 'kysely';
import type { Database } from './database.ts';

/** After this many changed or new rows, a table is due: a fixed number plus a share of the table. */
const changedRows = 2_000;
const changedShare = 0.1;
/** PostgreSQL loses its counts of changes in a crash, and a copy of a database has none. Then the pages that no vacuum has seen tell. */
const fewPages = 64;

/**
 * Analyses the tables that have changed much since their last analysis, and vacuums the ones that have grown much since their
 * last vacuum. It does so at once and does not wait for autovacuum. Until the analysis, the planner treats the tables as
 * empty. Until the vacuum, an index alone answers nothing, because PostgreSQL looks up in the table whether each row is
 * visible. A vacuum reads only the pages that changed. Skips a table that somebody else works on.
 */
export async function analyseChanged(db: Database, tables: readonly string[]): Promise<void> {
  const { rows } = await sql<{ name: string; changed: boolean; grown: boolean }>`
    select * from (
      select s.relname as name, n_mod_since_analyze > due as changed,
             n_ins_since_vacuum > due
               or (coalesce(last_vacuum, last_autovacuum) is null and pages - c.relallvisible > ${fewPages} + ${changedShare}::float8 * pages)
               as grown
        from pg_stat_user_tables s
        join pg_class c on c.oid = s.relid
        cross join lateral (
          select ${changedRows} + ${changedShare}::float8 * n_live_tup as due, pg_relation_size(c.oid) / 8192 as pages
        ) as rows
        where schemaname = current_schema() and s.relname = any (${tables}::text[])
    ) as tables
    where changed or grown`.execute(db);
  for (const { name, grown } of rows) {
    // To truncate the file would stop readers, and parallel workers would take the processors from them.
    const work = grown ? sql`vacuum (analyze, skip_locked, truncate false, parallel 0)` : sql`analyze (skip_locked)`;
    await sql`${work} ${sql.id(name)}`.execute(db);
  }
}
