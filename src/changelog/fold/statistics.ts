import { sql } from 'kysely';
import { analyseChanged } from '../../db/analyse-changed.ts';
import { buildIndex } from '../../db/build-index.ts';
import type { Database } from '../../db/database.ts';
import { madeIndexes } from '../../db/late-indexes.ts';

const tables = ['change_entry', 'change_related', 'change_tally', 'change_kind', 'change_actor', 'change_delta'];

/** Analyses the tables of the history that have changed much, so that the planner knows their current contents. */
export async function analyseHistory(db: Database): Promise<void> {
  await analyseChanged(db, tables);
}

/** The indexes of the history that Annals builds after the start, so that writers do not wait for them. */
export const lateIndexes = { ids: 'change_entry_id', kindsWithActors: 'change_entry_kind_actor' };
/** The index that `kindsWithActors` replaces. */
const replacedIndex = 'change_entry_kind';

/**
 * Builds the index for queries for ids that begin with a text, and the index for kinds and many actors. An id may have
 * 1,000 characters, too many for an index, so the index has the first 64. The entries tell apart ids whose first 64
 * characters are equal. Without these indexes, such queries read all entries of the window.
 */
export async function buildHistoryIndexes(db: Database): Promise<void> {
  const ids = sql`(tenant, kind, left(entity_id, 64))`;
  await buildIndex(db, { name: lateIndexes.ids, table: 'change_entry', definition: ids });
  const kinds = sql`(tenant, kind, at, sequence) include (actor)`;
  await buildIndex(db, { name: lateIndexes.kindsWithActors, table: 'change_entry', definition: kinds });
  const indexes = await madeIndexes(db, `${replacedIndex}%`);
  const isReplaced = indexes.some(({ name, state }) => name === lateIndexes.kindsWithActors && state === 'valid');
  if (isReplaced && indexes.some(({ name }) => name === replacedIndex)) {
    await sql`drop index concurrently if exists ${sql.id(replacedIndex)}`.execute(db);
  }
}
