import { changesOfRow } from '../../../src/recording/mapping/changes-of-row.ts';
import type { Mapping } from '../../../src/recording/mapping/mapping.ts';
import { readMapping } from '../../../src/recording/mapping/read-mapping.ts';
import type { MappedChange, Row, RowChange } from '../../../src/recording/mapping/row-change.ts';

export type Values = Record<string, unknown>;

/** A value of undefined is one that the source does not give. */
export function row(values: Values): Row {
  return new Map(
    Object.entries(values).map(([column, value]) => [column, value === undefined ? undefined : JSON.stringify(value)]),
  );
}

/** A mapping with these rules for public.orders. */
export function mappingOf(table: object, rest = {}): Mapping {
  return readMapping(
    JSON.stringify({
      version: 1,
      tenant: { value: 'acme' },
      tables: { 'public.orders': { entity: 'order', ...table } },
      ...rest,
    }),
  );
}

/** The changes that a row of public.orders is, by a mapping with these rules for it and the rest of the mapping. */
export function mapped(
  table: object,
  change: { before?: Values; after?: Values } & Partial<Omit<RowChange, 'before' | 'after'>>,
  rest = {},
) {
  const { before, after, ...others } = change;
  return changesOfRow(
    mappingOf(table, rest),
    {
      table: 'public.orders',
      type: 'update',
      at: 1,
      identity: Buffer.alloc(16, 1),
      primaryKey: ['id'],
      before: before && row(before),
      after: after && row(after),
      ...others,
    },
    { actor: 'unknown' },
  );
}

/** The paths of the changes; what is no change is as it is. */
export function paths(changes: MappedChange[]): unknown[] {
  return changes.map((change) => (change.kind === 'change' ? JSON.parse(change.change.paths) : change));
}
