import { ApiError } from '@annals/client';
import type { ComponentChildren } from 'preact';
import { Button } from '../components/button.tsx';
import { EmptyState } from '../components/empty-state.tsx';
import { FailureBox } from '../components/failure-box.tsx';
import { LoadingLine, Skeleton } from '../components/loading.tsx';
import { counted } from '../components/numbers.ts';
import { CursorPager } from '../components/pager.tsx';
import { TableScroll } from '../components/table-scroll.tsx';
import { setParameters } from '../router/location.ts';
import type { List } from './use-list.ts';
import './lists.css';

interface ListCardProps<Item> {
  readonly list: List<Item>;
  /** What one item is called: `agent`. */
  readonly one: string;
  readonly many?: string;
  /** What is shown where there is no item at all. */
  readonly empty: ComponentChildren;
  /** Makes the table of the items. */
  readonly children: (items: readonly Item[]) => ComponentChildren;
}

/** A list with its total, its table and its pages; or why there is none. */
export function ListCard<Item>({ list, one, many = `${one}s`, empty, children }: ListCardProps<Item>) {
  const { page, total } = list;
  const items = page.value?.items ?? [];
  return (
    <section class="card list-card" aria-busy={page.isLoading}>
      <LoadingLine active={page.isLoading} />
      <div class="card-header list-header">
        <span class="number" role="status">
          {total === undefined ? ' ' : counted(total, one, many)}
        </span>
        <Button kind="quiet" icon="refresh" aria-label="Refresh" title="Refresh" onClick={list.reload} />
      </div>
      {page.error === undefined ? undefined : (
        <div class="card-body">
          <FailureBox error={page.error} onRetry={list.reload} />
          {isOfCursor(page.error) ? (
            <Button onClick={() => setParameters({ next: undefined, prev: undefined })}>Go to the first page</Button>
          ) : undefined}
        </div>
      )}
      {page.value === undefined ? (
        page.error === undefined ? (
          <Skeleton />
        ) : undefined
      ) : items.length > 0 ? (
        <TableScroll label={`Table of ${many}`}>{children(items)}</TableScroll>
      ) : page.isCurrent ? (
        list.filter === '' ? (
          empty
        ) : (
          <EmptyState icon="search" title={`No ${one} matches`}>
            <p>A filter names fields and their values as they are written. Clear it to see all {many}.</p>
            <Button onClick={() => list.setFilter('')}>Clear the filter</Button>
          </EmptyState>
        )
      ) : undefined}
      <CursorPager onPrevious={list.onPrevious} onNext={list.onNext} />
    </section>
  );
}

/** A cursor in an address that was kept lives for 24 hours. */
function isOfCursor(error: unknown): boolean {
  return error instanceof ApiError && /cursor/i.test(`${error.message} ${error.details.map(({ message }) => message)}`);
}
