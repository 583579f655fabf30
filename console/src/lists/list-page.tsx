import { ApiError } from '@annals/client';
import type { ComponentChildren } from 'preact';
import { Button, Icon, type IconName } from '../components/buttons.tsx';
import { counted } from '../components/numbers.ts';
import { CursorPager, PageHeader, TableScroll } from '../components/page.tsx';
import { EmptyState, FailureBox, LoadingLine, Skeleton } from '../components/states.tsx';
import { Link, setParameters } from '../router/router.tsx';
import type { List } from './use-list.ts';
import './lists.css';
import { useLayoutEffect, useState } from 'preact/hooks';
import { readsHistory } from '../api/session.ts';
import { Name } from '../components/values.tsx';
import { quoted } from '../query-text/quoted.ts';
import { directionOf, turnedSort } from './sort-order.ts';

interface ListPageProps<Item> {
  readonly list: List<Item>;
  readonly title: string;
  readonly lead: string;
  /** A filter to show before something is written. */
  readonly example: string;
  /** Ready filters: the label and the term of each. */
  readonly chips: readonly (readonly [label: string, term: string])[];
  readonly one: string;
  readonly many?: string;
  /** What is shown where there is no item at all. */
  readonly empty: { readonly icon: IconName; readonly title: string; readonly text: string };
  /** Makes the table of the items. */
  readonly children: (items: readonly Item[]) => ComponentChildren;
}

/** A page that is a list to read: its title, its filter and its table. */
export function ListPage<Item>({ list, title, lead, example, chips, one, many, empty, children }: ListPageProps<Item>) {
  const filter = { filter: list.filter, onFilter: list.setFilter };
  return (
    <>
      <PageHeader title={title} lead={lead} />
      <FilterBar {...filter} example={example}>
        {chips.map(([label, term]) => (
          <FilterChip key={term} label={label} term={term} {...filter} />
        ))}
      </FilterBar>
      <ListCard
        list={list}
        one={one}
        {...(many === undefined ? {} : { many })}
        empty={
          <EmptyState icon={empty.icon} title={empty.title}>
            <p>{empty.text}</p>
          </EmptyState>
        }
      >
        {children}
      </ListCard>
    </>
  );
}

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

interface FilterBarProps {
  readonly filter: string;
  readonly onFilter: (filter: string) => void;
  /** A filter to show before something is written: `status:OPEN`. */
  readonly example: string;
  /** Ready filters beside the field. */
  readonly children?: ComponentChildren;
}

/** A filter in the query language over the fields of the items. Enter applies it. */
export function FilterBar({ filter, onFilter, example, children }: FilterBarProps) {
  const [text, setText] = useState(filter);
  // Before the reader can write: what is written at once would be lost.
  useLayoutEffect(() => setText(filter), [filter]);
  const apply = (event: SubmitEvent) => {
    event.preventDefault();
    onFilter(text.trim());
  };
  return (
    <form class="filter-bar" onSubmit={apply}>
      <div class="filter-field">
        <Icon name="search" />
        <input
          class="control mono"
          type="search"
          aria-label="Filter"
          placeholder={example}
          spellcheck={false}
          autocomplete="off"
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </div>
      <Button type="submit">Filter</Button>
      {filter === '' ? undefined : (
        <Button kind="quiet" icon="close" onClick={() => onFilter('')}>
          Clear
        </Button>
      )}
      {children}
    </form>
  );
}

interface FilterChipProps {
  readonly label: string;
  /** The term that it adds to the filter, or takes from it. */
  readonly term: string;
  readonly filter: string;
  readonly onFilter: (filter: string) => void;
}

/** A ready term. It is written into the filter, where the reader sees the language. */
export function FilterChip({ label, term, filter, onFilter }: FilterChipProps) {
  const isOn = ` ${filter} `.includes(` ${term} `);
  const turned = isOn ? ` ${filter} `.replace(` ${term} `, ' ').trim() : `${filter} ${term}`.trim();
  return (
    <button type="button" class="filter-chip" aria-pressed={isOn} onClick={() => onFilter(turned)}>
      {label}
    </button>
  );
}

interface FieldChoiceProps {
  readonly field: string;
  readonly choices: readonly string[];
  readonly filter: string;
  readonly onFilter: (filter: string) => void;
}

/** Chooses a value of a field. The term is written into the filter, in place of the one that it wrote before. */
export function FieldChoice({ field, choices, filter, onFilter }: FieldChoiceProps) {
  const termOf = (choice: string) => `${field}:${quoted(choice)}`;
  const chosen = choices.find((choice) => ` ${filter} `.includes(` ${termOf(choice)} `)) ?? '';
  const choose = (choice: string) => {
    const rest = chosen === '' ? filter : ` ${filter} `.replace(` ${termOf(chosen)} `, ' ').trim();
    onFilter(choice === '' ? rest : `${rest} ${termOf(choice)}`.trim());
  };
  return (
    <label class={`field-choice${chosen === '' ? '' : ' chosen'}`}>
      <Name text={field} />
      <select value={chosen} onChange={(event) => choose(event.currentTarget.value)}>
        <option value="">any</option>
        {choices.map((choice) => (
          <option key={choice} value={choice}>
            {choice}
          </option>
        ))}
      </select>
    </label>
  );
}

interface SortHeadingProps {
  readonly label: string;
  /** The path of the field. */
  readonly field: string;
  /** Of a column of figures. */
  readonly amount?: boolean;
  readonly list: { readonly sort: string; readonly setSort: (sort: string) => void };
}

/** The heading of a column. A click sorts by it, a second one turns the order. */
export function SortHeading({ label, field, amount = false, list }: SortHeadingProps) {
  const direction = directionOf(list.sort, field);
  const order = direction === undefined ? 'none' : direction === 'ASC' ? 'ascending' : 'descending';
  return (
    <th scope="col" class={amount ? 'amount' : undefined} aria-sort={order}>
      <button type="button" class="sort-heading" onClick={() => list.setSort(turnedSort(list.sort, field))}>
        <bdi>{label}</bdi>
        <Icon name={direction === undefined ? 'sort' : direction === 'ASC' ? 'up' : 'down'} size={12} />
      </button>
    </th>
  );
}

interface TotalRowProps {
  readonly list: Pick<List<unknown>, 'hasOnePage'>;
  /** Columns before the first sum. */
  readonly columns: number;
  /** The cells of the other columns. */
  readonly children: ComponentChildren;
}

/** The sum of one number of each item. */
export function sumOf<Key extends string>(items: readonly Readonly<Record<Key, number>>[], key: Key): number {
  return items.reduce((sum, item) => sum + item[key], 0);
}

/** The sums of a list, which has those of the rows it shows. Where other pages have more rows, it says so. */
export function TotalRow({ list, columns, children }: TotalRowProps) {
  return (
    <tfoot>
      <tr>
        <th scope="row" colSpan={columns}>
          {list.hasOnePage ? 'Total' : 'Total of this page'}
        </th>
        {children}
      </tr>
    </tfoot>
  );
}

interface HistoryLinkProps {
  readonly entity: string;
  readonly entityId: string;
}

/** Leads to all changes of a document. Without a scope for the history there is none. */
export function HistoryLink({ entity, entityId }: HistoryLinkProps) {
  if (!readsHistory()) return null;
  const q = `entity:${quoted(entity)} entityId:${quoted(entityId)} occurredAt:>="1970-01-01T00:00:00Z"`;
  return <Link to={{ path: 'history', parameters: { q } }}>History</Link>;
}
