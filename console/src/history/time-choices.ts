import { boundsOfDay, momentText, type TimeBounds } from '../components/times.ts';

/** A time that people ask for often. */
interface TimeChoice {
  readonly label: string;
  readonly words: string;
  /** As saved views write it. */
  readonly range: string;
  /** The bounds of a query, by the time in milliseconds since 1970. */
  readonly bounds: (now: number) => TimeBounds;
}

/** The time that everything was recorded after. */
export const allTime = '1970-01-01T00:00:00Z';

export const timeChoices: readonly TimeChoice[] = [
  { label: 'Today', words: 'today, since midnight', range: 'today', bounds: (now) => boundsOfDay('today', now) },
  {
    label: 'Yesterday',
    words: 'yesterday, from midnight to midnight',
    range: 'yesterday',
    bounds: (now) => boundsOfDay('yesterday', now),
  },
  { label: '24 h', words: 'the last 24 hours', range: 'P1D', bounds: (now) => lastDays(1, now) },
  { label: '7 d', words: 'the last 7 days', range: 'P7D', bounds: (now) => lastDays(7, now) },
  { label: '30 d', words: 'the last 30 days, as without a time', range: 'P30D', bounds: () => ({}) },
  { label: '90 d', words: 'the last 90 days', range: 'P90D', bounds: (now) => lastDays(90, now) },
  { label: '1 y', words: 'the last year', range: 'P365D', bounds: (now) => lastDays(365, now) },
  { label: 'All', words: 'all time', range: 'all', bounds: () => ({ from: allTime }) },
];

/** The last days of 24 hours. In whole seconds, so that the query stays readable. */
export function lastDays(days: number, now: number): TimeBounds {
  return { from: momentText(Math.floor(now / 1_000) * 1_000 - days * 86_400_000) };
}
