import type { DatabaseTransaction } from '../../postgres/database.ts';
import type { Place } from '../entries/entry-store.ts';
import { readTalliedPlaces } from './page-statements.ts';
import type { Interval } from './plan/tally-plan.ts';
import { findPlaces, type Search, searchPage } from './search-store.ts';

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
  /** Maximum number of places that Annals reads of the second list. */
  maxPlaces: number;
  /** Number of entries that Annals reads rather than counts. */
  few: number;
}

const defaultLimits: Limits = { maxPlaces: 200_000, few: 1_000 };

/**
 * Merges a page from two lists of entries that share no entry, and counts both lists. It does not read the entries before
 * the page: tallies find the places of the first list. It knows all places of the second list, which is usually shorter.
 */
export async function mergedPage(
  transaction: DatabaseTransaction,
  page: MergedPage,
  limits = defaultLimits,
): Promise<{ total: number; places: Place[] }> {
  const { maxPlaces, few } = limits;
  const { tallied, search, everything, skip, size } = page;
  const { tenant } = search;
  // One search gives the total and the places: the first places for a page near the newest entry, else all of them.
  const wanted = skip + size <= few ? skip + size : maxPlaces;
  const { total: rest, places: others } = await searchPage(transaction, search, { skip: 0, size: wanted });
  if (rest === 0) return await readTalliedPlaces(transaction, tenant, { ...tallied, skip, size });
  // A few others shift the page by at most their number, so nothing before the page has to be read.
  const shiftedLittle = rest === others.length && rest < skip;
  if (skip + size <= few && !shiftedLittle) {
    const newest = await readTalliedPlaces(transaction, tenant, { ...tallied, skip: 0, size: wanted });
    return { total: newest.total + rest, places: merge(newest.places, others).slice(skip, skip + size) };
  }
  if (rest > maxPlaces) {
    const counted = await readTalliedPlaces(transaction, tenant, { ...tallied, skip: 0, size: 0 });
    const total = counted.total + rest;
    return { total, places: skip >= total ? [] : await findPlaces(transaction, everything, { skip, size }) };
  }
  const { low, high } = await othersBefore(transaction, page, others, few);
  // Skips what stands before the page: at least this many entries of the first list, and `low` entries of the second
  // list.
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
 * The minimum and maximum number of places that stand before the page in the merged list. Halves the range until it is
 * small enough to read.
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

/** Maximum number of entries of one millisecond to look through. */
const maxOfMoment = 200_000;

/** Counts the tallied entries that are newer than a place. In the same millisecond, an entry recorded later is newer. */
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

/** The part of an interval that is in [since, before). */
function clip(interval: Interval, since: number, before: number | null): Interval[] {
  const clipped = {
    ...interval,
    since: Math.max(interval.since, since),
    before: before === null ? interval.before : Math.min(before, interval.before ?? before),
  };
  return clipped.before !== null && clipped.before <= clipped.since ? [] : [clipped];
}
