import { computed } from '@preact/signals';
import { joined } from '../query-text/edit-query.ts';
import { place, setParameters, type Target } from '../router/router.tsx';

/** What the address of the History page says. */
export interface HistoryView {
  readonly q: string;
  /** The id of the saved view that is shown, or that the query began as. */
  readonly view: string | undefined;
  /** From 1. */
  readonly page: number;
  /** Entries after this time are left out, so that pages do not move while new ones are recorded. */
  readonly until: string | undefined;
  /** The ref of the entry whose detail is open. */
  readonly entry: string | undefined;
}

export const historyView = computed((): HistoryView => {
  const { parameters } = place.value;
  const page = Number(parameters.get('page'));
  return {
    q: parameters.get('q') ?? '',
    view: parameters.get('view') ?? undefined,
    page: Number.isInteger(page) && page > 0 ? page : 1,
    until: parameters.get('until') ?? undefined,
    entry: parameters.get('entry') ?? undefined,
  };
});

/** The query that is sent: that of the reader, bounded by the time at which paging started. */
export function sentQuery({ q, until }: Pick<HistoryView, 'q' | 'until'>): string {
  return until === undefined ? q : joined(q, `occurredAt:<="${until}"`);
}

/**
 * Shows another query, from its first page. One that began as a saved view still says so; no query at all leaves the
 * view.
 */
export function showQuery(q: string): void {
  setParameters({ ...(q === '' ? { view: undefined } : {}), q, page: undefined, until: undefined, entry: undefined });
}

/** The address of the history of a query. */
export function historyOf(q: string): Target {
  return { path: 'history', parameters: { q } };
}
