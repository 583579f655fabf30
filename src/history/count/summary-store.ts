import { sql } from 'kysely';
import type { DatabaseTransaction } from '../../postgres/database.ts';
import { statementsOf } from '../../postgres/statements.ts';
import { type Interval, isLarge, planOf } from '../ask/tally-plan.ts';
import type { QueryParts } from '../page/query-parts.ts';
import type { QuerySnapshot } from '../page/query-snapshot.ts';
import { found, runSearch, type Search } from '../page/search-store.ts';
import { readTalliedPlaces } from '../page/tallied-page.ts';
import { type CountedPart, columnsOfParts, type Split } from './tally-counts.ts';

/** How many entries the tallies count of a query. */
export async function countTallied(
  { transaction, tenant, now }: QuerySnapshot,
  { intervals }: Pick<QueryParts, 'intervals'>,
): Promise<number> {
  if (intervals.length === 0) return 0;
  return (await readTalliedPlaces(transaction, tenant, { now, intervals, skip: 0, size: 0 })).total;
}

/**
 * How many entries of any actor and kind the tallies have in the intervals, about: without those of the first seconds and
 * those that are not folded yet.
 */
export async function estimateEntries(
  { transaction, tenant }: QuerySnapshot,
  { intervals }: Pick<QueryParts, 'intervals'>,
): Promise<number> {
  const { rows } = await statementsOf(transaction).query<{ entries: number }>({
    text: `select sum(change_tallied($1, i.since) - case when i.before is null then 0 else change_tallied($1, i.before) end)::bigint as entries
      from unnest($2::bigint[], $3::bigint[]) as i (since, before)`,
    values: [tenant, intervals.map(({ since }) => since), intervals.map(({ before }) => before)],
  });
  return rows[0]?.entries ?? 0;
}

/** How many entries satisfy a query, and when the oldest of them occurred. Undefined: there is none. */
export async function readExtentOfParts(
  snapshot: QuerySnapshot,
  { intervals, search }: QueryParts,
): Promise<{ total: number; oldest: number | undefined }> {
  const { transaction } = snapshot;
  const total = await countTallied(snapshot, { intervals });
  const tallied = total === 0 ? undefined : await oldestTallied(snapshot, intervals, total);
  if (search === undefined) return { total, oldest: tallied };
  const statement = sql<{ total: number; oldest: number | null }>`
    select count(*) as total, min(e.at) as oldest ${found(search)}`;
  const [others] = await runSearch(transaction, search, statement);
  if (others === undefined || others.oldest === null) return { total, oldest: tallied };
  return { total: total + others.total, oldest: Math.min(tallied ?? others.oldest, others.oldest) };
}

/** To ask more intervals than this for their oldest entry one by one costs more than to look for it by tallies. */
const maxAsked = 8;

/** When the oldest of the `total` entries occurred that the tallies count. Undefined: there is none. */
async function oldestTallied(
  snapshot: QuerySnapshot,
  intervals: readonly Interval[],
  total: number,
): Promise<number | undefined> {
  const asked = await oldestAsked(snapshot, intervals);
  return asked === undefined ? await oldestByRank(snapshot, intervals, total) : asked.at(0);
}

/** The same where nobody has counted the entries, which are those of actors. */
export async function oldestOfActors(
  snapshot: QuerySnapshot,
  { intervals, everything }: Pick<QueryParts, 'intervals' | 'everything'>,
): Promise<number | undefined> {
  const asked = await oldestAsked(snapshot, intervals);
  if (asked !== undefined) return asked.at(0);
  if (!isLarge(planOf(intervals))) {
    const total = await countTallied(snapshot, { intervals });
    return total === 0 ? undefined : await oldestByRank(snapshot, intervals, total);
  }
  const statement = sql<{ oldest: number | null }>`select min(e.at) as oldest ${found(everything)}`;
  const rows = await runSearch(snapshot.transaction, everything, statement);
  return rows[0]?.oldest ?? undefined;
}

async function oldestByRank(
  { transaction, tenant, now }: QuerySnapshot,
  intervals: readonly Interval[],
  total: number,
): Promise<number | undefined> {
  const { places } = await readTalliedPlaces(transaction, tenant, { now, intervals, skip: total - 1, size: 1 });
  return places.at(0)?.at;
}

/** The time of the oldest entry of all selections; none if there is no entry. Undefined: there are many, or it is hard to find. */
async function oldestAsked(
  { transaction, tenant }: QuerySnapshot,
  intervals: readonly Interval[],
): Promise<number[] | undefined> {
  if (intervals.reduce((sum, { selections }) => sum + selections.length, 0) > maxAsked) return undefined;
  for (const { since, before, selections } of intervals.toReversed()) {
    const times: number[] = [];
    for (const { actors, kinds } of selections) {
      const { rows } = await statementsOf(transaction).query<{ oldest: number | null; decided: boolean }>({
        text: 'select oldest, decided from change_oldest($1, $2, $3, $4, $5)',
        values: [tenant, actors ?? [0], kinds ?? [0], since, before],
      });
      if (rows.some(({ decided }) => !decided)) return undefined;
      times.push(...rows.flatMap(({ oldest }) => oldest ?? []));
    }
    if (times.length > 0) return [Math.min(...times)];
  }
  return [];
}

/** How many entries of a type are in a range of a list of moments. Ranges without entries are left out. */
interface RangeCount {
  type: string;
  /** The place of the moment that begins the range, from 0. */
  place: number;
  entries: number;
}

/** Counts the entries of parts by their types and ranges. */
export async function countParts(
  { transaction, tenant, dictionary }: QuerySnapshot,
  parts: readonly CountedPart[],
): Promise<RangeCount[]> {
  if (parts.length === 0) return [];
  const { rows } = await statementsOf(transaction).query<RangeCount>({
    text: 'select type, place, entries from change_count_types($1, $2, $3, $4, $5, $6, $7)',
    values: [tenant, ...columnsOfParts(parts, dictionary)],
  });
  return rows;
}

/** Counts the entries of a search by their types and by the ranges that the moments begin. */
export async function countSearch(
  { transaction, tenant }: QuerySnapshot,
  search: Search,
  moments: readonly number[],
): Promise<RangeCount[]> {
  const statement = sql<RangeCount>`
    select k.type, c.place, sum(c.entries)::bigint as entries
      from (
        select e.kind, width_bucket(e.at, ${moments}::bigint[]) - 1 as place, count(*) as entries ${found(search)} group by 1, 2
      ) as c
      join change_kind k on k.tenant = ${tenant} and k.kind = c.kind
      group by k.type, c.place`;
  return await runSearch(transaction, search, statement);
}

export type FacetField = 'entity' | 'type' | 'actor';

export interface FacetValue {
  value: string;
  count: number;
}

/** The values of a field with most entries, ties by code point, and how many entries there are in all. */
export async function readFacetValues(
  { transaction, tenant, dictionary }: QuerySnapshot,
  { parts, search }: { parts: readonly CountedPart[]; search: Search | undefined },
  { field, size }: { field: FacetField; size: number },
): Promise<{ total: number; values: FacetValue[] }> {
  const split: Split = field === 'actor' ? 'actor' : 'kind';
  const counted = search === undefined ? [] : await countByKey(transaction, search, split);
  if (parts.length === 0 && counted.length === 0) return { total: 0, values: [] };
  const { rows } = await statementsOf(transaction).query<{ total: number; value: string | null; count: number }>({
    text: 'select total, value, count from change_facet_values($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)',
    values: [
      tenant,
      ...columnsOfParts(parts, dictionary),
      field,
      counted.map(({ key }) => key),
      counted.map(({ entries }) => entries),
      size,
    ],
  });
  const values = rows.flatMap(({ value, count }) => (value === null ? [] : [{ value, count }]));
  return { total: rows[0]?.total ?? 0, values };
}

async function countByKey(
  transaction: DatabaseTransaction,
  search: Search,
  split: Split,
): Promise<{ key: number; entries: number }[]> {
  const statement = sql<{ key: number; entries: number }>`
    select ${sql.ref(`e.${split}`)} as key, count(*) as entries ${found(search)} group by 1`;
  return await runSearch(transaction, search, statement);
}
