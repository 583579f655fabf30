import { sql } from 'kysely';
import { analyseChanged } from '../../postgres/analyse-changed.ts';
import type { Database } from '../../postgres/database.ts';
import { buildIndex } from '../../postgres/indexes/build-index.ts';

const tables = {
  entries: ['change_entry'],
  related: ['change_related'],
  tallies: ['change_tally', 'change_kind', 'change_actor', 'change_delta'],
};

/** Tables of the history that change together. */
type HistoryTables = keyof typeof tables;

/** Analyses tables of the history that have changed much, for the planner. */
export async function analyseHistory(db: Database, of?: HistoryTables): Promise<void> {
  await analyseChanged(db, of === undefined ? Object.values(tables).flat() : tables[of]);
}

/** Indexes that are built after the start, so that writers do not wait for them. */
export const lateIndexes = {
  ids: 'change_entry_short_id',
  longIds: 'change_entry_long_id',
  paths: 'change_entry_paths',
};

/** The pending list of the index for paths: a query reads all of it, so it is short. */
export const maxPendingKibibytes = 1_024;

/**
 * Builds the indexes of ids and paths, without which such queries read all entries of the window. An id may be too long
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
}
