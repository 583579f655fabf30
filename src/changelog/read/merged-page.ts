import type { DatabaseTransaction } from '../../db/database.ts';
import type { Interval } from '../plan/tally-plan.ts';
import { findPlaces, type Search, searchPage } from './search-store.ts';
import type { Place } from './store.ts';
import { readTalliedPlaces } from './tallied-page.ts';

interface MergedPage {
  /** One part of the entries, which the tallies can count and walk. */
  tallied: { now: number; intervals: readonly Interval[] };
  /** The other part, which has none of the first. */
  search: Search;
  /** Both parts at once, without the help of tallies. */
  everything: Search;
  skip: number;
  size: number;
}

interface Limits {
  /** Of the second list so many places are read. */
  maxPlaces: number;
  /** Entries that are read rather than counted. */
  few: number;
}

const defaultLimits: Limits = { maxPlaces: 200_000, few: 1_000 };

/**
 * A page of two disjoint lists of entries merged, and how many entries they have together, without reading what
 * comes before the page: the first list is walked by its tallies, and of the second, which is the shorter as a rule,
 * all places are known.
 */
export async function mergedPage(
  transaction: DatabaseTransaction,
  page: MergedPage,
  limits = defaultLimits,
): Promise<{ total: number; places: Place[] }> {
  const { maxPlaces, few } = limits;
  const { tallied, search, everything, skip, size } = page;
  const { tenant } = search;
  // What is found comes with the total, in one look: near the newest the first ones, else all.
  const wanted = skip + size <= few ? skip + size : maxPlaces;
  const { total: rest, places: others } = await searchPage(transaction, search, { skip: 0, size: wanted });
  if (rest === 0) return await readTalliedPlaces(transaction, tenant, { ...tallied, skip, size });
  if (skip + size <= few) {
    const newest = await readTalliedPlaces(transaction, tenant, { ...tallied, skip: 0, size: wanted });
    return { total: newest.total + rest, places: merge(newest.places, others).slice(skip, skip + size) };
  }
  if (rest > maxPlaces) {
    const counted = await readTalliedPlaces(transaction, tenant, { ...tallied, skip: 0, size: 0 });
    const total = counted.total + rest;
    return { total, places: skip >= total ? [] : await findPlaces(transaction, everything, { skip, size }) };
  }
  const { low, high } = await othersBefore(transaction, page, others, few);
  // All that stands before the page and is not read: of the first list as many as there are at least, and `low` others.
  const tallySkip = Math.max(0, skip - high);
  const { total, places } = await readTalliedPlaces(transaction, tenant, {
    ...tallied,
    skip: tallySkip,
    size: skip + size - low - tallySkip,
  });
  const skipOfBoth = skip - tallySkip - low;
  return { total: total + rest, places: merge(places, others.slice(low)).slice(skipOfBoth, skipOfBoth + size) };
}

/**
 * Between which numbers it is, how many of the places stand before the page in the merged list: halves what is between
 * until it is few enough to be read.
 */
async function othersBefore(
  transaction: DatabaseTransaction,
  { tallied, search, skip }: MergedPage,
  others: readonly Place[],
  few: number,
): Promise<{ low: number; high: number }> {
  let low = 0;
  let high = others.length;
  while (high - low > few) {
    const middle = (low + high) >> 1;
    const place = others[middle];
    if (place === undefined) break;
    const newer = await countNewer(transaction, search.tenant, tallied, place);
    if (middle + newer < skip) low = middle + 1;
    else high = middle;
  }
  return { low, high };
}

/** Entries of one millisecond that are looked through. */
const maxOfMoment = 200_000;

/** How many tallied entries are newer than a place; of its millisecond, those that were recorded later. */
async function countNewer(
  transaction: DatabaseTransaction,
  tenant: string,
  tallied: MergedPage['tallied'],
  { at, sequence }: Place,
): Promise<number> {
  const later = tallied.intervals.flatMap((interval) => clip(interval, at + 1, null));
  const same = tallied.intervals.flatMap((interval) => clip(interval, at, at + 1));
  const { total } = await readTalliedPlaces(transaction, tenant, { ...tallied, intervals: later, skip: 0, size: 0 });
  const moment = await readTalliedPlaces(transaction, tenant, {
    ...tallied,
    intervals: same,
    skip: 0,
    size: maxOfMoment,
  });
  return total + moment.places.filter((place) => place.sequence > sequence).length;
}

function merge(some: readonly Place[], others: readonly Place[]): Place[] {
  return [...some, ...others].sort((one, other) => other.at - one.at || other.sequence - one.sequence);
}

/** What of an interval is in [since, before). */
function clip(interval: Interval, since: number, before: number | null): Interval[] {
  const clipped = {
    ...interval,
    since: Math.max(interval.since, since),
    before: before === null ? interval.before : Math.min(before, interval.before ?? before),
  };
  return clipped.before !== null && clipped.before <= clipped.since ? [] : [clipped];
}
