import { sql } from 'kysely';
import { twinsOf } from '../names/twins.ts';
import type { QueryParts } from '../page/query-parts.ts';
import type { QuerySnapshot } from '../page/query-snapshot.ts';
import type { FacetValue } from './summary-store.ts';

/** Entries of some actors (null: of all) in [since, before), of any kind. */
export interface RangeOfActors {
  readonly actors: readonly number[] | null;
  readonly since: number;
  /** null: the range has no end. */
  readonly before: number | null;
}

/** The range that a query consists of. Undefined if it selects kinds, has several ranges, or terms on documents. */
export function rangeOfActors({ intervals, search }: QueryParts): RangeOfActors | undefined {
  const [interval, ...more] = intervals;
  if (interval === undefined || more.length > 0 || search !== undefined) return undefined;
  const [selection, ...others] = interval.selections;
  if (selection === undefined || others.length > 0 || selection.kinds !== null) return undefined;
  return { actors: selection.actors, since: interval.since, before: interval.before };
}

/** The `size` actors with most entries, ties by code point. Exact, without a count of all the others. */
export async function readTopActors(
  { transaction, tenant, dictionary, slice }: QuerySnapshot,
  { actors, since, before }: RangeOfActors,
  size: number,
): Promise<FacetValue[]> {
  const { twins, firsts } = await twinsOf(dictionary, slice);
  const { rows } = await sql<FacetValue>`
    select name as value, entries as count
      from change_top_actors(${tenant}, ${actors ?? [0]}::bigint[], ${since}, ${before}, ${size}, ${twins}::bigint[],
                             ${firsts}::bigint[])`.execute(transaction);
  return rows;
}
