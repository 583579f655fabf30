import type { ComponentChildren } from 'preact';
import { Button } from './buttons.tsx';
import { Icon } from './icon.tsx';
import { countText } from './numbers.ts';

interface TableScrollProps {
  /** What is in it, for those who do not see it. */
  readonly label: string;
  readonly children: ComponentChildren;
}

/** A table that scrolls sideways on a narrow screen. The keyboard reaches it, so that it scrolls without a pointer. */
export function TableScroll({ label, children }: TableScrollProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it.
    <section class="table-scroll" tabIndex={0} aria-label={label}>
      {children}
    </section>
  );
}

interface PagerProps {
  /** From 1. */
  readonly page: number;
  readonly pages: number;
  readonly onPage: (page: number) => void;
}

/** The pages of a list whose total is known. */
export function Pager({ page, pages, onPage }: PagerProps) {
  if (pages < 2 && page === 1) return null;
  return (
    <nav class="pager" aria-label="Pages">
      <Button icon="previous" aria-label="Previous page" disabled={page <= 1} onClick={() => onPage(page - 1)} />
      <span class="number">
        Page {countText(page)} of {countText(pages)}
      </span>
      <Button icon="next" aria-label="Next page" disabled={page >= pages} onClick={() => onPage(page + 1)} />
    </nav>
  );
}

interface CursorPagerProps {
  readonly onPrevious: (() => void) | undefined;
  readonly onNext: (() => void) | undefined;
}

/** The pages of a list with cursors. A direction without a page is undefined. */
export function CursorPager({ onPrevious, onNext }: CursorPagerProps) {
  if (onPrevious === undefined && onNext === undefined) return null;
  return (
    <nav class="pager" aria-label="Pages">
      <Button icon="previous" disabled={onPrevious === undefined} onClick={() => onPrevious?.()}>
        Previous
      </Button>
      <Button icon="next" class="icon-last" disabled={onNext === undefined} onClick={() => onNext?.()}>
        Next
      </Button>
    </nav>
  );
}

/** A list whose order the headings of its table change. */
interface SortedList {
  readonly sort: string;
  readonly setSort: (sort: string) => void;
  /** Whether the rows are all there are, and not one page of them. */
  readonly hasOnePage: boolean;
}

/** A column of a table. */
export interface Column<Item> {
  readonly label: ComponentChildren;
  /** The path of the field that a click on the heading sorts by. */
  readonly sort?: string | undefined;
  /** Of the cells; `amount`, of figures, of the heading as well. */
  readonly class?: string | undefined;
  readonly cell: (item: Item) => ComponentChildren;
  readonly title?: (item: Item) => string | undefined;
  /** Names the cell on a narrow screen, where a table that wraps has no headings. */
  readonly name?: string;
  /** The cell of the row of totals. */
  readonly sum?: (items: readonly Item[]) => ComponentChildren;
}

interface DataTableProps<Item> {
  readonly label: string;
  readonly columns: readonly Column<Item>[];
  readonly items: readonly Item[];
  readonly keyOf: (item: Item) => string;
  readonly isOpen?: ((item: Item) => boolean) | undefined;
  readonly list?: SortedList | undefined;
  /** `wraps`: on a narrow screen each row takes several lines. */
  readonly class?: string | undefined;
}

/** A row for each item, and the totals of those columns that have one. */
export function DataTable<Item>({ label, columns, items, keyOf, isOpen, list, class: more }: DataTableProps<Item>) {
  const firstSum = columns.findIndex(({ sum }) => sum !== undefined);
  return (
    <TableScroll label={label}>
      <table class={`table${more === undefined ? '' : ` ${more}`}`}>
        <thead>
          <tr>
            {columns.map((column, index) => (
              <Heading key={index} column={column} list={list} />
            ))}
          </tr>
        </thead>
        <tbody>
          {items.map((item) => (
            <tr key={keyOf(item)} class={isOpen?.(item) === true ? 'selected' : undefined}>
              {columns.map((column, index) => (
                <td key={index} class={column.class} title={column.title?.(item)} data-label={column.name}>
                  {column.cell(item)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
        {firstSum < 0 ? undefined : (
          <tfoot>
            <tr>
              <th scope="row" colSpan={firstSum}>
                {list?.hasOnePage === false ? 'Total of this page' : 'Total'}
              </th>
              {columns.slice(firstSum).map((column, index) => (
                <td key={index} class={column.class}>
                  {column.sum?.(items)}
                </td>
              ))}
            </tr>
          </tfoot>
        )}
      </table>
    </TableScroll>
  );
}

interface HeadingProps<Item> {
  readonly column: Column<Item>;
  readonly list: SortedList | undefined;
}

/** The heading of a column. A click sorts by it, a second one reverses the order. */
function Heading<Item>({ column: { label, sort, class: name }, list }: HeadingProps<Item>) {
  const style = name?.includes('amount') === true ? 'amount' : undefined;
  if (label === '') return <td />;
  if (sort === undefined || list === undefined) {
    return (
      <th scope="col" class={style}>
        {label}
      </th>
    );
  }
  const direction = directionOf(list.sort, sort);
  const order = direction === undefined ? 'none' : direction === 'ASC' ? 'ascending' : 'descending';
  return (
    <th scope="col" class={style} aria-sort={order}>
      <button type="button" class="sort-heading" onClick={() => list.setSort(nextSort(list.sort, sort))}>
        <bdi>{label}</bdi>
        <Icon name={direction === undefined ? 'sort' : direction === 'ASC' ? 'up' : 'down'} size={12} />
      </button>
    </th>
  );
}

/** The direction in which a list is sorted by a field; undefined if it is not. */
export function directionOf(sort: string, field: string): 'ASC' | 'DESC' | undefined {
  const [first = ''] = sort.split(',');
  const [name, direction = 'ASC'] = first.split(':');
  if (name !== field) return undefined;
  return direction.toUpperCase() === 'DESC' ? 'DESC' : 'ASC';
}

/** The order after a click on a field's heading: up, down, and up again. */
export function nextSort(sort: string, field: string): string {
  return `${field}:${directionOf(sort, field) === 'ASC' ? 'DESC' : 'ASC'}`;
}
