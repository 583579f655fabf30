import { Semaphore } from '../core/fairness/semaphore.ts';
import { currentWork } from '../core/fairness/work.ts';
import type { Restriction } from '../http/credentials.ts';
import { insufficientScopes } from '../http/scopes.ts';
import { and, type Query } from '../query/ast.ts';
import { type DocumentAt, type DocumentRequest, readDocumentAt } from './documents/document-at.ts';
import { type DocumentSearch, type FoundDocument, searchDocuments } from './documents/search-documents.ts';
import type { EntryKey } from './entries/entry-ref.ts';
import { type EntryRow, type PageOfEntries, readPlaces } from './entries/entry-store.ts';
import type { FacetField } from './search/count-store.ts';
import { countValues, type Facets, findVisibleNames, readFacets } from './search/facets.ts';
import type { HistoryOptions } from './search/find-page.ts';
import { findPlace } from './search/find-page.ts';
import { countInBuckets, type Histogram, type HistogramOptions, readHistogram } from './search/histogram.ts';
import { DictionaryCache } from './search/names/dictionary-cache.ts';
import { type ChangeRecorders, readRecorders } from './search/names/recorder-store.ts';
import { type NameSearch, searchNames } from './search/names/search-names.ts';
import { entityTypesOf, showsDocument } from './search/plan/restriction.ts';
import type { TimeBounds } from './search/plan/window.ts';
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
 * What can be read of the change history beside its list (contract 4), each from one snapshot of the database. Methods
 * that take a query reject with an AnnalsError, validation_violation, when a regular expression exceeds its budget.
 */
export interface HistoryReads {
  /** The entries of a query over time, by type. */
  histogram(tenant: string, query: Query, wanted: HistogramOptions & Restricted): Promise<Histogram>;
  /** The values of a field with most entries. */
  facets(tenant: string, query: Query, asked: { field: FacetField; size: number } & Restricted): Promise<Facets>;
  /** The entry of a ref; undefined if it is not kept any more, or the caller may not see it. */
  entry(
    tenant: string,
    entry: EntryKey,
    asked: { withContext: boolean } & Restricted,
  ): Promise<PageOfEntries | undefined>;
  /** When each way of a tenant recorded last. */
  recorders(tenant: string): Promise<ChangeRecorders>;
  /**
   * The names of a field that begin with a prefix. This and the next two reject with insufficient_permissions for a restriction that
   * does not show all entries of an entity type, or none.
   */
  names(tenant: string, asked: NameSearch & Restricted): Promise<string[]>;
  /** The paths that begin with a prefix; places in arrays are written `*`. */
  paths(tenant: string, asked: PathSearch & Restricted): Promise<string[]>;
  /** The documents whose id or name begins with a prefix. */
  documents(tenant: string, asked: DocumentSearch & Restricted): Promise<FoundDocument[]>;
  /**
   * A document as it was. The caller calls `release` when it needs the document no more. Rejects with an AnnalsError,
   * resource_not_found, if there is no entry of it, or not so many. Rejects with insufficient_permissions where a restriction may show
   * a part of its history.
   */
  document(tenant: string, asked: DocumentRequest & Restricted): Promise<{ found: DocumentAt; release: () => void }>;
}

/** Documents with much text that a process has in memory at a time; one tenant has at most half (contract 11). */
export const maxLargeDocuments = 4;
/** Requests of one tenant that wait to rebuild such a document. */
export const maxWaitingDocuments = 256;

export function createHistoryReads(options: HistoryOptions): HistoryReads {
  const { now, dictionaries = new DictionaryCache(options.pool), ...reading } = options;
  const largeDocuments = new Semaphore({
    places: maxLargeDocuments,
    maxWaitingOfTenant: maxWaitingDocuments,
    name: 'large documents',
  });

  async function knownNames(tenant: string) {
    return dictionaries.known(tenant) ?? (await dictionaries.get(tenant));
  }

  /** Counts the entries of a query: those that one statement reads where they are few, and otherwise in a snapshot. */
  async function count<Result>(
    tenant: string,
    query: Query,
    { restriction }: Restricted,
    ways: {
      few: (entries: readonly EntryRow[], at: { asked: TimeBounds; now: number }) => Result;
      all: (snapshot: QuerySnapshot) => Promise<Result>;
    },
  ): Promise<Result> {
    const of = queryAt(tenant, query, now(), restriction);
    const names = await knownNames(tenant);
    const entries = await readFew(reading, of, names);
    // Without an entry, the times of the snapshot tell where the answer begins.
    if (entries === undefined || entries.length === 0) return await inQuerySnapshot(reading, of, names, ways.all);
    return ways.few(entries, { asked: { from: Math.max(of.from, of.bounds.from), to: of.bounds.to }, now: of.now });
  }

  /** A snapshot that tells of the entity types which a restriction shows. */
  async function ofShownTypes<Result>(
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
    return await inHistorySnapshot(reading, { tenant, now: now() }, await knownNames(tenant), work);
  }

  return {
    async histogram(tenant, query, wanted) {
      return await count(tenant, query, wanted, {
        few: (entries, at) => countInBuckets(entries, at, wanted),
        all: (snapshot) => readHistogram(snapshot, wanted),
      });
    },

    async facets(tenant, query, asked) {
      return await count(tenant, query, asked, {
        few: (entries) => countValues(entries, asked),
        all: (snapshot) => readFacets(snapshot, asked),
      });
    },

    async names(tenant, asked) {
      return await ofShownTypes(tenant, asked, (snapshot) => {
        const { actors, kinds } = snapshot.dictionary;
        const named = { actors, kinds: kindsShown(snapshot, undefined) ?? kinds };
        return searchNames(named, asked, findVisibleNames(snapshot, tenant, asked.field));
      });
    },

    async paths(tenant, asked) {
      return await ofShownTypes(tenant, asked, (snapshot) => searchPaths(snapshot, tenant, asked));
    },

    async documents(tenant, asked) {
      return await ofShownTypes(tenant, asked, (snapshot) => searchDocuments(snapshot, tenant, asked));
    },

    async recorders(tenant) {
      return await readRecorders(reading.db, tenant);
    },

    async entry(tenant, entry, { withContext, restriction }) {
      // The query of a restriction is resolved whether the entry is there or not: nothing tells the two apart.
      const of = { ...queryAt(tenant, and([], 1), now(), restriction), from: 0 };
      return await inQuerySnapshot(reading, of, await knownNames(tenant), async (snapshot) => {
        const place = await findPlace(snapshot, entry);
        if (place === undefined) return undefined;
        const page = { tenant, inPieces: true, withContext, withIdentity: true };
        return { plan: 'search', total: 1, ...(await readPlaces(reading.pool, snapshot.transaction, [place], page)) };
      });
    },

    async document(tenant, { restriction, ...asked }) {
      const isShown = restriction === undefined ? true : showsDocument(restriction, asked);
      if (isShown === undefined) throw insufficientScopes();
      const inShown = <Result>(work: (snapshot: HistorySnapshot) => Promise<Result>) =>
        inSnapshot(tenant, (snapshot) => work(isShown ? snapshot : { ...snapshot, shows: () => false }));
      const shown = { ...asked, hide: restriction?.hide ?? [], actors: restriction?.actors ?? true };
      const small = await inShown((snapshot) => readDocumentAt(snapshot, tenant, shown, false));
      if (small !== undefined) return { found: small, release: () => {} };
      // This waits for a place after the first transaction has returned its connection: callers that have places may
      // need that connection.
      const release = await largeDocuments.acquire(tenant, currentWork()?.signal);
      try {
        const large = await inShown((snapshot) => readDocumentAt(snapshot, tenant, shown, true));
        if (large === undefined) throw new Error('a document that may be large was too large');
        return { found: large, release };
      } catch (error) {
        release();
        throw error;
      }
    },
  };
}
