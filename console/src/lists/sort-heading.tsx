import { Icon } from '../components/icon.tsx';
import { directionOf, turnedSort } from './sort-order.ts';

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
