import type { ExactChangeEntry } from '../json/exact-answers.ts';
import { type HistoryAnswer, type HistoryPage, type HistoryParameters, historyWalk } from '../pages/history-page.ts';
import type { Walk } from '../pages/walk.ts';
import type { ChangeEntry, ChangeFacets, ChangeHistogram } from '../schemas.ts';
import { type CallOptions, type Parameters, path } from '../transport/request.ts';
import type { Transport } from '../transport/transport.ts';

/** A filter: text of the query language, or a query of `@annals/client/query`. */
type Filter = string | { toString(): string };

export interface HistogramParameters {
  readonly q?: Filter | undefined;
  /** At most so many: 1 to 500; left out: 60. */
  readonly buckets?: number | undefined;
}

export interface FacetParameters {
  readonly q?: Filter | undefined;
  readonly field: 'entity' | 'type' | 'actor';
  /** Values: 1 to 100; left out: 20. */
  readonly size?: number | undefined;
}

/** The change history of the tenant: who changed which document, when, and from what to what. */
export class History<Entry extends ChangeEntry | ExactChangeEntry = ChangeEntry> {
  readonly #transport: Transport;
  readonly #tenant: string;
  readonly #read: (text: string) => HistoryAnswer<Entry>;

  constructor(transport: Transport, tenant: string, read: (text: string) => HistoryAnswer<Entry>) {
    this.#transport = transport;
    this.#tenant = tenant;
    this.#read = read;
  }

  /**
   * The entries that match, newest first. Without an `occurredAt` from-bound: those of the last 30 days.
   *
   * @example
   * const { items, totalElements } = await annals.history.list({ q: 'entity:product type:update', size: 50 });
   * for await (const entry of annals.history.list({ q: and(entity('order'), actor('Jane Doe')) })) …
   */
  list(parameters: HistoryParameters = {}, options?: CallOptions): Walk<Entry, HistoryPage<Entry>> {
    return historyWalk({ transport: this.#transport, tenant: this.#tenant, options, read: this.#read }, parameters);
  }

  /**
   * How many of the changes that match occurred when, by type. All of them are counted, exactly.
   *
   * @example
   * const { interval, buckets } = await annals.history.histogram({ q: 'entity:order', buckets: 31 });
   */
  async histogram({ q, buckets }: HistogramParameters = {}, options?: CallOptions): Promise<ChangeHistogram> {
    return await this.#fetch('histogram', { q: q?.toString(), buckets }, options);
  }

  /**
   * The values of a field that most of the changes that match have.
   *
   * @example
   * const { values, others } = await annals.history.facets({ field: 'actor', size: 5 });
   */
  async facets({ q, field, size }: FacetParameters, options?: CallOptions): Promise<ChangeFacets> {
    return await this.#fetch('facets', { q: q?.toString(), field, size }, options);
  }

  async #fetch<Answer>(operation: string, query: Parameters, options: CallOptions | undefined): Promise<Answer> {
    return await this.#transport.fetchJson(
      { method: 'GET', path: path`/changelog/${this.#tenant}/${operation}`, query },
      options,
    );
  }
}
