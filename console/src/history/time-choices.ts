import { boundsOfDay, momentText, type TimeBounds } from '../components/days.ts';

/** A time that people ask for often. */
export interface TimeChoice {
  readonly label: string;
  readonly words: string;
  /** The bounds of a query, by the time in milliseconds since 1970. */
  readonly bounds: (now: number) => TimeBounds;
}

/** The time that everything was recorded after. */
export const allTime = '1970-01-01T00:00:00Z';

export const timeChoices: readonly TimeChoice[] = [
  { label: 'Today', words: 'today, since midnight', bounds: (now) => boundsOfDay('today', now) },
  { label: 'Yesterday', words: 'yesterday, from midnight to midnight', bounds: (now) => boundsOfDay('yesterday', now) },
  { label: '24 h', words: 'the last 24 hours', bounds: lastDays(1) },
  { label: '7 d', words: 'the last 7 days', bounds: lastDays(7) },
  { label: '30 d', words: 'the last 30 days, as without a time', bounds: () => ({}) },
  { label: '90 d', words: 'the last 90 days', bounds: lastDays(90) },
  { label: '1 y', words: 'the last year', bounds: lastDays(365) },
  { label: 'All', words: 'all time', bounds: () => ({ from: allTime }) },
];

function lastDays(days: number): TimeChoice['bounds'] {
  // In whole seconds, so that the query stays readable.
  return (now) => ({ from: momentText(Math.floor(now / 1_000) * 1_000 - days * 86_400_000) });
}
