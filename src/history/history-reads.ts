import { Semaphore } from '../core/fairness/semaphore.ts';
import { currentWork } from '../core/fairness/work.ts';
import type { Restriction } from '../http/credentials.ts';
import { insufficientScopes } from '../http/scopes.ts';
import { and, type Query } from '../query/ast.ts';
import { type DocumentAt, type DocumentRequest, readDocumentAt } from './documents/document-at.ts';
import { type DocumentSearch, type FoundDocument, searchDocuments } from './documents/search-documents.ts';
import type { EntryKey } from './entries/entry-ref.ts';
import { type EntryRow, type PageOfEntries, readPlaces } from './entries/entry-store.ts';
import { readActors } from './search/actors.ts';
import type { FacetOptions } from './search/count-store.ts';
import { countValues, type Facets, findVisibleNames, readFacets } from './search/facets.ts';
import { findPlace, type HistoryOptions } from './search/find-page.ts';
import { countInBuckets, type Histogram, type HistogramOptions, readHistogram } from './search/histogram.ts';
import { DictionaryCache } from './search/names/dictionary-cache.ts';
import { type ChangeRecorders, readRecorders } from './search/names/recorder-store.ts';
import { idsBeginning, type NameSearch, searchNames } from './search/names/search-names.ts';
import { entityTypesOf, showsDocument } from './search/plan/restriction.ts';
import { type PathSearch, searchPaths } from './search/search-paths.ts';
import { readFew } from './search/single-statement.ts';
import {
  type HistorySnapshot,
  inHistorySnapshot,
  inQuerySnapshot,
  kindsShown,
  type QuerySnapshot,
  queryAt,
} from './search/snapshot.ts';

/** What the caller may see. */
interface Restricted {
  readonly restriction?: Restriction | undefined;
}

/**
 * The reads of the change history beside its list (contract 4), each from one snapshot of the database. Those that take
 * a query reject with an AnnalsError, validation_violation, when a regular expression exceeds its budget.
 */
export type HistoryReads = ReturnType<typeof createHistoryReads>;

/** Large documents in memory at a time, per process; one tenant has at most half (contract 11). */
export const maxLargeDocuments = 4;
/** Requests of one tenant that wait to rebuild such a document. */
export const maxWaitingDocuments = 256;

export function createHistoryReads(options: HistoryOptions) {
  const { now, dictionaries = new DictionaryCache(options.pool), ...dependencies } = options;
  const largeDocuments = new Semaphore({
    places: maxLargeDocuments,
    maxWaitingOfTenant: maxWaitingDocuments,
    name: 'large documents',
  });

  /** Counts the entries of a query: those that one statement reads where they are few, and otherwise in a snapshot. */
  async function count<Result>(
    tenant: string,
    query: Query,
    { restriction }: Restricted,
    plans: {
      few: (entries: readonly EntryRow[], time: Pick<QuerySnapshot, 'range' | 'now'>) => Result;
      all: (snapshot: QuerySnapshot) => Promise<Result>;
    },
  ): Promise<Result> {
    const of = queryAt(tenant, query, now(), restriction);
    const names = await dictionaries.get(tenant);
    const entries = await readFew(dependencies, of, names);
    // Without an entry, the times of the snapshot decide where the answer begins.
    if (entries === undefined || entries.length === 0) return await inQuerySnapshot(dependencies, of, names, plans.all);
    return plans.few(entries, { range: { from: Math.max(of.from, of.bounds.from), to: of.bounds.to }, now: of.now });
  }

  /** Rejects with insufficient_permissions for a restriction that may show a part of the entries of an entity type. */
  async function inSnapshotOfTypes<Result>(
    tenant: string,
    { restriction }: Restricted,
    work: (snapshot: HistorySnapshot) => Promise<Result>,
  ) {
    if (restriction === undefined) return await inSnapshot(tenant, work);
    const shows = entityTypesOf(restriction);
    if (shows === undefined) throw insufficientScopes();
    return await inSnapshot(tenant, (snapshot) => work({ ...snapshot, shows }));
  }

  async function inSnapshot<Result>(tenant: string, work: (snapshot: HistorySnapshot) => Promise<Result>) {
    return await inHistorySnapshot(dependencies, { tenant, now: now() }, await dictionaries.get(tenant), work);
  }

  return {
    async histogram(tenant: string, query: Query, request: HistogramOptions & Restricted): Promise<Histogram> {
      return await count(tenant, query, request, {
        few: (entries, time) => countInBuckets(entries, time, request),
        all: (snapshot) => readHistogram(snapshot, request),
      });
    },

    async facets(tenant: string, query: Query, request: FacetOptions & Restricted): Promise<Facets> {
      return await count(tenant, query, request, {
        few: (entries) => countValues(entries, request),
        all: (snapshot) => readFacets(snapshot, request),
      });
    },

    /** The ids of the actors of whom the id or a name begins with a prefix (undefined: all), and what is kept. */
    async actorsBeginning(tenant: string, prefix: string): Promise<{ ids: string[] | undefined; since: number }> {
      return await inSnapshot(tenant, async ({ dictionary, horizon }) => ({
        ids: prefix === '' ? undefined : await idsBeginning(dictionary, prefix),
        since: horizon,
      }));
    },

    /** The actors with these ids, as JSON texts in their order. */
    async actors(tenant: string, ids: readonly string[]): Promise<readonly string[]> {
      return await inSnapshot(tenant, (snapshot) => readActors(snapshot, tenant, ids));
    },

    async names(tenant: string, request: NameSearch & Restricted): Promise<string[]> {
      return await inSnapshotOfTypes(tenant, request, (snapshot) => {
        const { actors, kinds } = snapshot.dictionary;
        const named = { actors, kinds: kindsShown(snapshot, undefined) ?? kinds };
        return searchNames(named, request, findVisibleNames(snapshot, tenant, request.field));
      });
    },

    /** The paths that begin with a prefix; array positions are written `*`. */
    async paths(tenant: string, request: PathSearch & Restricted): Promise<string[]> {
      return await inSnapshotOfTypes(tenant, request, (snapshot) => searchPaths(snapshot, tenant, request));
    },

    async documents(tenant: string, request: DocumentSearch & Restricted): Promise<FoundDocument[]> {
      return await inSnapshotOfTypes(tenant, request, (snapshot) => searchDocuments(snapshot, tenant, request));
    },

    /** When the service, each client and each capture of a tenant recorded last. */
    async recorders(tenant: string): Promise<ChangeRecorders> {
      return await readRecorders(dependencies.db, tenant);
    },

    /** The entry of a ref; undefined if it is no longer kept, or the caller may not see it. */
    async entry(
      tenant: string,
      entry: EntryKey,
      { withContext, restriction }: { withContext: boolean } & Restricted,
    ): Promise<PageOfEntries | undefined> {
      // A restriction's query is resolved whether the entry exists or not: the two take the same time.
      const of = { ...queryAt(tenant, and([], 1), now(), restriction), from: 0 };
      return await inQuerySnapshot(dependencies, of, await dictionaries.get(tenant), async (snapshot) => {
        const place = await findPlace(snapshot, entry);
        if (place === undefined) return undefined;
        const page = { tenant, inPieces: true, withContext, withIdentity: true };
        const read = await readPlaces(dependencies.pool, snapshot.transaction, [place], page);
        return { plan: 'search', total: 1, ...read };
      });
    },

    /**
     * A document as it was. The caller calls `release` when it no longer needs the document. Rejects with
     * resource_not_found if it has no entry, or too few, and with insufficient_permissions where a restriction may show
     * a part of its history.
     */
    async document(
      tenant: string,
      { restriction, ...request }: DocumentRequest & Restricted,
    ): Promise<{ found: DocumentAt; release: () => void }> {
      const isShown = restriction === undefined ? true : showsDocument(restriction, request);
      if (isShown === undefined) throw insufficientScopes();
      const { hide = [], actors = true } = restriction ?? {};
      const read = (mayBeLarge: boolean) =>
        inSnapshot(tenant, (snapshot) => {
          const shown = isShown ? snapshot : { ...snapshot, shows: () => false };
          return readDocumentAt(shown, tenant, { ...request, hide, actors }, mayBeLarge);
        });
      const small = await read(false);
      if (small !== undefined) return { found: small, release: () => {} };
      // Waits for a place only after the first transaction has returned its connection, which holders of places may
      // need.
      const release = await largeDocuments.acquire(tenant, currentWork()?.signal);
      try {
        const large = await read(true);
        if (large === undefined) throw new Error('a document that may be large was too large');
        return { found: large, release };
      } catch (error) {
        release();
        throw error;
      }
    },
  };
}
