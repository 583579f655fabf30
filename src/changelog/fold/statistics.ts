import { sql } from 'kysely';
import { analyseChanged } from '../../db/analyse-changed.ts';
import { buildIndex } from '../../db/build-index.ts';
import type { Database } from '../../db/database.ts';

const tables = ['change_entry', 'change_related', 'change_tally', 'change_kind', 'change_actor', 'change_delta'];

/** Analyses the tables of the history that have changed much, so that the planner knows their current contents. */
export async function analyseHistory(db: Database): Promise<void> {
  await analyseChanged(db, tables);
}

/** The index of the ids of documents. */
export const idIndexName = 'change_entry_id';

/**
 * Builds the index for queries for ids that begin with a text. An id may have 1,000 characters, too many for an index, so
 * the index has the first 64. The entries tell apart ids whose first 64 characters are equal. Without the index, such
 * queries read all entries of the window.
 */
export async function buildHistoryIndexes(db: Database): Promise<void> {
  const definition = sql`(tenant, kind, left(entity_id, 64))`;
  await buildIndex(db, { name: idIndexName, table: 'change_entry', definition });
}
