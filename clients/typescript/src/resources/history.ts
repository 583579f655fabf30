import type { ExactChangeEntry, ExactDocumentAtMoment } from '../json/exact-answers.ts';
import { type HistoryAnswers, type HistoryPage, type HistoryParameters, historyWalk } from '../pages/history-page.ts';
import type { Walk } from '../pages/walk.ts';
import type {
  ChangeEntry,
  ChangeFacets,
  ChangeHistogram,
  ChangeNames,
  ChangeRecorders,
  DocumentAtMoment,
  DocumentNames,
} from '../schemas.ts';
import { parseAnswer } from '../transport/answer-json.ts';
import { type CallOptions, type Parameters, path } from '../transport/request.ts';
import type { Transport } from '../transport/transport.ts';
import { type Placed, type TailParameters, tailOf } from './tail.ts';

/** A filter: text of the query language, or a query of `@annals/client/query`. */
type Filter = string | { toString(): string };

export interface HistogramParameters {
  readonly q?: Filter | undefined;
  /** At most so many: 1 to 500; left out: 60. */
  readonly buckets?: number | undefined;
  /** The IANA time zone whose midnights begin buckets of days; left out: UTC. */
  readonly timeZone?: string | undefined;
}

export interface FacetParameters {
  readonly q?: Filter | undefined;
  /** A member of the context as in `q`: `context.ip`. */
  readonly field: 'entity' | 'type' | 'actor' | 'actorId' | 'onBehalfOf' | 'path' | `context.${string}`;
  /** Values: 1 to 100; left out: 20. */
  readonly size?: number | undefined;
}

export interface NameParameters {
  readonly field: 'entity' | 'actor' | 'related.entity' | 'path';
  /** The entity type whose paths to list; left out: any. Other fields ignore it. */
  readonly entity?: string | undefined;
  /** Left out: any name. */
  readonly prefix?: string | undefined;
  /** Names: 1 to 100; left out: 20. */
  readonly size?: number | undefined;
}

export interface DocumentNameParameters {
  readonly field: 'document';
  /** The type of the documents; left out: any. */
  readonly entity?: string | undefined;
  /** What the id, or words of the name, begin with; left out: any document. */
  readonly prefix?: string | undefined;
  /** Only documents whose last change is before it: a Date or RFC 3339. */
  readonly changedBefore?: Date | string | undefined;
  /** Documents: 1 to 100; left out: 20. */
  readonly size?: number | undefined;
}

export interface DocumentParameters {
  readonly entity: string;
  readonly entityId: string;
  /** The moment, as a Date or as RFC 3339. */
  readonly at?: Date | string | undefined;
  /** In place of `at`: after so many of its changes. */
  readonly changes?: number | undefined;
}

export interface EntryParameters {
  /** Asks for the context of the entry and how it was recorded; needs `changelog.changelog_manage`. */
  readonly context?: boolean | undefined;
  /** Values with more bytes of JSON text are cut; 256 or more. */
  readonly valueLimit?: number | undefined;
}

/** The change history of the tenant: who changed which document, when, and from what to what. */
export class History<
  Entry extends ChangeEntry | ExactChangeEntry = ChangeEntry,
  Document extends DocumentAtMoment | ExactDocumentAtMoment = DocumentAtMoment,
> {
  readonly #transport: Transport;
  readonly #tenant: string;
  readonly #answers: HistoryAnswers<Entry, Document>;

  constructor(transport: Transport, tenant: string, answers: HistoryAnswers<Entry, Document>) {
    this.#transport = transport;
    this.#tenant = tenant;
    this.#answers = answers;
  }

  /**
   * The entries that match, newest first. Without an `occurredAt` from-bound: those of the last 30 days.
   *
   * @example
   * const { items, totalElements } = await annals.history.list({ q: 'entity:product type:update', size: 50 });
   * for await (const entry of annals.history.list({ q: and(entity('order'), actor('Jane Doe')) })) …
   */
  list(parameters: HistoryParameters = {}, options?: CallOptions): Walk<Entry, HistoryPage<Entry>> {
    return historyWalk(
      { transport: this.#transport, tenant: this.#tenant, options, read: this.#answers.page },
      parameters,
    );
  }

  /**
   * The changes that match as they are recorded, oldest first: those behind a cursor, and those to come. It goes on
   * after faults until the caller leaves the loop or the signal ends it. Each change comes at least once; what comes
   * twice has the same `ref`.
   *
   * @example
   * for await (const change of annals.history.tail({ q: 'entity:product', after: await load() })) {
   *   await deal(change);
   *   await save(change.cursor);
   * }
   */
  tail(parameters: TailParameters = {}, options?: CallOptions): AsyncGenerator<Entry & Placed, void, undefined> {
    const of = { transport: this.#transport, tenant: this.#tenant, read: this.#answers.entry };
    return tailOf(of, parameters, options);
  }

  /**
   * How many of the changes that match occurred when, by type. All of them are counted, exactly.
   *
   * @example
   * const { interval, buckets } = await annals.history.histogram({ q: 'entity:order', buckets: 31 });
   */
  async histogram({ q, buckets, timeZone }: HistogramParameters = {}, options?: CallOptions): Promise<ChangeHistogram> {
    return await this.#fetch('histogram', { q: q?.toString(), buckets, timeZone }, options);
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

  /**
   * The names of entities, actors or changed fields (paths) that begin with a prefix, whatever the case. With
   * `field: 'document'`: the documents whose id, or words of whose last name, begin so, the latest changed first. Without
   * `changedBefore` an exact id and then exact names come before them; with it they are left out.
   *
   * @example
   * const { values } = await annals.history.names({ field: 'actor', prefix: 'ja' });
   * const { values: lamps } = await annals.history.names({ field: 'document', prefix: 'desk lamp' });
   */
  async names(parameters: DocumentNameParameters, options?: CallOptions): Promise<DocumentNames>;
  async names(parameters: NameParameters, options?: CallOptions): Promise<ChangeNames>;
  async names(
    parameters: NameParameters | DocumentNameParameters,
    options?: CallOptions,
  ): Promise<ChangeNames | DocumentNames> {
    if (parameters.field !== 'document') return await this.#fetch('names', { ...parameters }, options);
    const { changedBefore, ...rest } = parameters;
    const moment = changedBefore instanceof Date ? changedBefore.toISOString() : changedBefore;
    return await this.#fetch('names', { ...rest, changedBefore: moment }, options);
  }

  /**
   * What records changes, and when each did so last. Needs `changelog.changelog_manage`.
   *
   * @example
   * const { recorders } = await annals.history.recorders();
   */
  async recorders(options?: CallOptions): Promise<ChangeRecorders> {
    return await this.#fetch('recorders', {}, options);
  }

  /**
   * A document as it was at a moment, or after so many of its changes; left out both: as it is now.
   *
   * @example
   * const { document, complete } = await annals.history.document({ entity: 'product', entityId: 'p-17', at: yesterday });
   */
  async document(parameters: DocumentParameters, options?: CallOptions): Promise<Document> {
    const { entity, entityId, at, changes } = parameters;
    const query = { entity, entityId, at: at instanceof Date ? at.toISOString() : at, changes };
    const steps = this.#answers.document(await this.#fetchText('documents', query, options));
    return await this.#transport.read(steps, options);
  }

  /** The entry that has a `ref`. The list shows refs with `ref: true`. */
  async entry(ref: string, parameters: EntryParameters = {}, options?: CallOptions): Promise<Entry> {
    const { context, valueLimit } = parameters;
    const steps = this.#answers.entry(await this.#fetchText('entries', { ref, context, valueLimit }, options));
    return await this.#transport.read(steps, options);
  }

  async #fetch<Answer>(operation: string, query: Parameters, options: CallOptions | undefined): Promise<Answer> {
    return parseAnswer(await this.#fetchText(operation, query, options)) as Answer;
  }

  async #fetchText(operation: string, query: Parameters, options: CallOptions | undefined): Promise<string> {
    const place = path`/changelog/${this.#tenant}/${operation}`;
    const { text } = await this.#transport.send({ method: 'GET', path: place, query }, options);
    return text;
  }
}
