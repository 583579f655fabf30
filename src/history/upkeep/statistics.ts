import { sql } from 'kysely';
import type { Database } from '../../postgres/database.ts';
import { buildIndex } from '../../postgres/indexes/build-index.ts';

const historyTables = {
  entries: ['change_entry'],
  related: ['change_related'],
  tallies: ['change_tally', 'change_kind', 'change_actor', 'change_delta'],
};

/** Tables of the history that change together. */
type HistoryTables = keyof typeof historyTables;

/** Analyses tables of the history that have changed much, for the planner. */
export async function analyseHistory(db: Database, of?: HistoryTables): Promise<void> {
  await analyseChanged(db, of === undefined ? Object.values(historyTables).flat() : historyTables[of]);
}

/** Indexes that are built after the start, so that writers do not wait for them. */
export const lateIndexes = {
  ids: 'change_entry_short_id',
  longIds: 'change_entry_long_id',
  paths: 'change_entry_paths',
  terms: 'change_entry_terms',
};

/** The pending list of the index for paths: a query reads all of it, so it is short. */
export const maxPendingKibibytes = 1_024;

/**
 * Builds the indexes of ids, paths, correlation ids and contexts, without which such queries read all entries of the window. An id may be too long
 * for an index, so one has the shorter ids, and another one leads to the entries with longer ids.
 */
export async function buildHistoryIndexes(db: Database): Promise<void> {
  const { rows } = await sql<{ maxBytes: number }>`select change_short_id() as "maxBytes"`.execute(db);
  const maxBytes = sql.lit(rows[0]?.maxBytes);
  const isShort = sql`octet_length(entity_id) <= ${maxBytes}`;
  const ids = sql`(tenant, kind, entity_id, at, sequence) include (actor) where ${isShort}`;
  await buildIndex(db, { name: lateIndexes.ids, table: 'change_entry', definition: ids });
  const longIds = sql`(tenant, kind, at, sequence) where octet_length(entity_id) > ${maxBytes}`;
  await buildIndex(db, { name: lateIndexes.longIds, table: 'change_entry', definition: longIds });
  const paths = sql`using gin (path_numbers) with (gin_pending_list_limit = ${sql.lit(maxPendingKibibytes)})`;
  await buildIndex(db, { name: lateIndexes.paths, table: 'change_entry', definition: paths });
  const entryTerms = sql`entry_terms(tenant, correlation, correlation_text, context)`;
  // The planner ignores the statistics of a partial index. The build analyses the table.
  await sql`create statistics if not exists change_entry_terms on (${entryTerms}) from change_entry`.execute(db);
  const terms = sql`using gin (${entryTerms})
    with (gin_pending_list_limit = ${sql.lit(maxPendingKibibytes)})
    where correlation is not null or correlation_text is not null or context is not null`;
  await buildIndex(db, { name: lateIndexes.terms, table: 'change_entry', definition: terms });
}

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
