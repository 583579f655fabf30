import { Semaphore } from '../core/concurrency/semaphore.ts';
import { currentWork } from '../core/concurrency/work.ts';
import type { Query } from '../query/ast.ts';
import { type Facets, readFacets } from './count/facets.ts';
import { type Histogram, type HistogramWanted, readHistogram } from './count/histogram.ts';
import type { FacetField } from './count/summary-store.ts';
import { type DocumentSearch, type FoundDocument, searchDocuments } from './directory/search-documents.ts';
import { type AskedDocument, type DocumentAt, readDocumentAt } from './document/document-at.ts';
import type { ReferredEntry } from './entry/entry-ref.ts';
import { findPlace } from './entry/entry-store.ts';
import type { HistoryOptions } from './find-page.ts';
import { DictionaryCache } from './names/dictionary-cache.ts';
import { findVisible } from './names/name-store.ts';
import { type ChangeRecorders, readRecorders } from './names/recorder-store.ts';
import { type NameSearch, searchNames } from './names/search-names.ts';
import { readPlaces } from './page/long-page.ts';
import {
  type HistorySnapshot,
  inHistorySnapshot,
  inQuerySnapshot,
  type QuerySnapshot,
  queryAt,
} from './page/query-snapshot.ts';
import type { PageOfEntries } from './page/store.ts';
import { type PathSearch, searchPaths } from './paths/search-paths.ts';

/**
 * What can be read of the change history beside its list (contract 4), each from one snapshot of the database. Methods
 * that take a query reject with an AnnalsError, validation_violation, when a regular expression exceeds its budget.
 */
export interface HistoryReads {
  /** The entries of a query over time, by type. */
  histogram(tenant: string, query: Query, wanted: HistogramWanted): Promise<Histogram>;
  /** The values of a field with most entries. */
  facets(tenant: string, query: Query, asked: { field: FacetField; size: number }): Promise<Facets>;
  /** The entry of a ref; undefined if it is not kept any more. */
  entry(tenant: string, entry: ReferredEntry, withContext: boolean): Promise<PageOfEntries | undefined>;
  /** When each way of a tenant recorded last. */
  recorders(tenant: string): Promise<ChangeRecorders>;
  /** The names of a field that begin with a prefix. */
  names(tenant: string, asked: NameSearch): Promise<string[]>;
  /** The paths that begin with a prefix; places in arrays are written `*`. */
  paths(tenant: string, asked: PathSearch): Promise<string[]>;
  /** The documents whose id or name begins with a prefix. */
  documents(tenant: string, asked: DocumentSearch): Promise<FoundDocument[]>;
  /**
   * A document as it was. The caller calls `release` when it needs the document no more. Rejects with an AnnalsError,
   * resource_not_found, if there is no entry of it, or not so many.
   */
  document(tenant: string, asked: AskedDocument): Promise<{ found: DocumentAt; release: () => void }>;
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

  async function inQuery<Result>(tenant: string, query: Query, work: (snapshot: QuerySnapshot) => Promise<Result>) {
    return await inQuerySnapshot(reading, queryAt(tenant, query, now()), await knownNames(tenant), work);
  }

  async function inSnapshot<Result>(tenant: string, work: (snapshot: HistorySnapshot) => Promise<Result>) {
    return await inHistorySnapshot(reading, { tenant, now: now() }, await knownNames(tenant), work);
  }

  return {
    async histogram(tenant, query, wanted) {
      return await inQuery(tenant, query, (snapshot) => readHistogram(snapshot, wanted));
    },

    async facets(tenant, query, asked) {
      return await inQuery(tenant, query, (snapshot) => readFacets(snapshot, asked));
    },

    async names(tenant, asked) {
      const of = asked.field === 'actor' ? 'actor' : 'kind';
      return await inSnapshot(tenant, ({ transaction, dictionary, horizon: since }) =>
        searchNames(dictionary, asked, (ids) => findVisible(transaction, tenant, of, { ids, since })),
      );
    },

    async paths(tenant, asked) {
      return await inSnapshot(tenant, (snapshot) => searchPaths(snapshot, tenant, asked));
    },

    async documents(tenant, asked) {
      return await inSnapshot(tenant, (snapshot) => searchDocuments(snapshot, tenant, asked));
    },

    async recorders(tenant) {
      return await readRecorders(reading.db, tenant);
    },

    async entry(tenant, entry, withContext) {
      return await inSnapshot(tenant, async ({ transaction, horizon }) => {
        const place = await findPlace(transaction, tenant, entry, horizon);
        if (place === undefined) return undefined;
        const page = { tenant, inPieces: true, withContext, withIdentity: true };
        return { way: 'search', total: 1, ...(await readPlaces(reading.pool, transaction, [place], page)) };
      });
    },

    async document(tenant, asked) {
      const small = await inSnapshot(tenant, (snapshot) => readDocumentAt(snapshot, tenant, asked, false));
      if (small !== undefined) return { found: small, release: () => {} };
      // This waits for a place after the first transaction has returned its connection: callers that have places may
      // need that connection.
      const release = await largeDocuments.acquire(tenant, currentWork()?.signal);
      try {
        const large = await inSnapshot(tenant, (snapshot) => readDocumentAt(snapshot, tenant, asked, true));
        if (large === undefined) throw new Error('a document that may be large was too large');
        return { found: large, release };
      } catch (error) {
        release();
        throw error;
      }
    },
  };
}
