import { Type } from 'typebox';
import { invalidField } from '../core/errors.ts';
import { parseInstant } from '../query/instant.ts';

/** Days since 1970-01-01, both included. */
export interface Days {
  readonly first: number;
  readonly last: number;
}

/** The parameters that `parseDays` reads. */
export const DaysQuery = Type.Object({
  from: Type.Optional(
    Type.String({
      description:
        'The first day: a date, or a time (RFC 3339, with `Z` or an offset) within the UTC day. Default: 29 ' +
        'days before `to`.',
      examples: ['2026-09-01'],
    }),
  ),
  to: Type.Optional(
    Type.String({
      description: 'The last day (inclusive). At most 366 days in total. Default: today.',
      examples: ['2026-09-30'],
    }),
  ),
});

const maxDays = 366;
const defaultDays = 30;
const dayLength = 86_400_000;

/** The UTC day of a moment, as days since 1970-01-01. */
export function dayOf(millisecond: number): number {
  return Math.floor(millisecond / dayLength);
}

/** @example dateOf(20_665); // '2026-07-31' */
export function dateOf(day: number): string {
  return new Date(day * dayLength).toISOString().slice(0, 10);
}

/**
 * The days from `from` to `to`, each a date or a time, which stands for its UTC day. Default: the 30 days until today.
 * Throws validation_violation (400) for anything else, for days in the wrong order, and for more than 366 days.
 */
export function parseDays({ from, to }: { from?: string; to?: string }, now: number): Days {
  const last = to === undefined ? dayOf(now) : parseDay('to', to);
  const first = from === undefined ? last - defaultDays + 1 : parseDay('from', from);
  if (first > last) {
    throw invalidField('from', `from must not be after ${to === undefined ? 'today' : 'to'}`);
  }
  if (last - first >= maxDays) throw invalidField('from', `from and to must not span more than ${maxDays} days`);
  return { first, last };
}

function parseDay(field: 'from' | 'to', text: string): number {
  const isDate = /^\d{4}-\d{2}-\d{2}$/.test(text);
  const instant = parseInstant(isDate ? `${text}T00:00:00Z` : text);
  if (typeof instant !== 'string') return dayOf(instant.millisecond);
  const expected = isDate ? instant : `a date such as 2026-08-31, or ${instant}`;
  throw invalidField(field, `${field} must be ${expected}`);
}
