import { type RawBuilder, type SqlBool, sql } from 'kysely';
import { isArrayIndex } from '../../query/array-values.ts';
import type { Bound } from '../../query/ast.ts';
import { pathOfField, type ValueRange } from '../../query/document-sql.ts';
import { projectedText } from '../../query/json-projection.ts';
import type { FieldIndex } from './sort-indexes.ts';

/**
 * Ranges of the field's index keys. Every instance with a value in the range at the path, or within arrays there, is in
 * one of them; some others are too. Empty for a path with array positions, which the index does not contain.
 */
export function keyRanges(
  value: RawBuilder<unknown>,
  { path, inverted }: FieldIndex,
  range: ValueRange,
): RawBuilder<SqlBool>[] {
  if (path.some(isArrayIndex)) return [];
  const key = sql`sort_key(${value}, ${inverted}::boolean)`;
  const between = (from: Buffer, before: Buffer) => {
    const [low, high] = inverted ? [invertedEnd(before), invertedEnd(from)] : [from, before];
    return sql<SqlBool>`(${key} >= ${low}::bytea and ${key} < ${high}::bytea)`;
  };
  const ofScalars =
    range.kind === 'prefix'
      ? beginsWith(key, range.text, inverted)
      : sql<SqlBool>`(${sql.join(
          range.bounds.map((bound) => sql`${between(...classes[bound.type])} and ${bounded(key, bound, inverted)}`),
          sql` and `,
        )})`;
  // The index has no values within arrays. An array on the path yields the key of null.
  const ofArrays = between(...classes.array);
  return path.length === 1 ? [ofScalars, ofArrays] : [ofScalars, ofArrays, between(...classes.missing)];
}

/** Whether an index can answer ranges of the field, which excludes array positions. */
export function canHaveRangeIndex(field: string): boolean {
  return !pathOfField(field).some(isArrayIndex);
}

/** The first bytes of the keys of each type (sql/pagination/indexed/sort_key.sql), and the next byte after them. */
const classes = {
  string: [Buffer.of(0x10), Buffer.of(0x11)],
  number: [Buffer.of(0x20), Buffer.of(0x23)],
  array: [Buffer.of(0x40), Buffer.of(0x41)],
  missing: [Buffer.of(0x60), Buffer.of(0x61)],
} as const satisfies Record<string, readonly [Buffer, Buffer]>;

/** Inverted keys have the reverse order: a range that began before 0x20 ends before 0xe0. */
function invertedEnd(end: Buffer): Buffer {
  return Buffer.of(0x100 - (end[0] ?? 0));
}

/** Keys of strings are truncated after 128 characters, so one may be equal for texts on both sides of the bound. */
function bounded(key: RawBuilder<unknown>, { operator, type, text }: Bound, inverted: boolean): RawBuilder<SqlBool> {
  const bound = type === 'number' ? sql`${text}::jsonb` : sql`to_jsonb(${projectedText(text)}::text)`;
  const isLower = operator === '>' || operator === '>=';
  const compares = isLower === inverted ? sql`<=` : sql`>=`;
  return sql`${key} ${compares} sort_key(${bound}, ${inverted}::boolean)`;
}

const maxIndexedCharacters = 128;

function beginsWith(key: RawBuilder<unknown>, text: string, inverted: boolean): RawBuilder<SqlBool> {
  const begin = [...projectedText(text)].slice(0, maxIndexedCharacters).join('');
  const bytes = Buffer.concat([Buffer.of(0x10), Buffer.from(begin)]);
  const first = inverted ? bytes.map((byte) => 0xff - byte) : bytes;
  // No key contains two such bytes in a row: UTF-8 has none, and an inverted key has one at its end.
  const last = Buffer.concat([first, Buffer.of(0xff, 0xff)]);
  return sql`(${key} >= ${first}::bytea and ${key} < ${last}::bytea)`;
}
