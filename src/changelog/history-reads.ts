import type { Query } from '../query/ast.ts';
import type { HistoryOptions } from './find-page.ts';
import { DictionaryCache } from './names/dictionary-cache.ts';
import { inQuerySnapshot, type QuerySnapshot, queryAt } from './read/query-snapshot.ts';
import { type Facets, readFacets } from './summary/facets.ts';
import { type Histogram, readHistogram } from './summary/histogram.ts';
import type { FacetField } from './summary/summary-store.ts';

/**
 * What can be read of the change history beside its list (contract 4), each from one snapshot of the database. Every
 * method rejects with an AnnalsError, validation_violation, when a regular expression exceeds its budget.
 */
export interface HistoryReads {
  /** The entries of a query over time, by type. */
  histogram(tenant: string, query: Query, buckets: number): Promise<Histogram>;
  /** The values of a field with most entries. */
  facets(tenant: string, query: Query, asked: { field: FacetField; size: number }): Promise<Facets>;
}

export function createHistoryReads(options: HistoryOptions): HistoryReads {
  const { now, dictionaries = new DictionaryCache(options.pool), ...reading } = options;

  async function inSnapshot<Result>(tenant: string, query: Query, work: (snapshot: QuerySnapshot) => Promise<Result>) {
    const known = dictionaries.known(tenant) ?? (await dictionaries.get(tenant));
    return await inQuerySnapshot(reading, queryAt(tenant, query, now()), known, work);
  }

  return {
    async histogram(tenant, query, buckets) {
      return await inSnapshot(tenant, query, (snapshot) => readHistogram(snapshot, buckets));
    },
    async facets(tenant, query, asked) {
      return await inSnapshot(tenant, query, (snapshot) => readFacets(snapshot, asked));
    },
  };
}
