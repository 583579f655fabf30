/** A time, rounded down to milliseconds, and whether it is exactly the start of that millisecond. */
export interface Instant {
  /** Milliseconds since 1970, rounded down. */
  readonly millisecond: number;
  /** No digit after the third is other than 0. */
  readonly whole: boolean;
}

/**
 * Reads an RFC 3339 time with `Z` or an offset and 0 to 9 fractional digits (contract 4), or returns what was expected
 * instead. Second 60 is refused, because milliseconds since 1970 cannot express it.
 *
 * @example
 * parseInstant('2026-09-30T12:00:00+02:00'); // the millisecond 2026-09-30T10:00:00Z
 */
export function parseInstant(text: string): Instant | string {
  const found = rfc3339.exec(text);
  if (found === null)
    return 'a time such as 2026-08-31T12:00:00.000Z (RFC 3339, 0 to 9 fractional digits, Z or an offset)';
  const [, years, months, days, hours, minutes, seconds, fraction = '', sign, offsetHours = '0', offsetMinutes = '0'] =
    found;
  const year = Number(years);
  const month = Number(months);
  const day = Number(days);
  if (month < 1 || month > 12 || day < 1 || day > daysInMonth(year, month)) return 'a date that exists';
  const hour = Number(hours);
  const minute = Number(minutes);
  const second = Number(seconds);
  if (hour > 23 || minute > 59 || second > 59) return 'a time of day from 00:00:00 to 23:59:59';
  if (Number(offsetHours) > 23 || Number(offsetMinutes) > 59) return 'an offset from -23:59 to +23:59';
  const offset = (Number(offsetHours) * 60 + Number(offsetMinutes)) * (sign === '-' ? -60_000 : 60_000);
  const digits = fraction.padEnd(9, '0');
  return {
    millisecond:
      startOfDay(year, month, day) + ((hour * 60 + minute) * 60 + second) * 1000 - offset + Number(digits.slice(0, 3)),
    whole: Number(digits.slice(3)) === 0,
  };
}

const rfc3339 = /^(\d{4})-(\d{2})-(\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?(?:[Zz]|([+-])(\d{2}):(\d{2}))$/;

function daysInMonth(year: number, month: number): number {
  if (month === 2) return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0 ? 29 : 28;
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31;
}

/** `Date.UTC` takes the years 0 to 99 for 1900 to 1999, `setUTCFullYear` does not. */
function startOfDay(year: number, month: number, day: number): number {
  return new Date(0).setUTCFullYear(year, month - 1, day);
}
