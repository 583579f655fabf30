import type { EntryRow, PlanName } from '../entries/entry-store.ts';
import { countParts, countSearch, firstMoment, oldestTallied, partsInRanges } from './count-store.ts';
import { planNameOf, planQuery } from './query-plan.ts';
import type { QuerySnapshot } from './snapshot.ts';

interface HistogramBucket {
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

export interface HistogramOptions {
  readonly maxBuckets: number;
  /** Where days begin; default: at midnight UTC. */
  readonly calendar?: Calendar | undefined;
}

/** Counts the entries of a query over time, in at most `maxBuckets` buckets, by type. */
export async function readHistogram(snapshot: QuerySnapshot, options: HistogramOptions): Promise<Histogram> {
  const plan = await planQuery(snapshot, { split: 'kind', ranges: options.maxBuckets });
  const divide = dividing(snapshot, options);
  // Counts a search in the buckets that there are if it finds the first entry of the window. Its oldest entry mostly
  // gives the same buckets, without the first ones; looking for it before would search twice.
  const moments = plan.search && divide(await firstMoment(snapshot)).moments;
  const found = plan.search && moments && (await countSearch(snapshot, plan.search, moments));
  const times = [...(await oldestTallied(snapshot, plan)), ...(found?.map(({ oldest }) => oldest) ?? [])];
  const division = divide(times.length === 0 ? undefined : Math.min(...times));
  const counts = await countParts(snapshot, partsInRanges(plan.intervals, division.moments, 'kind'));
  if (plan.search && found && moments) {
    const skipped = moments.length - division.moments.length;
    const fits = division.moments.every((moment, place) => moment === moments[place + skipped]);
    if (fits) counts.push(...found.map((count) => ({ ...count, place: count.place - skipped })));
    else counts.push(...(await countSearch(snapshot, plan.search, division.moments)));
  }
  return histogramOf(planNameOf(plan), division, counts);
}

type DividedTime = Pick<QuerySnapshot, 'range' | 'now'>;

export function countInBuckets(entries: readonly EntryRow[], time: DividedTime, options: HistogramOptions): Histogram {
  const division = dividing(time, options)(Math.min(...entries.map(({ at }) => at)));
  const counts = entries.map(({ at, type }) => {
    return { type, place: division.moments.findLastIndex((moment) => moment <= at), entries: 1 };
  });
  return histogramOf('search', division, counts);
}

interface Division extends Pick<Histogram, 'from' | 'to' | 'interval'> {
  /** Where the buckets begin, and where the last one ends. */
  readonly moments: readonly number[];
}

/** Times that RFC 3339 can write. */
const firstTime = 0;
const lastTime = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

/** Divides the time of a query, from its oldest entry on, if there is one. */
function dividing({ range, now }: DividedTime, { maxBuckets, calendar = utcCalendar }: HistogramOptions) {
  const writable = (time: number) => Math.min(Math.max(time, firstTime), lastTime);
  const isOpen = range.to === Number.POSITIVE_INFINITY;
  const to = isOpen ? now : writable(range.to);
  const lowest = writable(range.from);
  // An entry at this very millisecond is not later.
  const end = isOpen ? to + 1 : to;
  return (oldest: number | undefined): Division => {
    const from = Math.min(Math.max(lowest, oldest ?? lowest), to);
    const interval = intervalFor({ from, end }, maxBuckets, calendar);
    const begins = boundariesOf({ from, end }, interval, calendar).slice(0, -1);
    return { from, to, interval, moments: [...begins, end] };
  };
}

const entryTypes = ['create', 'update', 'delete'] as const;

function histogramOf(
  plan: PlanName,
  { from, to, interval, moments }: Division,
  counts: readonly { type: string; place: number; entries: number }[],
): Histogram {
  const buckets = moments.slice(0, -1).map((at) => ({ at, count: 0, create: 0, update: 0, delete: 0 }));
  let after = 0;
  for (const { type: typeName, place, entries } of counts) {
    const bucket = buckets[place];
    const type = entryTypes.find((known) => known === typeName);
    if (bucket === undefined || type === undefined) after += entries;
    else {
      bucket.count += entries;
      bucket[type] += entries;
    }
  }
  const total = counts.reduce((sum, { entries }) => sum + entries, 0);
  return { plan, from, to, interval, total, buckets, after };
}

export function histogramView({ from, to, interval, total, buckets, after }: Histogram) {
  const timeOf = (milliseconds: number) => new Date(milliseconds).toISOString();
  return {
    from: timeOf(from),
    to: timeOf(to),
    interval,
    totalElements: total,
    buckets: buckets.map((bucket) => ({ ...bucket, at: timeOf(bucket.at) })),
    after,
  };
}

interface HistogramInterval {
  readonly unit: 'second' | 'minute' | 'hour' | 'day';
  readonly count: number;
}

const lengthOfUnit = { second: 1_000, minute: 60_000, hour: 3_600_000, day: 86_400_000 } as const;

const intervals: readonly HistogramInterval[] = [
  ...[1, 2, 5, 10, 15, 30].map((count) => ({ unit: 'second' as const, count })),
  ...[1, 2, 5, 10, 15, 30].map((count) => ({ unit: 'minute' as const, count })),
  ...[1, 2, 3, 6, 12].map((count) => ({ unit: 'hour' as const, count })),
  ...[1, 2, 7, 14, 28, 91, 364].map((count) => ({ unit: 'day' as const, count })),
];

/** Days of the longest interval of the contract. Where even that gives too many buckets, a bucket has several of it. */
const maxDays = 364;

/** In milliseconds since 1970; it excludes `end`. */
interface TimeSpan {
  readonly from: number;
  readonly end: number;
}

/**
 * The smallest interval of which at most `buckets` cover the span. Boundaries are multiples since 1970; those of days
 * are midnights of the calendar (contract 4).
 *
 * @example
 * intervalFor({ from: 0, end: 3_600_000 }, 60, utcCalendar); // { unit: 'minute', count: 1 }
 */
export function intervalFor(span: TimeSpan, buckets: number, calendar: Calendar): HistogramInterval {
  const fits = (tried: HistogramInterval) => bucketsOf(span, tried, calendar).count <= buckets;
  const fitting = intervals.find(fits);
  if (fitting !== undefined) return fitting;
  const { from, end } = span;
  let times = Math.max(2, Math.floor((end - from) / (buckets * maxDays * lengthOfUnit.day)));
  const interval = (): HistogramInterval => ({ unit: 'day', count: times * maxDays });
  while (!fits(interval())) times += 1;
  return interval();
}

/** The boundaries of the buckets that cover the span: where each begins, and where the last one ends. */
export function boundariesOf(span: TimeSpan, interval: HistogramInterval, calendar: Calendar): number[] {
  const { first, count } = bucketsOf(span, interval, calendar);
  const beginOf = interval.unit === 'day' ? calendar.beginOf : (unit: number) => unit * lengthOfUnit[interval.unit];
  const boundaries = Array.from({ length: count + 1 }, (_none, index) => beginOf((first + index) * interval.count));
  // A day that a zone has skipped begins where the next one does.
  return boundaries.filter((boundary, index) => boundary !== boundaries[index - 1]);
}

/** How many buckets cover the span, and the number of the first one since 1970. */
function bucketsOf({ from, end }: TimeSpan, { unit, count }: HistogramInterval, calendar: Calendar) {
  const unitOf = unit === 'day' ? calendar.dayOf : (moment: number) => Math.floor(moment / lengthOfUnit[unit]);
  const first = Math.floor(unitOf(from) / count);
  return { first, count: Math.max(0, Math.floor(unitOf(end - 1) / count) + 1 - first) };
}

/** Where the days of a time zone begin. Days count from 1970-01-01, which is 0; moments are milliseconds since 1970. */
export interface Calendar {
  dayOf(moment: number): number;
  /** The first moment of a day. Of a day that the zone has skipped: the first moment after it. */
  beginOf(day: number): number;
}

export const utcCalendar: Calendar = {
  dayOf: (moment) => Math.floor(moment / lengthOfUnit.day),
  beginOf: (day) => day * lengthOfUnit.day,
};

/**
 * The calendar of an IANA time zone, with its days of 23 and 25 hours. Returns undefined for an unknown zone.
 *
 * @example
 * calendarOf('Europe/Berlin')?.beginOf(0); // -3_600_000
 */
export function calendarOf(timeZone: string): Calendar | undefined {
  if (!isZone(timeZone)) return undefined;
  const firstDay = new Temporal.PlainDate(1970, 1, 1);
  return {
    dayOf: (moment) => {
      const { offsetNanoseconds } = Temporal.Instant.fromEpochMilliseconds(moment).toZonedDateTimeISO(timeZone);
      return utcCalendar.dayOf(moment + offsetNanoseconds / 1e6);
    },
    beginOf: (day) => firstDay.add({ days: day }).toZonedDateTime(timeZone).epochMilliseconds,
  };
}

/** An offset such as `+02:00` is no zone: it does not say when its days are longer. */
function isZone(text: string): boolean {
  if (!/^[A-Za-z]/.test(text)) return false;
  try {
    return new Intl.DateTimeFormat('en', { timeZone: text }).resolvedOptions().timeZone !== '';
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
}
