import type { DatabaseTransaction } from '../db/database.ts';
import type { Interval } from './plan.ts';
import { findPlaces, type Place, readTalliedPlaces, type Search } from './store.ts';

interface MergedPage {
  /** One part of the entries, which the tallies can count and walk. */
  tallied: { horizon: number; intervals: readonly Interval[] };
  /** The other part, which has none of the first; `rest` of them. */
  search: Search;
  rest: number;
  /** Both parts at once, without the help of tallies. */
  everything: Search;
  skip: number;
  size: number;
}

const mostPlaces = 200_000;
const shallow = 1_000;

/**
 * A page of two disjoint lists of entries merged, and how many entries they have together, without reading what
 * comes before the page: the first list is walked by its tallies, and of the second, which is the shorter as a rule,
 * all places are known.
 */
export async function mergedPage(
  transaction: DatabaseTransaction,
  page: MergedPage,
): Promise<{ total: number; places: Place[] }> {
  const { tallied, search, rest, everything, skip, size } = page;
  const { tenant } = search;
  if (rest === 0) return await readTalliedPlaces(transaction, tenant, { ...tallied, skip, size });
  if (skip + size <= shallow) return await merged(transaction, page, undefined, skip);

  const counted = await readTalliedPlaces(transaction, tenant, { ...tallied, skip: 0, size: 0 });
  const total = counted.total + rest;
  if (skip >= total) return { total, places: [] };
  if (rest > mostPlaces) return { total, places: await findPlaces(transaction, everything, { skip, size }) };

  const others = await findPlaces(transaction, search, { skip: 0, size: rest });
  const { before, newer } = await timeOf(transaction, page, others);
  const { places } = await merged(transaction, page, before, skip - newer);
  return { total, places };
}

/** The earliest time that no more than `skip` entries are at or after, and how many those are. */
async function timeOf(
  transaction: DatabaseTransaction,
  { tallied, search, skip }: MergedPage,
  others: readonly Place[],
): Promise<{ before: number; newer: number }> {
  let low = Math.min(...tallied.intervals.map((interval) => interval.since), others.at(-1)?.at ?? 0);
  let before = firstTime(others, tallied.intervals) + 1;
  let newer = 0;
  while (low < before) {
    const middle = low + Math.floor((before - low) / 2);
    const intervals = tallied.intervals.flatMap((interval) => clip(interval, middle, null));
    const counted = await readTalliedPlaces(transaction, search.tenant, { ...tallied, intervals, skip: 0, size: 0 });
    const count = counted.total + countFrom(others, middle);
    if (count <= skip) {
      before = middle;
      newer = count;
    } else low = middle + 1;
  }
  return { before, newer };
}

/** The merged page of what is before a time, from the newest of both lists. */
async function merged(
  transaction: DatabaseTransaction,
  { tallied, search, rest, size }: MergedPage,
  before: number | undefined,
  skip: number,
): Promise<{ total: number; places: Place[] }> {
  const most = { skip: 0, size: skip + size };
  const intervals = before === undefined ? tallied.intervals : tallied.intervals.flatMap((one) => clip(one, 0, before));
  const newest = await readTalliedPlaces(transaction, search.tenant, { ...tallied, intervals, ...most });
  const others = await findPlaces(transaction, before === undefined ? search : { ...search, before }, most);
  const places = [...newest.places, ...others]
    .sort((one, other) => other.at - one.at || other.sequence - one.sequence)
    .slice(skip, skip + size);
  return { total: newest.total + rest, places };
}

function clip(interval: Interval, since: number, before: number | null): Interval[] {
  const clipped = {
    ...interval,
    since: Math.max(interval.since, since),
    before: before === null ? interval.before : Math.min(before, interval.before ?? before),
  };
  return clipped.before !== null && clipped.before <= clipped.since ? [] : [clipped];
}

/** A time that nothing is after. */
function firstTime(others: readonly Place[], intervals: readonly Interval[]): number {
  const ends = intervals.map((interval) => interval.before ?? endOfTime);
  return Math.max(others[0]?.at ?? 0, ...ends);
}

// Changes are recorded up to the end of the year 2100.
const endOfTime = Date.UTC(2101, 0);

/** How many of the places, newest first, are at or after a time. */
function countFrom(places: readonly Place[], since: number): number {
  let low = 0;
  let high = places.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((places[middle]?.at ?? 0) >= since) low = middle + 1;
    else high = middle;
  }
  return low;
}
