import { type RawBuilder, type SqlBool, sql } from 'kysely';
import type { ReadTexts } from './page-texts.ts';
import type { Position } from './position.ts';
import type { Sort } from './sort.ts';

/** What a room tells of the rows that a list is made of. This room knows no table. */
export interface Collection {
  /** What stands after `from`. */
  readonly from: RawBuilder<unknown>;
  /** The tenant's rows that the filter keeps. */
  readonly where: RawBuilder<SqlBool>;
  /** The id of a row: unique among these, text with the collation "C", at most 255 bytes. */
  readonly id: RawBuilder<unknown>;
  /** The value of a field, of type jsonb; null where there is none. */
  field(path: readonly string[]): RawBuilder<unknown>;
  /** What is wanted of a row, of type text. */
  readonly text: RawBuilder<unknown>;
  /** Reads the same of rows by their ids, each with a statement of its own. */
  readonly readTexts: ReadTexts;
}

/** The order of a list as SQL: key columns and the id, all of them in one direction, so that a seek is one comparison. */
export interface Keyset {
  readonly keys: readonly RawBuilder<unknown>[];
  /** A list whose id descends is walked backwards along the keys of its mirror. */
  readonly reversed: boolean;
}

/**
 * Keys order by their bytes, whatever the database's collation; those of a descending field are inverted. The
 * expressions are the ones that indexes for a sort are made of.
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

/** Where a row stands relative to a position, in the order of the list. */
export type Side = 'following' | 'preceding';

/** The `order by` list that begins next to the position and leads away from it. */
export function orderBy({ keys, reversed }: Keyset, id: RawBuilder<unknown>, side: Side): RawBuilder<unknown> {
  const direction = ascends(reversed, side) ? sql`asc` : sql`desc`;
  return sql.join([...keys, id].map((column) => sql`${column} ${direction}`));
}

/** The condition that a row lies on that side of the position. */
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
