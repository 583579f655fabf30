import type { Steps } from '../json/steps.ts';
import { type CallOptions, path } from '../transport/request.ts';
import type { Transport } from '../transport/transport.ts';
import { type Page, Walk } from './walk.ts';

/** What a list of the change history takes. */
export interface HistoryParameters {
  /** A filter: text of the query language, or a query of `@annals/client/query`. */
  readonly q?: string | { toString(): string } | undefined;
  /** The page to begin with; the first is 1. */
  readonly page?: number | undefined;
  /** Entries of a page: 1 to 100; left out: 20. */
  readonly size?: number | undefined;
  /** Asks for the context of each entry and how it was recorded; needs `changelog.changelog_manage`. */
  readonly context?: boolean | undefined;
  /** Asks for the `ref` of each entry. */
  readonly ref?: boolean | undefined;
  /** Values with more bytes of JSON text are cut; 256 or more. */
  readonly valueLimit?: number | undefined;
}

/** The members of an answer of the change history. */
export interface HistoryAnswer<Entry> {
  readonly items: readonly Entry[];
  readonly page: number;
  readonly size: number;
  readonly totalElements: number;
  readonly totalPages: number;
}

/** Reads the JSON texts of the answers that hold values. */
export interface HistoryAnswers<Entry, Document> {
  readonly page: (text: string) => Steps<HistoryAnswer<Entry>>;
  readonly entry: (text: string) => Steps<Entry>;
  readonly document: (text: string) => Steps<Document>;
}

/** A page of the change history. `totalElements` is exact, in the snapshot of the items. */
export interface HistoryPage<Entry> extends HistoryAnswer<Entry>, Page<Entry> {
  nextPage(): Promise<HistoryPage<Entry> | undefined>;
  /** The page before this one; undefined before the first. */
  previousPage(): Promise<HistoryPage<Entry> | undefined>;
}

export interface HistoryRequest<Entry> {
  readonly transport: Transport;
  readonly tenant: string;
  readonly options: CallOptions | undefined;
  readonly read: (text: string) => Steps<HistoryAnswer<Entry>>;
}

/**
 * The change history, newest first. An iteration has only entries that existed at its first page: entries recorded
 * meanwhile would move the others to later pages, where they would come a second time.
 */
export function historyWalk<Entry extends { readonly at: string }>(
  list: HistoryRequest<Entry>,
  parameters: HistoryParameters,
): Walk<Entry, HistoryPage<Entry>> {
  return new Walk(() => fetchPage(list, parameters, undefined));
}

async function fetchPage<Entry extends { readonly at: string }>(
  list: HistoryRequest<Entry>,
  { q, page, size, ...shown }: HistoryParameters,
  newest: string | undefined,
): Promise<HistoryPage<Entry>> {
  const written = q === undefined ? '' : String(q);
  const { context, ref, valueLimit } = shown;
  const query = { q: bounded(written, newest), page, size, context, ref, valueLimit };
  const answer = await list.transport.send(
    { method: 'GET', path: path`/changelog/${list.tenant}/changelogs`, query },
    list.options,
  );
  const found = await list.transport.read(list.read(answer.text), list.options);
  const bound = newest ?? (found.page === 1 ? found.items[0]?.at : undefined);
  const neighbour = async (number: number) =>
    number < 1 || number > found.totalPages
      ? undefined
      : await fetchPage(list, { q, page: number, size: found.size, ...shown }, bound);
  return {
    ...found,
    nextPage: async () => await neighbour(found.page + 1),
    previousPage: async () => await neighbour(found.page - 1),
  };
}

/** A longer query may have as many characters or terms as the service takes. */
const maxBoundedLength = 2_000;

/**
 * An upper bound beside the other terms. It leaves the service's window as it is, which only a lower bound replaces.
 */
function bounded(q: string, newest: string | undefined): string | undefined {
  if (newest === undefined || q.length > maxBoundedLength) return q === '' ? undefined : q;
  return `${q} occurredAt:<="${newest}"`;
}
