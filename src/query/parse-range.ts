import { type TimeRange, timeRange } from './ast.ts';
import type { Cursor } from './cursor.ts';
import { parseInstant } from './instant.ts';
import { closingQuoteOf } from './parse-text.ts';

/**
 * Reads the value of a time field: one comparison, or one or two in parentheses, two joined by ` AND ` (contract 4).
 * Where two bounds are on the same side, the stricter one holds.
 */
export function parseRange(cursor: Cursor, field: string, position: number): TimeRange {
  if (!cursor.take('('))
    return timeRange(
      field,
      parseBound(cursor, `a range such as >"2026-08-31T12:00:00Z" as the value of ${field}`),
      position,
    );
  const first = parseBound(cursor, '>, >=, < or <= and a time in double quotes');
  if (cursor.take(')')) return timeRange(field, first, position);
  cursor.expect(' AND ', '" AND " and a second bound, or the ) that ends the range');
  const second = parseBound(cursor, `>, >=, < or <= and a time in double quotes`);
  cursor.expect(')', 'the ) that ends the range, which has at most two bounds');
  return timeRange(field, intersect(first, second), position);
}

interface Bounds {
  readonly from: number | undefined;
  readonly to: number | undefined;
}

function parseBound(cursor: Cursor, expected: string): Bounds {
  const operator = operators.find((each) => cursor.text.startsWith(each, cursor.offset));
  if (operator === undefined) throw cursor.error(expected);
  cursor.take(operator);
  const opening = cursor.position;
  cursor.expect('"', `a time in double quotes right after ${operator}`);
  const end = cursor.text.indexOf('"', cursor.offset);
  if (end < 0) throw cursor.error(closingQuoteOf(opening), cursor.text.length);
  const instant = parseInstant(cursor.text.slice(cursor.offset, end));
  if (typeof instant === 'string') throw cursor.error(instant, cursor.offset, end);
  cursor.offset = end + 1;
  const { millisecond, whole } = instant;
  switch (operator) {
    case '>':
      return { from: millisecond + 1, to: undefined };
    case '>=':
      return { from: whole ? millisecond : millisecond + 1, to: undefined };
    case '<':
      return { from: undefined, to: whole ? millisecond : millisecond + 1 };
    case '<=':
      return { from: undefined, to: millisecond + 1 };
  }
}

/** Longer operators come first, so that `>=` is not read as `>`. */
const operators = ['>=', '<=', '>', '<'] as const;

function intersect(one: Bounds, other: Bounds): Bounds {
  return { from: pick(Math.max, one.from, other.from), to: pick(Math.min, one.to, other.to) };
}

function pick(stricter: (one: number, other: number) => number, one?: number, other?: number): number | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return stricter(one, other);
}
