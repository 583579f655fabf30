import { momentText, startOfDay } from '../components/times.ts';

/** A day by the clock that the reader has chosen. */
export interface ActiveDay {
  /** Milliseconds since 1970. */
  readonly start: number;
  /** Changes. */
  readonly count: number;
}

/** Columns of the calendar: a year, and the week that is not over. */
const weeks = 53;

/** When the days of the last year begin, from a Monday to today. */
export function daysOf(now: number): number[] {
  const today = startOfDay(now);
  const sinceMonday = (dateOf(today).getUTCDay() + 6) % 7;
  const count = (weeks - 1) * 7 + sinceMonday + 1;
  return Array.from({ length: count }, (_, index) => startOfDay(today, index - count + 1));
}

/** The day of a moment, as a date in UTC. */
function dateOf(at: number): Date {
  return new Date(`${momentText(at).slice(0, 10)}T00:00:00Z`);
}

export interface Month {
  readonly name: string;
  /** The week, from 0, in which it begins. */
  readonly week: number;
}

const monthName = new Intl.DateTimeFormat(undefined, { timeZone: 'UTC', month: 'short' });

/** The months that begin in the calendar, for the line above it. */
export function monthsOf(starts: readonly number[]): Month[] {
  return starts.flatMap((start, index) => {
    const date = dateOf(start);
    return date.getUTCDate() === 1 ? [{ name: monthName.format(date), week: Math.floor(index / 7) }] : [];
  });
}

/** How busy a day was beside the busiest one: 0 without a change, else 1 to 4. */
export function levelOf(count: number, max: number): number {
  return count === 0 ? 0 : Math.max(1, Math.ceil((4 * count) / max));
}
