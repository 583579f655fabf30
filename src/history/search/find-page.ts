import { sql } from 'kysely';
import type { Restriction } from '../../http/credentials.ts';
import type { DatabaseTransaction } from '../../postgres/database.ts';
import type { Query } from '../../query/ast.ts';
import { type PageOfEntries, type Place, readPlaces } from '../entries/entry-store.ts';
import { mergedPage } from './merged-page.ts';
import type { Dictionary } from './names/dictionary.ts';
import { DictionaryCache } from './names/dictionary-cache.ts';
import { readTalliedPlaces } from './page-statements.ts';
import { entryConditions } from './predicate.ts';
import { partsOf, planNameOf, type QueryParts } from './query-parts.ts';
import { countEntries, findPlaces, type Search, searchPage } from './search-store.ts';
import { readInSingleStatement } from './single-statement.ts';
import { inQuerySnapshot, type QueryAtMoment, type QuerySnapshot, queryAt, type Reading } from './snapshot.ts';

/** Answers a page with several statements in one snapshot, with the names of that snapshot. */
async function readInSnapshot(reading: Reading, page: PageQuery, known: Dictionary): Promise<PageOfEntries> {
  return await inQuerySnapshot(reading, page, known, async (snapshot) => {
    const parts = await partsOf(snapshot);
    const { total, places } = await findPlacesOfPage(snapshot, parts, page);
    return { plan: planNameOf(parts), total, ...(await readPlaces(reading.pool, snapshot.transaction, places, page)) };
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

/**
 * Finds a page of the entries that satisfy a query: `size` entries after the first `skip`, newest first. Also finds the
 * total. Page and total come from one snapshot of the database. Rejects with an AnnalsError, validation_violation, when a
 * regular expression exceeds its budget or the page has too much text. Rejects with the current work's reason when that
 * work is aborted.
 *
 * @example
 * const query = parseQuery('entity:order type:delete', changelogDialect);
 * const { total, entries } = await findPage('acme', query, { skip: 0, size: 20 });
 */
export type FindPage = (tenant: string, query: Query, page: PageOptions) => Promise<PageOfEntries>;

export interface HistoryOptions extends Reading {
  now: () => number;
  /** Names that other parts of the process share; default: a cache of its own. */
  dictionaries?: DictionaryCache;
}

// New names are rare. If so many reads in a row find new names, Annals reads the names in the snapshot that answers.
const maxAttempts = 3;

export function createFindPage(options: HistoryOptions): FindPage {
  const { now, dictionaries = new DictionaryCache(options.pool), ...reading } = options;

  return async (
    tenant,
    asked,
    { skip, size, inPieces = false, withContext = false, withIdentity = false, restriction },
  ) => {
    const of = queryAt(tenant, asked, now(), restriction);
    const page: PageQuery = { ...of, skip, size, inPieces, withContext, withIdentity };
    let dictionary = dictionaries.known(tenant) ?? (await dictionaries.get(tenant));
    // Few callers ask for circumstances, identities or pieces, so the statement that answers alone does not return them.
    if (withContext || withIdentity || inPieces === 'always') return await readInSnapshot(reading, page, dictionary);
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      const read = await readInSingleStatement(reading, page, dictionary);
      if (read.kind === 'page') return { plan: read.plan, total: read.total, entries: read.entries };
      if (read.kind === 'several statements') break;
      dictionary = await dictionaries.get(tenant, dictionary);
    }
    return await readInSnapshot(reading, page, dictionary);
  };
}

/** What a caller asks of a page. What is left out is false. */
interface PageOptions {
  readonly skip: number;
  readonly size: number;
  /** Whether a page with much text may come as `pieces`, or every page does. If not, a page with more than 64 MiB is a 400. */
  readonly inPieces?: boolean | 'always';
  /** Whether entries come with their circumstances. */
  readonly withContext?: boolean;
  /** Whether entries come with their identities. */
  readonly withIdentity?: boolean;
  /** What the caller may see. */
  readonly restriction?: Restriction | undefined;
}

/** One page of one query. */
export type PageQuery = QueryAtMoment & Required<Omit<PageOptions, 'restriction'>>;

/** The place of an entry; undefined if the query of the snapshot does not find it, or it is not there any more. */
export async function findPlace(
  { transaction, tenant, expression, dictionary, since, slice }: QuerySnapshot,
  { at, identity }: { readonly at: number; readonly identity: string },
): Promise<Place | undefined> {
  const conditions = await entryConditions(tenant, expression, dictionary, slice);
  const { rows } = await sql<Place>`
    select e.at, e.sequence from change_entry e
      where e.tenant = ${tenant} and e.at = ${at} and e.identity = ${identity}::uuid and e.at >= ${since}
        and ${conditions.satisfies(expression)}`.execute(transaction);
  return rows[0];
}
