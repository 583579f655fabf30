import { timeZone } from './time-text.ts';

/** Bounds of a range of time as RFC 3339 has them: from the first moment on, and before the other. */
export interface TimeBounds {
  readonly from?: string | undefined;
  readonly before?: string | undefined;
}

/**
 * When a day begins by the clock that the reader has chosen, in milliseconds since 1970. A day of 23 or 25 hours is one day.
 *
 * @example
 * startOfDay(Date.now(), -1); // midnight at the beginning of yesterday
 */
export function startOfDay(at: number, later = 0): number {
  const time = new Date(at);
  if (timeZone.value === 'utc') return Date.UTC(time.getUTCFullYear(), time.getUTCMonth(), time.getUTCDate() + later);
  return new Date(time.getFullYear(), time.getMonth(), time.getDate() + later).getTime();
}

/** A moment as RFC 3339 by that clock: `2026-11-22T00:00:00+01:00`, or with `Z`. */
export function momentText(at: number): string {
  const utc = new Date(at).toISOString().replace('.000Z', 'Z');
  if (timeZone.value === 'utc') return utc;
  const minutes = -new Date(at).getTimezoneOffset();
  const local = new Date(at + minutes * 60_000)
    .toISOString()
    .slice(0, -1)
    .replace(/\.000$/, '');
  const two = (number: number) => String(number).padStart(2, '0');
  const size = Math.abs(minutes);
  // RFC 3339 has offsets of whole minutes. Some of the 19th century had seconds.
  if (!Number.isInteger(minutes)) return utc;
  return `${local}${minutes < 0 ? '-' : '+'}${two(Math.floor(size / 60))}:${two(size % 60)}`;
}

/** The days around a moment that people ask for most. */
export function boundsOfDay(name: 'today' | 'yesterday', now: number): TimeBounds {
  if (name === 'today') return { from: momentText(startOfDay(now)) };
  return { from: momentText(startOfDay(now, -1)), before: momentText(startOfDay(now)) };
}

/** The fields of a form as a moment: `2026-11-22`, and `14:30` or an empty time for midnight. NaN where there is no such moment. */
export function momentOf(date: string, time: string): number {
  const written = `${date}T${time === '' ? '00:00' : time}`;
  return Date.parse(timeZone.value === 'utc' ? `${written}Z` : written);
}
