import type { CursorPage, ListParameters } from '@annals/client';
import { type Requested, useRequest } from '../api/requests.ts';
import { place, setParameters } from '../router/router.tsx';

/** Reads a page of a list: one of the client's lists, called with the signal. */
type ReadPage<Item> = (parameters: ListParameters, signal: AbortSignal) => PromiseLike<CursorPage<Item>>;

interface ListOptions<Item> {
  /** Tells this list from others. */
  readonly name: string;
  readonly read: ReadPage<Item>;
  readonly pageSize?: number;
  /** Where the address names no order. */
  readonly defaultSort?: string;
  /** A filter that always holds, beside that of the reader. */
  readonly only?: string | undefined;
}

/** A list whose filter, order and place stand in the address, so that they can be shared. */
export interface List<Item> {
  readonly page: Requested<CursorPage<Item>>;
  /** All that match; counted once for a filter, not again for each page. */
  readonly total: number | undefined;
  /** Whether the items that are shown are all that match. */
  readonly hasOnePage: boolean;
  readonly filter: string;
  readonly sort: string;
  readonly onNext: (() => void) | undefined;
  readonly onPrevious: (() => void) | undefined;
  readonly setFilter: (filter: string) => void;
  readonly setSort: (sort: string) => void;
  readonly reload: () => void;
}

const start = { next: undefined, prev: undefined } as const;

/**
 * @example
 * const agents = useList({ name: 'agents', read: (parameters, signal) => annals().agents.list(parameters, { signal }) });
 */
export function useList<Item>({
  name,
  read,
  pageSize = 50,
  defaultSort = '',
  only = '',
}: ListOptions<Item>): List<Item> {
  const { parameters } = place.value;
  const filter = parameters.get('q') ?? '';
  const sort = parameters.get('sort') ?? defaultSort;
  const next = parameters.get('next') ?? undefined;
  const prev = parameters.get('prev') ?? undefined;
  const q = [only, filter.trim()].filter((part) => part !== '').join(' ');
  const filtered = q === '' ? undefined : q;

  const page = useRequest(JSON.stringify([name, q, sort, next, prev, pageSize]), (signal) =>
    read({ q: filtered, sort: sort === '' ? undefined : sort, pageSize, next, prev }, signal),
  );
  const count = useRequest(JSON.stringify([name, q]), async (signal) => {
    const { total } = await read({ q: filtered, pageSize: 1, total: true }, signal);
    return total;
  });

  const { next: following, prev: before } = page.value ?? {};
  return {
    page,
    total: count.isCurrent ? count.value : undefined,
    hasOnePage: following === undefined && before === undefined,
    filter,
    sort,
    onNext: following === undefined ? undefined : () => setParameters({ next: following, prev: undefined }),
    onPrevious: before === undefined ? undefined : () => setParameters({ prev: before, next: undefined }),
    setFilter: (changed) => setParameters({ ...start, q: changed }),
    setSort: (changed) => setParameters({ ...start, sort: changed }),
    reload() {
      page.reload();
      count.reload();
    },
  };
}
