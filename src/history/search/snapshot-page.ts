import type { DatabaseTransaction } from '../../postgres/database.ts';
import type { PageOfEntries, Place } from '../entries/entry-store-new.ts';
import { readPlaces } from './long-page.ts';
import { mergedPage } from './merged-page.ts';
import type { Dictionary } from './names/dictionary.ts';
import type { PageQuery } from './page-query.ts';
import { partsOf, type QueryParts, wayOf } from './query-parts.ts';
import { countEntries, findPlaces, type Search, searchPage } from './search-store.ts';
import { inQuerySnapshot, type QuerySnapshot, type Reading } from './snapshots.ts';
import { readTalliedPlaces } from './tallied-page.ts';

/** Answers a page with several statements in one snapshot, with the names of that snapshot. */
export async function readInSnapshot(reading: Reading, page: PageQuery, known: Dictionary): Promise<PageOfEntries> {
  return await inQuerySnapshot(reading, page, known, async (snapshot) => {
    const parts = await partsOf(snapshot);
    const { total, places } = await findPlacesOfPage(snapshot, parts, page);
    return { way: wayOf(parts), total, ...(await readPlaces(reading.pool, snapshot.transaction, places, page)) };
  });
}

async function findPlacesOfPage(
  snapshot: QuerySnapshot,
  { intervals, search, everything, scanned }: QueryParts,
  { skip, size }: PageQuery,
): Promise<{ total: number; places: Place[] }> {
  const { transaction, tenant, now } = snapshot;
  if (scanned !== undefined) return await scanPage(transaction, everything, { skip, size, entries: scanned });
  const tallied = { now, intervals };
  if (search === undefined) return await readTalliedPlaces(transaction, tenant, { ...tallied, skip, size });
  if (intervals.length === 0) return await searchPage(transaction, search, { skip, size });
  return await mergedPage(transaction, { tallied, search, everything, skip, size });
}

/** Maximum number of entries whose places the database keeps while it counts them. */
const maxKeptPlaces = 100_000;

/**
 * Counts and finds in one scan where few entries come into question. Otherwise most entries satisfy the condition, and a
 * read in their order finds the page soon.
 */
async function scanPage(
  transaction: DatabaseTransaction,
  search: Search,
  { entries, ...page }: { skip: number; size: number; entries: number },
): Promise<{ total: number; places: Place[] }> {
  if (entries <= maxKeptPlaces) return await searchPage(transaction, search, page);
  const total = await countEntries(transaction, search);
  return { total, places: page.skip >= total ? [] : await findPlaces(transaction, search, page) };
}
