import type { ComponentChildren } from 'preact';
import type { List } from './use-list.ts';

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
