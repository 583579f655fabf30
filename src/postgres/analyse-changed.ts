import { sql } from 'kysely';
import type { Database } from './database.ts';

/** Changed or new rows after which a table is due: a fixed number plus a share of the table. */
const changedRows = 2_000;
const changedShare = 0.1;
/** After a crash or in a copy, PostgreSQL has no counts of changes. Then the pages that no vacuum has seen decide. */
const fewPages = 64;

/**
 * Analyses tables that changed much since their last analysis, and vacuums those that grew much since their last
 * vacuum, without waiting for autovacuum. Until the analysis, the planner treats them as empty; until the vacuum,
 * index-only scans look up the visibility of each row. A vacuum reads only changed pages. Skips locked tables.
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
    // Truncating the file would block readers, and parallel workers would take their processors.
    const work = grown ? sql`vacuum (analyze, skip_locked, truncate false, parallel 0)` : sql`analyze (skip_locked)`;
    await sql`${work} ${sql.id(name)}`.execute(db);
  }
}
