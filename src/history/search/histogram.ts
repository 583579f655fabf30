import type { EntryRow, PlanName } from '../entries/entry-store.ts';
import { countParts, countSearch, firstMoment, oldestTallied, partsInRanges } from './count-store.ts';
import { partsOf, planNameOf } from './query-parts.ts';
import type { Search } from './search-store.ts';
import type { QuerySnapshot } from './snapshot.ts';

/** Where the days of a time zone begin. Days are numbered from 1970-01-01, which is 0; moments are milliseconds since 1970. */
export interface Calendar {
  /** The day that a moment is in. */
  dayOf(moment: number): number;
  /** The first moment of a day. Of a day that the zone has skipped: the first moment after it. */
  beginOf(day: number): number;
}

const lengthOfDay = 86_400_000;
const firstDay = new Temporal.PlainDate(1970, 1, 1);

export const utcCalendar: Calendar = {
  dayOf: (moment) => Math.floor(moment / lengthOfDay),
  beginOf: (day) => day * lengthOfDay,
};

/**
 * The calendar of an IANA time zone, with its days of 23 and 25 hours. Returns undefined where there is no such zone.
 *
 * @example
 * calendarOf('Europe/Berlin')?.beginOf(0); // -3_600_000
 */
export function calendarOf(timeZone: string): Calendar | undefined {
  if (!isZone(timeZone)) return undefined;
  return {
    dayOf: (moment) => {
      const { offsetNanoseconds } = Temporal.Instant.fromEpochMilliseconds(moment).toZonedDateTimeISO(timeZone);
      return utcCalendar.dayOf(moment + offsetNanoseconds / 1e6);
    },
    beginOf: (day) => firstDay.add({ days: day }).toZonedDateTime(timeZone).epochMilliseconds,
  };
}

/** An offset such as `+02:00` names no zone: nobody could say when its days are longer. */
function isZone(text: string): boolean {
  if (!/^[A-Za-z]/.test(text)) return false;
  try {
    return new Intl.DateTimeFormat('en', { timeZone: text }).resolvedOptions().timeZone !== '';
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
}

/** The length of the buckets of a histogram. */
interface HistogramInterval {
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
interface TimeRange {
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
  readonly plan: PlanName;
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

export interface HistogramOptions {
  readonly maxBuckets: number;
  /** Where days begin; default: at midnight UTC. */
  readonly calendar?: Calendar | undefined;
}

/** Counts the entries of a query over time, in at most `maxBuckets` buckets, by type. */
export async function readHistogram(snapshot: QuerySnapshot, wanted: HistogramOptions): Promise<Histogram> {
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
  return histogramOf(planNameOf(parts), division, counts);
}

/** Counts the entries that are all of a query; at least one. */
export function countInBuckets(entries: readonly EntryRow[], asked: AskedTimes, wanted: HistogramOptions): Histogram {
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
function dividing({ asked, now }: AskedTimes, { maxBuckets, calendar = utcCalendar }: HistogramOptions) {
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
  plan: PlanName,
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
  return { plan, from, to, interval, total, buckets, after };
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
