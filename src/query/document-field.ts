import { type RawBuilder, sql } from 'kysely';
import { projectedText } from './json-projection.ts';

/**
 * The value at a path of a jsonb document; SQL null where there is none. A key of digits is an index where it meets
 * an array, as in the paths of change entries: `0` is, and `00`, `+0` or `-1` is not, whatever PostgreSQL thinks.
 */
export function documentField(document: RawBuilder<unknown>, path: readonly string[]): RawBuilder<unknown> {
  if (path.every((key) => !isOddIndex(key))) return sql`(${document} #> ${path.map(projectedText)}::text[])`;
  return path.reduce((value, key) => {
    const inner = sql`(${value} -> ${projectedText(key)}::text)`;
    if (isOddIndex(key)) return sql`(case when jsonb_typeof(${value}) = 'object' then ${inner} end)`;
    return sql`(${value} #> ${[projectedText(key)]}::text[])`;
  }, document);
}

/** Whether a key stands for a place where it meets an array. */
export function isArrayIndex(key: string): boolean {
  return /^(?:0|[1-9][0-9]*)$/.test(key);
}

/** PostgreSQL would read such a key as an index, although it is not written as one. */
function isOddIndex(key: string): boolean {
  return /^\s*[+-]?[0-9]+$/.test(key) && !isArrayIndex(key);
}
