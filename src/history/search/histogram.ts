import { type Calendar, utcCalendar } from '../count/calendar.ts';
import { partsInRanges } from '../count/counted-parts.ts';
import { boundariesOf, type HistogramInterval, intervalFor } from '../count/histogram-interval.ts';
import type { EntryRow, Way } from '../entries/entry-store-new.ts';
import { countParts, countSearch, firstMoment, oldestTallied } from './count-store.ts';
import { partsOf, wayOf } from './query-parts.ts';
import type { Search } from './search-store.ts';
import type { QuerySnapshot } from './snapshots.ts';

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
export async function readHistogram(snapshot: QuerySnapshot, wanted: HistogramWanted): Promise<Histogram> {
  const parts = await partsOf(snapshot, { split: 'kind', ranges: wanted.maxBuckets });
  const divided = dividing(snapshot, wanted);
  const found = parts.search && (await searchInBuckets(snapshot, parts.search, divided));
  const times = [...(await oldestTallied(snapshot, parts)), ...(found?.counts.map(({ oldest }) => oldest) ?? [])];
  const division = divided(times.length === 0 ? undefined : Math.min(...times));
  const { moments } = division;
  const counts = await countParts(snapshot, partsInRanges(parts.intervals, moments, 'kind'));
  if (parts.search !== undefined && found !== undefined) {
    const skipped = found.moments.length - moments.length;
    const fits = moments.every((moment, place) => moment === found.moments[place + skipped]);
    if (fits) counts.push(...found.counts.map((count) => ({ ...count, place: count.place - skipped })));
    else counts.push(...(await countSearch(snapshot, parts.search, moments)));
  }
  return histogramOf(wayOf(parts), division, counts);
}

/** Counts the entries that are all of a query; at least one. */
export function countInBuckets(entries: readonly EntryRow[], asked: AskedTimes, wanted: HistogramWanted): Histogram {
  const division = dividing(asked, wanted)(Math.min(...entries.map(({ at }) => at)));
  const counts = entries.map(({ at, type }) => {
    return { type, place: division.moments.findLastIndex((moment) => moment <= at), entries: 1 };
  });
  return histogramOf('search', division, counts);
}

type AskedTimes = Pick<QuerySnapshot, 'asked' | 'now'>;

interface Division extends Pick<Histogram, 'from' | 'to' | 'interval'> {
  /** Where the buckets begin. */
  readonly begins: readonly number[];
  /** The same, and the end of the last one. */
  readonly moments: readonly number[];
}

/** Divides the time of a query, from its oldest entry on, if there is one. */
function dividing({ asked, now }: AskedTimes, { maxBuckets, calendar = utcCalendar }: HistogramWanted) {
  const isOpen = asked.to === Number.POSITIVE_INFINITY;
  const to = isOpen ? now : writable(asked.to);
  const lowest = writable(asked.from);
  // An entry at this very millisecond is not later.
  const end = isOpen ? to + 1 : to;
  return (oldest: number | undefined): Division => {
    const from = Math.min(Math.max(lowest, oldest ?? lowest), to);
    const interval = intervalFor({ from, end }, maxBuckets, calendar);
    const begins = boundariesOf({ from, end }, interval, calendar).slice(0, -1);
    return { from, to, interval, begins, moments: [...begins, end] };
  };
}

function histogramOf(
  way: Way,
  { from, to, interval, begins }: Division,
  counts: readonly { type: string; place: number; entries: number }[],
): Histogram {
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
  return { way, from, to, interval, total, buckets, after };
}

/**
 * Counts a search in the buckets that there are if it finds the first entry of the window. The oldest one that it finds mostly makes the same
 * buckets, without the first ones, so it need not be known before: to look for it would search twice.
 */
async function searchInBuckets(
  snapshot: QuerySnapshot,
  search: Search,
  divided: (oldest: number | undefined) => Division,
) {
  const { moments } = divided(await firstMoment(snapshot));
  return { moments, counts: await countSearch(snapshot, search, moments) };
}

function writable(time: number): number {
  return Math.min(Math.max(time, firstTime), lastTime);
}
