import type { ComponentChildren } from 'preact';
import { EmptyState } from '../components/empty-state.tsx';
import type { IconName } from '../components/icon.tsx';
import { PageHeader } from '../components/page-header.tsx';
import { FilterBar, FilterChip } from './filter-bar.tsx';
import { ListCard } from './list-card.tsx';
import type { List } from './use-list.ts';

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
