import { type QueryExecutorProvider, type RawBuilder, type SqlBool, sql } from 'kysely';
import type { ListPosition, RowPlace } from './cursor.ts';
import type { ReadTexts, RowOfText } from './page-texts.ts';
import { maxPieceBytes } from './pieces.ts';
import type { Sort } from './sort.ts';

/** Which rows of a list to read: a page by its number, or the rows next to a position on one side of it. */
export type PagePlace =
  | { readonly kind: 'page'; readonly skip: number; readonly size: number; readonly wantsTotal: boolean }
  | { readonly kind: 'beside'; readonly position: ListPosition; readonly side: Side; readonly size: number };

interface RowsOfPage {
  readonly rows: readonly RowOfText[];
  readonly total: number | undefined;
  /** The begin of the page, if rows come before it. */
  readonly begin: ListPosition | undefined;
  /** The end of the page, if rows follow. */
  readonly end: ListPosition | undefined;
}

/**
 * Reads a page in one statement, and so from one snapshot: ids, order, the begin and the end of the page, and the texts
 * of rows of normal size. It counts only if the caller wants the total.
 */
export async function readPage(
  db: QueryExecutorProvider,
  collection: Collection,
  keyset: Keyset,
  place: PagePlace,
): Promise<RowsOfPage> {
  return place.kind === 'page'
    ? await readByNumber(db, collection, keyset, place)
    : await readBeside(db, collection, keyset, place);
}

async function readByNumber(
  db: QueryExecutorProvider,
  collection: Collection,
  keyset: Keyset,
  { skip, size, wantsTotal }: Extract<PagePlace, { kind: 'page' }>,
): Promise<RowsOfPage> {
  const { from, where } = collection;
  const total = wantsTotal ? sql`(select count(*) from ${from} where ${where})` : sql`null::bigint`;
  const read = await readRows(db, collection, keyset, {
    side: 'following',
    limit: size + 1,
    condition: where,
    skip,
    total,
    // The page is beyond the end, so all rows come before it.
    beyond: sql`case when key_id is null and ${skip > 0}::boolean then (select true from ${from} where ${where} limit 1) end`,
  });
  const { page, more } = cut(read.rows, size);
  const beginOfRows = skip === 0 ? undefined : ahead(page[0]);
  return {
    rows: page,
    total: wantsTotal ? read.total : undefined,
    begin: read.beyond ? { row: undefined, after: true } : beginOfRows,
    end: more ? behind(page.at(-1)) : undefined,
  };
}

async function readBeside(
  db: QueryExecutorProvider,
  collection: Collection,
  keyset: Keyset,
  { position, side, size }: Extract<PagePlace, { kind: 'beside' }>,
): Promise<RowsOfPage> {
  const { from, where, id } = collection;
  const otherSide: Side = side === 'following' ? 'preceding' : 'following';
  // A scalar subquery keeps the order and so the index; "exists" would drop it.
  const beyond = sql`(select true from ${from} where ${where} and ${seek(keyset, id, position, otherSide)}
    order by ${orderBy(keyset, id, otherSide)} limit 1)`;
  const read = await readRows(db, collection, keyset, {
    side,
    limit: size + 1,
    condition: sql`${where} and ${seek(keyset, id, position, side)}`,
    skip: 0,
    total: sql`null::bigint`,
    beyond,
  });
  const { page, more } = cut(read.rows, size);
  const inOrder = side === 'following' ? page : page.toReversed();
  const hasBefore = side === 'following' ? read.beyond : more;
  const hasAfter = side === 'following' ? more : read.beyond;
  return {
    rows: inOrder,
    total: undefined,
    begin: hasBefore ? (ahead(inOrder[0]) ?? position) : undefined,
    end: hasAfter ? (behind(inOrder.at(-1)) ?? position) : undefined,
  };
}

interface PlacedRow extends RowOfText {
  readonly place: RowPlace;
}

interface RowsRequest {
  side: Side;
  limit: number;
  condition: RawBuilder<unknown>;
  skip: number;
  total: RawBuilder<unknown>;
  beyond: RawBuilder<unknown>;
}

/** The rows in the order of the read on that side. It returns the total and the flags even without rows. */
async function readRows(
  db: QueryExecutorProvider,
  { from, id, text }: Collection,
  keyset: Keyset,
  { side, limit, condition, skip, total, beyond }: RowsRequest,
): Promise<{ rows: PlacedRow[]; total: number | undefined; beyond: boolean }> {
  const names = keyset.keys.map((_key, index) => sql.ref(`key_${index}`));
  const keys = keyset.keys.map((key, index) => sql`${key} as ${names[index]}, `);
  // All texts of this statement have at most the bytes of one piece. A row that exceeds its share is read later.
  const maxTextBytes = Math.floor(maxPieceBytes / limit);
  const direction = orderBy({ ...keyset, keys: names }, sql.ref('key_id'), side);
  const { rows } = await sql<Record<string, unknown>>`
    select ${total} as total, ${beyond} as beyond, ${sql.join([...names, sql.ref('key_id')])}, octet_length(found.text) as bytes,
        case when octet_length(found.text) <= ${maxTextBytes}::integer then found.text end as text
      from (select) one
      left join (
        select ${keys.length === 0 ? sql`` : sql.join(keys, sql``)}${id} as key_id, ${text} as text
          from ${from} where ${condition}
          order by ${orderBy(keyset, id, side)} limit ${limit}::integer offset ${skip}::bigint
      ) found on true
      order by ${direction}`.execute(db);
  const [first] = rows;
  return {
    rows: rows.flatMap((row) => {
      if (row.key_id === null) return [];
      const keysOfRow = keyset.keys.map((_key, index) => row[`key_${index}`] as Uint8Array);
      return [
        {
          id: row.key_id as string,
          bytes: row.bytes as number,
          text: (row.text as string | null) ?? undefined,
          place: { keys: keysOfRow, id: row.key_id as string },
        },
      ];
    }),
    total: (first?.total as number | null) ?? undefined,
    beyond: first?.beyond === true,
  };
}

/** The extra row, if it exists, shows that more rows follow. */
function cut(rows: readonly PlacedRow[], size: number): { page: readonly PlacedRow[]; more: boolean } {
  return { page: rows.slice(0, size), more: rows.length > size };
}

function ahead(row: PlacedRow | undefined): ListPosition | undefined {
  return row === undefined ? undefined : { row: row.place, after: false };
}

function behind(row: PlacedRow | undefined): ListPosition | undefined {
  return row === undefined ? undefined : { row: row.place, after: true };
}

/** How a module describes the rows of its list. Pagination knows no table. */
export interface Collection {
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

/** The order of a list: key columns and the id, all in the same direction, so that a seek is one comparison. */
interface Keyset {
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
type Side = 'following' | 'preceding';

/** The `order by` list that starts next to the position and goes away from it. */
function orderBy({ keys, reversed }: Keyset, id: RawBuilder<unknown>, side: Side): RawBuilder<unknown> {
  const direction = ascends(reversed, side) ? sql`asc` : sql`desc`;
  return sql.join([...keys, id].map((column) => sql`${column} ${direction}`));
}

/** The condition that a row is on that side of the position. */
function seek(
  { keys, reversed }: Keyset,
  id: RawBuilder<unknown>,
  { row, after }: ListPosition,
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
