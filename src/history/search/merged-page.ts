import type { DatabaseTransaction } from '../../postgres/database.ts';
import type { Place } from '../entries/entry-store.ts';
import type { Interval } from './plan/tally-plan.ts';
import type { Search } from './search.ts';
import { findPlaces, searchPage } from './search-store.ts';
import { readTalliedPlaces } from './tally-store.ts';

interface MergedPage {
  /** One part of the entries: tallies can count them and find their places. */
  tallied: { now: number; intervals: readonly Interval[] };
  /** The other part, which shares no entry with the first part. */
  search: Search;
  /** Both parts in one search, without tallies. */
  everything: Search;
  skip: number;
  size: number;
}

interface Limits {
  maxPlaces: number;
  /** Number of entries that are read rather than counted. */
  few: number;
}

const defaultLimits: Limits = { maxPlaces: 200_000, few: 1_000 };

/**
 * Merges a page from two lists that share no entry, and counts both. The entries before the page are not read: tallies
 * find the places of the first list. All places of the second list, which is usually shorter, are known.
 */
export async function mergedPage(
  transaction: DatabaseTransaction,
  page: MergedPage,
  { maxPlaces, few } = defaultLimits,
): Promise<{ total: number; places: Place[] }> {
  const { search, everything, skip, size } = page;
  const readTallied = talliedReader(transaction, page);
  // One search gives the total and the places: the first places for a page near the newest entry, else all of them.
  const limit = skip + size <= few ? skip + size : maxPlaces;
  const { total: rest, places: searched } = await searchPage(transaction, search, { skip: 0, size: limit });
  if (rest === 0) return await readTallied({ skip, size });
  // A few searched entries shift the page by at most their number, so nothing before the page has to be read.
  const shiftedLittle = rest === searched.length && rest < skip;
  if (skip + size <= few && !shiftedLittle) {
    const newest = await readTallied({ skip: 0, size: limit });
    return { total: newest.total + rest, places: merge(newest.places, searched).slice(skip, skip + size) };
  }
  if (rest > maxPlaces) {
    const total = (await readTallied({ skip: 0, size: 0 })).total + rest;
    return { total, places: skip >= total ? [] : await findPlaces(transaction, everything, { skip, size }) };
  }
  const { low, high } = await searchedBefore(readTallied, page, searched, few);
  // Skips what stands before the page: at least this many tallied entries, and `low` searched ones.
  const tallySkip = Math.max(0, skip - high);
  const { total, places } = await readTallied({ skip: tallySkip, size: skip + size - low - tallySkip });
  const skipOfBoth = skip - tallySkip - low;
  return { total: total + rest, places: merge(places, searched.slice(low)).slice(skipOfBoth, skipOfBoth + size) };
}

type ReadTallied = (page: {
  skip: number;
  size: number;
  intervals?: readonly Interval[];
}) => Promise<{ total: number; places: Place[] }>;

function talliedReader(transaction: DatabaseTransaction, { tallied, search }: MergedPage): ReadTallied {
  return async (page) => await readTalliedPlaces(transaction, search.tenant, { ...tallied, ...page });
}

/**
 * The minimum and maximum number of searched places that stand before the page in the merged list. Halves the range
 * until it is small enough to read.
 */
async function searchedBefore(
  readTallied: ReadTallied,
  { tallied, skip }: MergedPage,
  searched: readonly Place[],
  few: number,
): Promise<{ low: number; high: number }> {
  let low = 0;
  let high = searched.length;
  while (high - low > few) {
    const middle = (low + high) >> 1;
    const place = searched[middle];
    if (place === undefined) break;
    const newer = await countNewer(readTallied, tallied.intervals, place);
    if (middle + newer < skip) low = middle + 1;
    else high = middle;
  }
  return { low, high };
}

/** Maximum number of entries of one millisecond to look through. */
const maxOfMoment = 200_000;

/** Counts the tallied entries that are newer than a place. Within a millisecond, an entry recorded later is newer. */
async function countNewer(
  readTallied: ReadTallied,
  all: readonly Interval[],
  { at, sequence }: Place,
): Promise<number> {
  const later = all.flatMap((interval) => clip(interval, at + 1, null));
  const same = all.flatMap((interval) => clip(interval, at, at + 1));
  const { total } = await readTallied({ intervals: later, skip: 0, size: 0 });
  const { places } = await readTallied({ intervals: same, skip: 0, size: maxOfMoment });
  return total + places.filter((place) => place.sequence > sequence).length;
}

function merge(tallied: readonly Place[], searched: readonly Place[]): Place[] {
  return [...tallied, ...searched].sort((a, b) => b.at - a.at || b.sequence - a.sequence);
}

/** The part of an interval that is in [since, before). */
function clip(interval: Interval, since: number, before: number | null): Interval[] {
  const clipped = {
    ...interval,
    since: Math.max(interval.since, since),
    before: before === null ? interval.before : Math.min(before, interval.before ?? before),
  };
  return clipped.before !== null && clipped.before <= clipped.since ? [] : [clipped];
}
