import { ApiError, type CursorPage, type ListParameters } from '@annals/client';
import type { ComponentChildren } from 'preact';
import { useId, useLayoutEffect, useState } from 'preact/hooks';
import { quoted } from '../../../src/query/written.ts';
import { type Requested, useRequest } from '../api/requests.ts';
import { readsHistory } from '../api/session.ts';
import { Button } from '../components/buttons.tsx';
import { Select } from '../components/forms.tsx';
import { Icon, type IconName } from '../components/icon.tsx';
import { counted } from '../components/numbers.ts';
import { PageHeader } from '../components/page.tsx';
import { EmptyState, FailureBox, LoadingLine, Skeleton } from '../components/states.tsx';
import { type Column, CursorPager, DataTable } from '../components/table.tsx';
import { Name } from '../components/text.tsx';
import { queryOfDocument } from '../history/document-queries.ts';
import { historyOf } from '../history/history-view.ts';
import { Link, place, setParameters } from '../router/router.tsx';
import './lists.css';

interface ListOptions<Item> {
  /** Distinguishes this list from others. */
  readonly name: string;
  /** Reads a page: one of the client's lists, called with the signal. */
  readonly read: (parameters: ListParameters, signal: AbortSignal) => PromiseLike<CursorPage<Item>>;
  readonly pageSize?: number;
  /** Where the address names no order. */
  readonly defaultSort?: string;
}

/** A list whose filter, order and page are in the address, so that they can be shared. */
interface List<Item> {
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
export function useList<Item>({ name, read, pageSize = 50, defaultSort = '' }: ListOptions<Item>): List<Item> {
  const { parameters } = place.value;
  const filter = parameters.get('q') ?? '';
  const sort = parameters.get('sort') ?? defaultSort;
  const next = parameters.get('next') ?? undefined;
  const prev = parameters.get('prev') ?? undefined;
  const q = filter.trim() === '' ? undefined : filter.trim();

  const page = useRequest(JSON.stringify([name, q, sort, next, prev, pageSize]), (signal) =>
    read({ q, sort: sort === '' ? undefined : sort, pageSize, next, prev }, signal),
  );
  const count = useRequest(JSON.stringify([name, q]), async (signal) => {
    const { total } = await read({ q, pageSize: 1, total: true }, signal);
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

/** Ready filters: the label and the term of each. */
type Chips = readonly (readonly [label: string, term: string])[];

interface ListCardProps<Item> {
  readonly list: List<Item>;
  /** What one item is called: `agent`. */
  readonly noun: string;
  readonly plural?: string;
  readonly columns: readonly Column<Item>[];
  readonly keyOf: (item: Item) => string;
  /** Whether the details of an item are shown beside the list. */
  readonly isOpen?: (item: Item) => boolean;
  readonly class?: string;
  /** What is shown if there is no item at all. */
  readonly empty: { readonly icon: IconName; readonly title: string; readonly text: string };
  /** The button that adds an item. */
  readonly add?: ComponentChildren;
  /** Whether the list is found by a text. */
  readonly isSearched?: boolean;
}

interface ListPageProps<Item> extends ListCardProps<Item> {
  readonly title: ComponentChildren;
  readonly lead: ComponentChildren;
  /** A filter to show before one is written; undefined where the list has a search. */
  readonly example?: string;
  /** Of a list that is found by a text and not by the query language: what the text is. */
  readonly search?: string;
  readonly chips?: Chips;
  /** Fields with their few values, for filters by them. */
  readonly choices?: readonly { readonly field: string; readonly values: readonly string[] }[];
  /** Panels and dialogs. */
  readonly children?: ComponentChildren;
}

/** A page that is a list: its title, its filter, its table, and what opens beside it. */
export function ListPage<Item>(props: ListPageProps<Item>) {
  const { title, lead, example, search, chips, choices = [], children, ...card } = props;
  const { list, add } = card;
  return (
    <>
      <PageHeader title={title} lead={lead}>
        {add}
      </PageHeader>
      <FilterBar list={list} example={example} search={search}>
        <FilterChips list={list} chips={chips} />
        {choices.map((choice) => (
          <FieldChoice key={choice.field} list={list} {...choice} />
        ))}
      </FilterBar>
      <ListCard isSearched={search !== undefined} {...card} />
      {children}
    </>
  );
}

/** A list with its total, its table and its pages; or why there is none. */
export function ListCard<Item>(props: ListCardProps<Item>) {
  const { list, noun, plural = `${noun}s`, empty, add, isOpen, isSearched = false, ...table } = props;
  const { page, total } = list;
  const items = page.value?.items ?? [];
  return (
    <section class="card list-card" aria-busy={page.isLoading}>
      <LoadingLine active={page.isLoading} />
      <div class="card-header list-header">
        <span class="number" role="status">
          {total === undefined ? ' ' : counted(total, noun, plural)}
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
      {page.value === undefined && page.error === undefined ? <Skeleton /> : undefined}
      {items.length > 0 ? (
        <DataTable label={`Table of ${plural}`} items={items} list={list} isOpen={isOpen} {...table} />
      ) : undefined}
      {page.value === undefined || items.length > 0 || !page.isCurrent ? undefined : list.filter === '' ? (
        <EmptyState icon={empty.icon} title={empty.title}>
          <p>{empty.text}</p>
          {add}
        </EmptyState>
      ) : (
        <EmptyState icon="search" title={`No ${noun} matches`}>
          <p>
            {isSearched
              ? 'Write the beginning of a name or an id.'
              : 'A filter names fields and their values as they are written.'}{' '}
            Clear it to see all {plural}.
          </p>
          <Button onClick={() => list.setFilter('')}>Clear the {isSearched ? 'search' : 'filter'}</Button>
        </EmptyState>
      )}
      <CursorPager onPrevious={list.onPrevious} onNext={list.onNext} />
    </section>
  );
}

/** A cursor in an address that was kept is valid for 24 hours. */
function isOfCursor(error: unknown): boolean {
  return error instanceof ApiError && /cursor/i.test(`${error.message} ${error.details.map(({ message }) => message)}`);
}

type Filtered = Pick<List<unknown>, 'filter' | 'setFilter'>;

interface FilterBarProps {
  readonly list: Filtered;
  readonly example: string | undefined;
  readonly search: string | undefined;
  /** Ready filters beside the field. */
  readonly children: ComponentChildren;
}

/** A filter in the query language over the fields of the items, or a search. Enter applies it. */
function FilterBar({ list: { filter, setFilter }, example, search, children }: FilterBarProps) {
  const [text, setText] = useState(filter);
  // Before the reader can write, or the first characters would be lost.
  useLayoutEffect(() => setText(filter), [filter]);
  const apply = (event: SubmitEvent) => {
    event.preventDefault();
    setFilter(text.trim());
  };
  return (
    <form class="filter-bar" onSubmit={apply}>
      <div class="filter-field">
        <Icon name="search" />
        <input
          class={search === undefined ? 'control mono' : 'control'}
          type="search"
          dir="auto"
          aria-label={search ?? 'Filter'}
          placeholder={example ?? search}
          spellcheck={false}
          autocomplete="off"
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </div>
      <Button type="submit">{search === undefined ? 'Filter' : 'Search'}</Button>
      {filter === '' ? undefined : (
        <Button kind="quiet" icon="close" onClick={() => setFilter('')}>
          Clear
        </Button>
      )}
      {children}
    </form>
  );
}

const has = (filter: string, term: string) => ` ${filter} `.includes(` ${term} `);
const without = (filter: string, term: string) => ` ${filter} `.replace(` ${term} `, ' ').trim();

/** Ready terms. A click writes one into the filter, where the reader sees the language, or removes it. */
export function FilterChips({ list: { filter, setFilter }, chips = [] }: { list: Filtered; chips: Chips | undefined }) {
  return chips.map(([label, term]) => {
    const isOn = has(filter, term);
    const turned = isOn ? without(filter, term) : `${filter} ${term}`.trim();
    return (
      <button key={term} type="button" class="filter-chip" aria-pressed={isOn} onClick={() => setFilter(turned)}>
        {label}
      </button>
    );
  });
}

interface FieldChoiceProps {
  readonly list: Filtered;
  readonly field: string;
  readonly values: readonly string[];
}

/** Chooses a value of a field. The term is written into the filter, in place of the one that was chosen before. */
function FieldChoice({ list: { filter, setFilter }, field, values }: FieldChoiceProps) {
  const id = useId();
  const termOf = (value: string) => `${field}:${quoted(value)}`;
  const chosen = values.find((value) => has(filter, termOf(value))) ?? '';
  const choose = (value: string) => {
    const rest = chosen === '' ? filter : without(filter, termOf(chosen));
    setFilter(value === '' ? rest : `${rest} ${termOf(value)}`.trim());
  };
  return (
    <div class={`field-choice${chosen === '' ? '' : ' chosen'}`}>
      <label for={id}>
        <Name text={field} />
      </label>
      <Select
        id={id}
        value={chosen}
        choices={[['', 'any'], ...values.map((value) => [value, value] as const)]}
        onChoose={choose}
      />
    </div>
  );
}

/** Leads to all changes of a document. Without a scope for the history there is no link. */
export function HistoryLink({ entity, entityId }: { readonly entity: string; readonly entityId: string }) {
  if (!readsHistory()) return null;
  return <Link to={historyOf(queryOfDocument({ entity, entityId }))}>History</Link>;
}
