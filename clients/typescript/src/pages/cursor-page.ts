import type { ApiRequest, CallOptions, Parameters } from '../transport/request.ts';
import type { Transport } from '../transport/transport.ts';
import { type Page, Walk } from './walk.ts';

/** What a list of whole items takes. */
export interface ListParameters {
  /** A filter: text of the query language, or a query of `@annals/client/query`. */
  readonly q?: string | { toString(): string } | undefined;
  /** `field:ASC,other:DESC`, up to 8 fields; left out: by id. */
  readonly sort?: string | undefined;
  /** Items of a page: 1 to 500; left out: 60. */
  readonly pageSize?: number | undefined;
  /** The page to begin with; the first is 1. */
  readonly pageNumber?: number | undefined;
  /** Begins after this cursor, that of an earlier page. */
  readonly next?: string | undefined;
  /** Begins with the page before this cursor. */
  readonly prev?: string | undefined;
  /** Asks for the number of all items. A page that is reached by a cursor has none. */
  readonly total?: boolean | undefined;
}

/** What a list of parts of items takes. */
export interface FieldsParameters extends ListParameters {
  /** The field paths that are wanted, with commas between them; the id always is. */
  readonly fields: string;
}

/** A page of a list, with the cursors of its neighbours. */
export interface CursorPage<Item> extends Page<Item> {
  /** The number of all items, where it was asked for. */
  readonly total: number | undefined;
  /** The cursor of what follows; undefined where nothing does. */
  readonly next: string | undefined;
  /** The cursor of what comes before; undefined where nothing does. */
  readonly prev: string | undefined;
  nextPage(): Promise<CursorPage<Item> | undefined>;
  /** The page before this one, its items in the same order; undefined before the first. */
  previousPage(): Promise<CursorPage<Item> | undefined>;
}

export interface ListRequest<Item> {
  readonly transport: Transport;
  readonly path: string;
  readonly options: CallOptions | undefined;
  /** Reads the items of a page from its JSON text. */
  readonly read: (text: string) => readonly Item[];
}

/** A list of the service, which goes on from page to page by cursors: nothing is skipped and nothing comes twice. */
export function listWalk<Item>(
  list: ListRequest<Item>,
  parameters: ListParameters | FieldsParameters,
): Walk<Item, CursorPage<Item>> {
  return new Walk(() => fetchPage(list, parameters));
}

async function fetchPage<Item>(
  list: ListRequest<Item>,
  parameters: ListParameters | FieldsParameters,
): Promise<CursorPage<Item>> {
  const { total = false, q, ...rest } = parameters;
  const query: Parameters = { ...rest, q: q === undefined ? undefined : String(q) };
  const headers = { 'x-total-count': total ? 'true' : undefined };
  const request: ApiRequest = { method: 'GET', path: list.path, query, headers };
  const answer = await list.transport.send(request, list.options);
  const next = answer.headers.get('x-next-cursor') ?? undefined;
  const prev = answer.headers.get('x-prev-cursor') ?? undefined;
  const count = answer.headers.get('x-total-count');
  const { pageNumber: _, total: _asked, ...same } = parameters;
  return {
    items: list.read(answer.text),
    total: count === null ? undefined : Number(count),
    next,
    prev,
    nextPage: async () => (next === undefined ? undefined : await fetchPage(list, { ...same, next, prev: undefined })),
    previousPage: async () =>
      prev === undefined ? undefined : await fetchPage(list, { ...same, prev, next: undefined }),
  };
}
