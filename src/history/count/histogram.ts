import { partsOf, wayOf } from '../page/query-parts.ts';
import type { QuerySnapshot } from '../page/query-snapshot.ts';
import type { Way } from '../page/store.ts';
import { type Calendar, utcCalendar } from './calendar.ts';
import { partsInRanges } from './counted-parts.ts';
import { boundariesOf, type HistogramInterval, intervalFor } from './histogram-interval.ts';
import { countParts, countSearch, oldestOfParts } from './summary-store.ts';

export interface HistogramBucket {
  /** Its begin, in milliseconds since 1970. */
  readonly at: number;
  readonly count: number;
  readonly create: number;
  readonly update: number;
  readonly delete: number;
}

/** Entries over time. All times are milliseconds since 1970. */
export interface Histogram {
  readonly way: Way;
  readonly from: number;
  readonly to: number;
  readonly interval: HistogramInterval;
  readonly total: number;
  readonly buckets: readonly HistogramBucket[];
  /** The number of entries later than `to`. */
  readonly after: number;
}

const entryTypes = ['create', 'update', 'delete'] as const;

/** Times that RFC 3339 can write. */
const firstTime = 0;
const lastTime = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

export interface HistogramWanted {
  readonly maxBuckets: number;
  /** Where days begin; default: at midnight UTC. */
  readonly calendar?: Calendar | undefined;
}

/** Counts the entries of a query over time, in at most `maxBuckets` buckets, by type. */
export async function readHistogram(
  snapshot: QuerySnapshot,
  { maxBuckets, calendar = utcCalendar }: HistogramWanted,
): Promise<Histogram> {
  const { asked, now } = snapshot;
  const parts = await partsOf(snapshot, { split: 'kind', ranges: maxBuckets });
  const oldest = await oldestOfParts(snapshot, parts);
  const isOpen = asked.to === Number.POSITIVE_INFINITY;
  const to = isOpen ? now : writable(asked.to);
  const lowest = writable(asked.from);
  const from = Math.min(Math.max(lowest, oldest ?? lowest), to);
  // An entry at this very millisecond is not later.
  const end = isOpen ? to + 1 : to;
  const interval = intervalFor({ from, end }, maxBuckets, calendar);
  const begins = boundariesOf({ from, end }, interval, calendar).slice(0, -1);
  const moments = [...begins, end];
  const counts = await countParts(snapshot, partsInRanges(parts.intervals, moments, 'kind'));
  if (parts.search !== undefined) counts.push(...(await countSearch(snapshot, parts.search, moments)));
  const buckets = begins.map((at) => ({ at, count: 0, create: 0, update: 0, delete: 0 }));
  let after = 0;
  for (const { type: typeName, place, entries } of counts) {
    const bucket = buckets[place];
    const type = entryTypes.find((one) => one === typeName);
    if (bucket === undefined || type === undefined) after += entries;
    else {
      bucket.count += entries;
      bucket[type] += entries;
    }
  }
  const total = counts.reduce((sum, { entries }) => sum + entries, 0);
  return { way: wayOf(parts), from, to, interval, total, buckets, after };
}

function writable(time: number): number {
  return Math.min(Math.max(time, firstTime), lastTime);
}
