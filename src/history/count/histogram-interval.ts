import type { Calendar } from './calendar.ts';

/** The length of the buckets of a histogram. */
export interface HistogramInterval {
  readonly unit: 'second' | 'minute' | 'hour' | 'day';
  readonly count: number;
}

const lengthOfUnit = { second: 1_000, minute: 60_000, hour: 3_600_000, day: 86_400_000 } as const;

const units: readonly HistogramInterval['unit'][] = ['second', 'minute', 'hour', 'day'];
const countsOfUnit = {
  second: [1, 2, 5, 10, 15, 30],
  minute: [1, 2, 5, 10, 15, 30],
  hour: [1, 2, 3, 6, 12],
  day: [1, 2, 7, 14, 28, 91, 364],
} as const;

/** Days of the longest interval of the contract. Where even that makes too many buckets, a bucket has several of it. */
const maxDays = 364;

/** From the first moment on, and before the end, in milliseconds since 1970. */
export interface TimeRange {
  readonly from: number;
  readonly end: number;
}

/**
 * The smallest interval of which at most `buckets` cover the range. Boundaries are multiples since 1970; those of days are
 * midnights of the calendar (contract 4).
 *
 * @example
 * intervalFor({ from: 0, end: 3_600_000 }, 60, utcCalendar); // { unit: 'minute', count: 1 }
 */
export function intervalFor(range: TimeRange, buckets: number, calendar: Calendar): HistogramInterval {
  for (const unit of units) {
    for (const count of countsOfUnit[unit]) {
      const interval = { unit, count };
      if (bucketsOf(range, interval, calendar).count <= buckets) return interval;
    }
  }
  const { from, end } = range;
  let times = Math.max(2, Math.floor((end - from) / (buckets * maxDays * lengthOfUnit.day)));
  const interval = (): HistogramInterval => ({ unit: 'day', count: times * maxDays });
  while (bucketsOf(range, interval(), calendar).count > buckets) times += 1;
  return interval();
}

/** The boundaries of the buckets that cover the range: where each begins, and where the last one ends. */
export function boundariesOf(range: TimeRange, interval: HistogramInterval, calendar: Calendar): number[] {
  const { first, count } = bucketsOf(range, interval, calendar);
  const beginOf = interval.unit === 'day' ? calendar.beginOf : (unit: number) => unit * lengthOfUnit[interval.unit];
  const boundaries = Array.from({ length: count + 1 }, (_none, index) => beginOf((first + index) * interval.count));
  // A day that a zone has skipped begins where the next one does.
  return boundaries.filter((boundary, index) => boundary !== boundaries[index - 1]);
}

/** How many buckets cover the range, and the number of the first one since 1970. */
function bucketsOf({ from, end }: TimeRange, { unit, count }: HistogramInterval, calendar: Calendar) {
  const unitOf = unit === 'day' ? calendar.dayOf : (moment: number) => Math.floor(moment / lengthOfUnit[unit]);
  const first = Math.floor(unitOf(from) / count);
  return { first, count: Math.max(0, Math.floor(unitOf(end - 1) / count) + 1 - first) };
}
