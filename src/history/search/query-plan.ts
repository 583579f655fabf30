import { sql } from 'kysely';
import type { PlanName } from '../entries/entry-store.ts';
import type { Dictionary } from './names/dictionary.ts';
import { isOpen, termsOf } from './plan/expression.ts';
import { type Interval, isLarge, planOf, planTallies, possibleKinds, type TallyPlan } from './plan/tally-plan.ts';
import { entryConditions, isOnTexts, joinsRows } from './predicate.ts';
import { type Search, searchOf } from './search.ts';
import { isUnderestimated } from './search-store.ts';
import type { QuerySnapshot } from './snapshot.ts';

/** How the entries that satisfy a query are found: in two parts that share no entry. */
export interface QueryPlan {
  /** One part: tallies can count its entries. Newest first. */
  readonly intervals: readonly Interval[];
  /** The other part; undefined if tallies count all entries. */
  readonly search: Search | undefined;
  readonly everything: Search;
  /** The entries to look through, if `search` is a scan along the time because tallies would be more work. */
  readonly scanned: number | undefined;
}

export function planNameOf({ intervals, search, scanned }: QueryPlan): PlanName {
  if (scanned !== undefined) return 'scan';
  if (search === undefined) return 'tallies';
  return intervals.length === 0 ? 'search' : 'merged';
}

/** What entries are counted by. */
export type Split = 'kind' | 'actor';

/** What a caller counts beside one number for each selection, in at most so many ranges of time. */
interface Counting {
  readonly split: Split;
  readonly ranges: number;
}

/**
 * Decides which entries of a query the tallies count, and how the others are found: the one place that compares what
 * tallies and entries cost.
 */
export async function planQuery(snapshot: QuerySnapshot, counting?: Counting): Promise<QueryPlan> {
  const { transaction, tenant, expression, dictionary, since, slice } = snapshot;
  const tallies = await planTallies(expression, dictionary, since, slice);
  const satisfies = await entryConditions(tenant, expression, dictionary, slice);
  const terms = termsOf(expression);
  const everything = { tenant, since, byIds: terms.some(isOnTexts), condition: satisfies(expression) };
  // A page of a search that joins nothing has no nested loop.
  const isDoubted = async () =>
    (counting !== undefined || joinsRows(expression)) && (await isUnderestimated(transaction, tenant));
  const weighed = tallies && counting ? countedPlan(tallies, dictionary, counting) : tallies;
  if (tallies === undefined || weighed === undefined || isLarge(weighed)) {
    const extent = await extentOf(tallies, snapshot);
    if (tallies === undefined || weighed === undefined || !isWorthIt(weighed, extent)) {
      const search: Search = { ...everything, underestimated: await isDoubted() };
      return { intervals: [], search, everything: search, scanned: extent.entries };
    }
  }
  const { intervals } = tallies;
  if (!terms.some(isOpen)) return { intervals, search: undefined, everything, scanned: undefined };
  const underestimated = await isDoubted();
  const search = await searchOf(expression, satisfies, { tenant, since, underestimated, dictionary, slice });
  return { intervals, search, everything: { ...everything, underestimated }, scanned: undefined };
}

/** The plan with the tallies that the caller reads: those of all kinds or actors that it counts by, in each range. */
function countedPlan(plan: TallyPlan, dictionary: Dictionary, { split, ranges }: Counting): TallyPlan {
  return planOf(plan.intervals, ({ actors, kinds }) => {
    const ofKinds = kinds?.length ?? (split === 'kind' ? dictionary.kinds.length : 0);
    const ofActors = actors?.length ?? dictionary.actors.length;
    const keys = actors === null && split === 'kind' ? ofKinds : ofActors * (1 + ofKinds);
    return keys * (keyCounted + ranges * rangeCounted);
  });
}

interface Extent {
  readonly entries: number;
  /** Entries of the tenant that are not in the tallies yet. */
  readonly pending: number;
}

async function extentOf(plan: TallyPlan | undefined, snapshot: QuerySnapshot): Promise<Extent> {
  const { transaction, tenant, expression, dictionary, since, slice } = snapshot;
  const oldest = plan?.intervals.at(-1)?.since ?? since;
  const kinds = await possibleKinds(expression, dictionary, slice);
  const { rows } = await sql<Extent>`
    select entries, pending from change_extent(${tenant}, ${Math.max(since, oldest)}, ${kinds})`.execute(transaction);
  return rows[0] ?? { entries: 0, pending: 0 };
}

// In nanoseconds, measured with 1.2 million entries. A key that is counted by takes as long as some keys together.
const costOfKey = 16_000;
const costOfPending = 560;
const costOfEntry = 500;
const keyCounted = 3;
const rangeCounted = 0.2;

function isWorthIt({ keys, intervals }: TallyPlan, { entries, pending }: Extent): boolean {
  return keys * costOfKey + intervals.length * pending * costOfPending < entries * costOfEntry;
}
