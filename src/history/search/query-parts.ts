import { sql } from 'kysely';
import type { PlanName } from '../entries/entry-store.ts';
import type { Dictionary } from './names/dictionary.ts';
import { isOpen, termsOf } from './plan/expression.ts';
import { type Interval, isLarge, type Plan, planOf, planTallies, possibleKinds } from './plan/tally-plan.ts';
import { entryConditions, isOnTexts, joinsRows } from './predicate.ts';
import { searchOf } from './search.ts';
import { isUnderestimated, type Search } from './search-store.ts';
import type { QuerySnapshot } from './snapshot.ts';

/** The entries that satisfy a query, in two parts that share no entry. */
export interface QueryParts {
  /** One part: tallies can count its entries. Newest first. */
  readonly intervals: readonly Interval[];
  /** The other part; undefined if the tallies have all. */
  readonly search: Search | undefined;
  /** Both parts in one search, without tallies. */
  readonly everything: Search;
  /** The entries to look through, if `search` is a scan along the time because tallies would be more work. */
  readonly scanned: number | undefined;
}

/** How a query of such parts is answered. */
export function planNameOf({ intervals, search, scanned }: QueryParts): PlanName {
  if (scanned !== undefined) return 'scan';
  if (search === undefined) return 'tallies';
  return intervals.length === 0 ? 'search' : 'merged';
}

/** What entries are told apart by. */
export type Split = 'kind' | 'actor';

/** What a caller counts beside one number for each selection. */
export interface Counting {
  readonly split: Split;
  /** Ranges of time, at most. */
  readonly ranges: number;
}

/**
 * Decides which entries of a query the tallies count, and how the others are found: it is the one place that compares what
 * tallies and entries cost.
 */
export async function partsOf(snapshot: QuerySnapshot, counting?: Counting): Promise<QueryParts> {
  const { transaction, tenant, expression, dictionary, since, slice } = snapshot;
  const plan = await planTallies(expression, dictionary, since, slice);
  const conditions = await entryConditions(tenant, expression, dictionary, slice);
  const condition = conditions.satisfies(expression);
  const byIds = termsOf(expression).some(isOnTexts);
  // A page of a search that joins nothing has no nested loop.
  const isDoubted = async () =>
    (counting !== undefined || joinsRows(expression)) && (await isUnderestimated(transaction, tenant));
  const weighed = plan === undefined || counting === undefined ? plan : countedPlan(plan, dictionary, counting);
  if (plan === undefined || weighed === undefined || isLarge(weighed)) {
    const extent = await extentOf(plan, snapshot);
    if (plan === undefined || weighed === undefined || !isWorthIt(weighed, extent)) {
      const underestimated = await isDoubted();
      const everything: Search = { tenant, since, underestimated, byIds, condition };
      return { intervals: [], search: everything, everything, scanned: extent.entries };
    }
  }
  const { intervals } = plan;
  if (!termsOf(expression).some(isOpen)) {
    return { intervals, search: undefined, everything: { tenant, since, byIds, condition }, scanned: undefined };
  }
  const underestimated = await isDoubted();
  const search = await searchOf(expression, conditions, { tenant, since, underestimated, dictionary, slice });
  return {
    intervals,
    search,
    everything: { tenant, since, underestimated, byIds, condition },
    scanned: undefined,
  };
}

/** The plan with the tallies that the caller reads: those of all kinds or actors that it tells apart, in each range. */
function countedPlan(plan: Plan, dictionary: Dictionary, { split, ranges }: Counting): Plan {
  const every = { actors: dictionary.actors.length, kinds: dictionary.kinds.length };
  return planOf(plan.intervals, ({ actors, kinds }) => {
    const ofKinds = kinds?.length ?? (split === 'kind' ? every.kinds : 0);
    const keys = actors === null && split === 'kind' ? ofKinds : (actors?.length ?? every.actors) * (1 + ofKinds);
    return keys * (keyCounted + ranges * rangeCounted);
  });
}

interface Extent {
  /** Those that come into question. */
  readonly entries: number;
  /** Entries of the tenant that are not in the tallies yet. */
  readonly pending: number;
}

async function extentOf(plan: Plan | undefined, snapshot: QuerySnapshot): Promise<Extent> {
  const { transaction, tenant, expression, dictionary, since, slice } = snapshot;
  const oldest = plan?.intervals.at(-1)?.since ?? since;
  const kinds = await possibleKinds(expression, dictionary, slice);
  const { rows } = await sql<Extent>`
    select entries, pending from change_extent(${tenant}, ${Math.max(since, oldest)}, ${kinds})`.execute(transaction);
  return rows[0] ?? { entries: 0, pending: 0 };
}

// In nanoseconds, measured with 1.2 million entries. A key that is told apart from others takes as long as some keys together.
const costOfKey = 16_000;
const costOfPending = 560;
const costOfEntry = 500;
const keyCounted = 3;
const rangeCounted = 0.2;

/** Whether the tallies are cheaper to read than the entries. */
function isWorthIt({ keys, intervals }: Plan, { entries, pending }: Extent): boolean {
  return keys * costOfKey + intervals.length * pending * costOfPending < entries * costOfEntry;
}
