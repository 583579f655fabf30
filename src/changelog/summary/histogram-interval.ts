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

/** In milliseconds. */
export function lengthOf({ unit, count }: HistogramInterval): number {
  return count * lengthOfUnit[unit];
}

/**
 * The smallest interval of which at most `buckets` cover [from, end), in milliseconds since 1970; boundaries are multiples
 * since 1970 (contract 4).
 *
 * @example
 * intervalFor(0, 3_600_000, 60); // { unit: 'minute', count: 1 }
 */
export function intervalFor(from: number, end: number, buckets: number): HistogramInterval {
  for (const unit of units) {
    for (const count of countsOfUnit[unit]) {
      const interval = { unit, count };
      if (bucketCount(from, end, lengthOf(interval)) <= buckets) return interval;
    }
  }
  const maxLength = maxDays * lengthOfUnit.day;
  let times = Math.max(2, Math.floor((end - from) / (buckets * maxLength)));
  while (bucketCount(from, end, times * maxLength) > buckets) times += 1;
  return { unit: 'day', count: times * maxDays };
}

/** The boundaries of the buckets that cover [from, end): where each begins, and where the last one ends. */
export function boundariesOf(from: number, end: number, interval: HistogramInterval): number[] {
  const length = lengthOf(interval);
  const first = Math.floor(from / length);
  return Array.from({ length: bucketCount(from, end, length) + 1 }, (_none, index) => (first + index) * length);
}

function bucketCount(from: number, end: number, length: number): number {
  return Math.max(0, Math.ceil(end / length) - Math.floor(from / length));
}
