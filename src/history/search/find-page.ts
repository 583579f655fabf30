import { sql } from 'kysely';
import type { Restriction } from '../../http/credentials.ts';
import type { DatabaseTransaction } from '../../postgres/database.ts';
import type { Query } from '../../query/ast.ts';
import { type PageOfEntries, type Place, readPlaces } from '../entries/entry-store.ts';
import { mergedPage } from './merged-page.ts';
import type { Dictionary } from './names/dictionary.ts';
import { DictionaryCache } from './names/dictionary-cache.ts';
import { entryConditions } from './predicate.ts';
import { planNameOf, planQuery, type QueryPlan } from './query-plan.ts';
import type { Search } from './search.ts';
import { countEntries, findPlaces, searchPage } from './search-store.ts';
import { readInSingleStatement } from './single-statement.ts';
import { inQuerySnapshot, type QueryAtMoment, type QuerySnapshot, queryAt, type ReadDependencies } from './snapshot.ts';
import { readTalliedPlaces } from './tally-store.ts';

/**
 * Finds a page of the entries that satisfy a query, newest first, and their exact total, both from one snapshot of the
 * database. Rejects with an AnnalsError, validation_violation, when a regular expression exceeds its budget or the page
 * has too much text, and with the reason of the current work when that is aborted.
 *
 * @example
 * const query = parseQuery('entity:order type:delete', changelogDialect);
 * const { total, entries } = await findPage('acme', query, { skip: 0, size: 20 });
 */
export type FindPage = (tenant: string, query: Query, page: PageOptions) => Promise<PageOfEntries>;

export interface PageOptions {
  readonly skip: number;
  readonly size: number;
  /** Whether a page with much text may come as `pieces`, or every page does. Otherwise more than 64 MiB are a 400. */
  readonly inPieces?: boolean | 'always';
  readonly withContext?: boolean;
  readonly withIdentity?: boolean;
  readonly restriction?: Restriction | undefined;
}

export interface HistoryOptions extends ReadDependencies {
  now: () => number;
  /** Names shared with other parts of the process; default: a cache of its own. */
  dictionaries?: DictionaryCache;
}

/** New names are rare. If so many reads in a row find new ones, the names are read in the snapshot that answers. */
const maxAttempts = 3;

export function createFindPage(options: HistoryOptions): FindPage {
  const { now, dictionaries = new DictionaryCache(options.pool), ...dependencies } = options;

  return async (tenant, query, { restriction, ...parameters }) => {
    const { inPieces = false, withContext = false, withIdentity = false, ...page } = parameters;
    const request = { ...queryAt(tenant, query, now(), restriction), ...page, inPieces, withContext, withIdentity };
    let dictionary = dictionaries.known(tenant) ?? (await dictionaries.get(tenant));
    // Circumstances, identities and pieces are rarely requested, so the single statement does not return them.
    const isPlain = !withContext && !withIdentity && inPieces !== 'always';
    for (let attempt = 0; isPlain && attempt < maxAttempts; attempt++) {
      const read = await readInSingleStatement(dependencies, request, dictionary);
      if (typeof read === 'object') return read;
      if (read === 'several statements') break;
      dictionary = await dictionaries.get(tenant, dictionary);
    }
    return await readInSnapshot(dependencies, request, dictionary);
  };
}

type PageQuery = QueryAtMoment & Required<Omit<PageOptions, 'restriction'>>;

/** Answers a page with several statements in one snapshot, with the names of that snapshot. */
async function readInSnapshot(
  dependencies: ReadDependencies,
  page: PageQuery,
  known: Dictionary,
): Promise<PageOfEntries> {
  return await inQuerySnapshot(dependencies, page, known, async (snapshot) => {
    const plan = await planQuery(snapshot);
    const { total, places } = await findPlacesOfPage(snapshot, plan, page);
    const entries = await readPlaces(dependencies.pool, snapshot.transaction, places, page);
    return { plan: planNameOf(plan), total, ...entries };
  });
}

async function findPlacesOfPage(
  snapshot: QuerySnapshot,
  { intervals, search, everything, scanned }: QueryPlan,
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
 * Counts and finds in one scan where few entries come into question. Otherwise most entries satisfy the condition, and
 * reading in their order finds the page soon.
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

/** The place of an entry; undefined if the query of the snapshot does not match it, or it was deleted. */
export async function findPlace(
  { transaction, tenant, expression, dictionary, since, slice }: QuerySnapshot,
  { at, identity }: { readonly at: number; readonly identity: string },
): Promise<Place | undefined> {
  const satisfies = await entryConditions(tenant, expression, dictionary, slice);
  const { rows } = await sql<Place>`
    select e.at, e.sequence from change_entry e
      where e.tenant = ${tenant} and e.at = ${at} and e.identity = ${identity}::uuid and e.at >= ${since}
        and ${satisfies(expression)}`.execute(transaction);
  return rows[0];
}
