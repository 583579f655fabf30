import { isOnDocuments, termsOf } from '../ask/expression.ts';
import { possibleKinds } from '../ask/kind-classes.ts';
import { type Interval, isLarge, keysOf, type Plan, planOf, planTallies, type Selection } from '../ask/tally-plan.ts';
import { isUnderestimated } from './planner-estimate.ts';
import { entryConditions, isOnTexts } from './predicate.ts';
import type { QuerySnapshot } from './query-snapshot.ts';
import { searchOf } from './search.ts';
import type { Search } from './search-store.ts';
import { type Extent, readExtent } from './store.ts';

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

/** To find out the tallies of more selections than this takes too long. */
const maxWeighed = 32;

/**
 * Decides which entries of a query the tallies count, and how the others are found. `talliesOf`: how many tallies of a
 * selection the caller reads at most at a moment, if it does not read all of its actors and kinds.
 */
export async function partsOf(
  snapshot: QuerySnapshot,
  talliesOf: (selection: Selection) => number = keysOf,
): Promise<QueryParts> {
  const { transaction, tenant, expression, dictionary, since, slice } = snapshot;
  const plan = await planTallies(expression, dictionary, since, slice);
  const conditions = await entryConditions(tenant, expression, dictionary, slice);
  const condition = conditions.satisfies(expression);
  const byIds = termsOf(expression).some(isOnTexts);
  if (plan === undefined || isLarge(plan)) {
    const extent = await extentOf(plan, snapshot);
    if (plan === undefined || !isWorthIt(weighed(plan, talliesOf), extent)) {
      const underestimated = await isUnderestimated(transaction, tenant);
      const everything: Search = { tenant, since, underestimated, byIds, condition };
      return { intervals: [], search: everything, everything, scanned: extent.entries };
    }
  }
  const { intervals } = plan;
  if (!termsOf(expression).some(isOnDocuments)) {
    return { intervals, search: undefined, everything: { tenant, since, byIds, condition }, scanned: undefined };
  }
  const underestimated = await isUnderestimated(transaction, tenant);
  const search = await searchOf(expression, conditions, { tenant, since, underestimated, dictionary, slice });
  return {
    intervals,
    search,
    everything: { tenant, since, underestimated, byIds, condition },
    scanned: undefined,
  };
}

function weighed(plan: Plan, talliesOf: (selection: Selection) => number): Plan {
  const selections = plan.intervals.reduce((sum, interval) => sum + interval.selections.length, 0);
  if (selections > maxWeighed) return plan;
  return planOf(plan.intervals, talliesOf);
}

/** The entries that come into question, and the entries that tallies lack. */
async function extentOf(plan: Plan | undefined, snapshot: QuerySnapshot): Promise<Extent> {
  const { transaction, tenant, expression, dictionary, since, slice } = snapshot;
  const oldest = plan?.intervals.at(-1)?.since ?? since;
  const kinds = await possibleKinds(expression, dictionary, slice);
  return await readExtent(transaction, tenant, Math.max(since, oldest), kinds);
}

/** Whether the tallies are cheaper to read than the entries; in nanoseconds, measured with 1.2 million entries. */
function isWorthIt(plan: Plan, { entries, pending }: Extent): boolean {
  return plan.keys * 16_000 + plan.intervals.length * pending * 560 < entries * 500;
}
