import { type RawBuilder, type SqlBool, sql } from 'kysely';
import type { ReadTexts } from './page-texts.ts';
import type { Position } from './position.ts';
import type { Sort } from './sort.ts';

/** What a module says about the rows of its list. The pagination module knows no table. */
export interface Collection {
  /** The SQL after `from`. */
  readonly from: RawBuilder<unknown>;
  /** The condition that selects the tenant's rows that satisfy the filter. */
  readonly where: RawBuilder<SqlBool>;
  /** The id of a row, a text with the collation "C" of at most 255 bytes. It is unique among the rows of the list. */
  readonly id: RawBuilder<unknown>;
  /** The value of a field, of type jsonb; null if the row has none. */
  field(path: readonly string[]): RawBuilder<unknown>;
  /** The result for a row, of type text. */
  readonly text: RawBuilder<unknown>;
  /** Reads the same results for rows by their ids, in a separate statement. */
  readonly readTexts: ReadTexts;
}

/** The order of a list as SQL: key columns and the id. All have the same direction, so that a seek is one comparison. */
export interface Keyset {
  readonly keys: readonly RawBuilder<unknown>[];
  /** If the id descends, the list is read backwards along the mirror of its keys. */
  readonly reversed: boolean;
}

/**
 * Keys order by their bytes, independent of the database's collation. The keys of a descending field are inverted. The
 * indexes for a sort use the same expressions.
 */
export function keysetOf(collection: Pick<Collection, 'field'>, sort: Sort): Keyset {
  const reversed = sort.idDescending;
  return {
    reversed,
    keys: sort.fields.map(
      ({ path, descending }) => sql`sort_key(${collection.field(path)}, ${descending !== reversed}::boolean)`,
    ),
  };
}

/** Compares a row with a position, in the order of the list. */
export type Side = 'following' | 'preceding';

/** The `order by` list that starts next to the position and goes away from it. */
export function orderBy({ keys, reversed }: Keyset, id: RawBuilder<unknown>, side: Side): RawBuilder<unknown> {
  const direction = ascends(reversed, side) ? sql`asc` : sql`desc`;
  return sql.join([...keys, id].map((column) => sql`${column} ${direction}`));
}

/** The condition that a row is on that side of the position. */
export function seek(
  { keys, reversed }: Keyset,
  id: RawBuilder<unknown>,
  { row, after }: Position,
  side: Side,
): RawBuilder<SqlBool> {
  if (row === undefined) return side === 'preceding' ? sql`true` : sql`false`;
  const includesRow = (side === 'following') !== after;
  const operator = ascends(reversed, side) ? (includesRow ? sql`>=` : sql`>`) : includesRow ? sql`<=` : sql`<`;
  const place = [...row.keys.map((key) => sql`${key}::bytea`), sql`${row.id}::text`];
  return sql`(${sql.join([...keys, id])}) ${operator} (${sql.join(place)})`;
}

function ascends(reversed: boolean, side: Side): boolean {
  return (side === 'following') !== reversed;
}
