import { type RawBuilder, sql } from 'kysely';
import { statementsOf } from '../../postgres/statements.ts';
import type { Dictionary } from './names/dictionary.ts';
import { type Interval, isLarge, planOf, type Selection } from './plan/tally-plan.ts';
import type { QueryPlan, Split } from './query-plan.ts';
import type { Search } from './search.ts';
import { found, runSearch } from './search-store.ts';
import type { QuerySnapshot } from './snapshot.ts';
import { readTalliedPlaces } from './tally-store.ts';

/** When the oldest entry of the tenant since `since` occurred, in milliseconds since 1970. Undefined: there is none. */
export async function firstMoment({ transaction, tenant, since }: QuerySnapshot): Promise<number | undefined> {
  const { rows } = await sql<{ first: number | null }>`
    select min(e.at) as first from change_entry e where e.tenant = ${tenant} and e.at >= ${since}`.execute(transaction);
  return rows[0]?.first ?? undefined;
}

/** With more selections, looking for the oldest entry by tallies costs less than looking in each of them. */
const maxSelections = 8;

/** The time of the oldest entry that tallies count; none if there is no entry. */
export async function oldestTallied(snapshot: QuerySnapshot, { intervals, everything }: QueryPlan): Promise<number[]> {
  if (intervals.length === 0) return [];
  const oldest = await oldestOfSelections(snapshot, intervals);
  if (oldest !== undefined) return oldest;
  if (isLarge(planOf(intervals))) return await oldestFound(snapshot, everything);
  const { transaction, tenant, now } = snapshot;
  const page = { now, intervals, skip: 0, size: 0 };
  const { total } = await readTalliedPlaces(transaction, tenant, page);
  if (total === 0) return [];
  const { places } = await readTalliedPlaces(transaction, tenant, { ...page, skip: total - 1, size: 1 });
  return places.map(({ at }) => at);
}

/** The time of the oldest entry of all selections, if any. Undefined: they are many, or it is hard to find. */
async function oldestOfSelections(
  { transaction, tenant }: QuerySnapshot,
  intervals: readonly Interval[],
): Promise<number[] | undefined> {
  if (intervals.reduce((sum, { selections }) => sum + selections.length, 0) > maxSelections) return undefined;
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

/** The first entries of a window. If one of so many is found, it is the oldest one of a search. */
const firstEntries = 200;

async function oldestFound({ transaction }: QuerySnapshot, search: Search): Promise<number[]> {
  const oldestOf = (entries: RawBuilder<unknown>) => sql`select min(found.at) from (${entries}) as found`;
  // Without "offset 0", the planner may read the window along the time up to the first one, which takes long for a rare
  // one.
  const ofAll = oldestOf(sql`select e.at ${found(search)} offset 0`);
  const { tenant, since, condition } = search;
  const ofFirst = oldestOf(
    sql`select e.* from (
          select * from change_entry where tenant = ${tenant} and at >= ${since} order by at, sequence limit ${firstEntries}
        ) as e where ${condition}`,
  );
  const statement = sql<{ oldest: number | null }>`select coalesce((${ofFirst}), (${ofAll})) as oldest`;
  const rows = await runSearch(transaction, search, statement);
  return rows.flatMap((row) => row.oldest ?? []);
}

/** Entries of one selection in ranges of time. */
interface CountedPart {
  readonly split: Split;
  readonly selection: Selection;
  /** Each begins a range. Their places in the caller's list begin at `firstPlace`. */
  readonly moments: readonly number[];
  readonly firstPlace: number;
  /** null: the last range has no end. */
  readonly before: number | null;
}

/**
 * The parts of intervals in the ranges that `moments` begin, in ascending order. The last range has no end. No entry of
 * the intervals is before the first moment.
 */
export function partsInRanges(intervals: readonly Interval[], moments: readonly number[], split: Split): CountedPart[] {
  return intervals.flatMap(({ since, before, selections }) => {
    const firstPlace = Math.max(
      0,
      moments.findLastIndex((moment) => moment <= since),
    );
    const first = Math.max(since, moments[0] ?? since);
    if (before !== null && before <= first) return [];
    const inside = moments.filter((moment) => moment > first && (before === null || moment < before));
    return selections.map((selection) => ({ split, selection, moments: [first, ...inside], firstPlace, before }));
  });
}

/** The parts as parameters of change_count_parts: splits, actors, kinds, moments, ends and first places. */
function columnsOfParts(parts: readonly CountedPart[], dictionary: Dictionary): unknown[] {
  const arrayText = (ids: readonly number[]) => `{${ids.join(',')}}`;
  const everyKind = () => dictionary.kinds.map(({ id }) => id);
  return [
    parts.map(({ split }) => split),
    parts.map(({ selection }) => arrayText(selection.actors ?? [0])),
    parts.map(({ selection, split }) => arrayText(selection.kinds ?? (split === 'kind' ? everyKind() : []))),
    parts.map(({ moments }) => arrayText(moments)),
    parts.map(({ before }) => before),
    parts.map(({ firstPlace }) => firstPlace),
  ];
}

/** How many entries of a type are in the range that the moment at `place` (from 0) begins, if any. */
interface RangeCount {
  type: string;
  place: number;
  entries: number;
}

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

/** Counts the entries of a search by their types and by the ranges that the moments begin, with the oldest of each. */
export async function countSearch(
  { transaction, tenant }: QuerySnapshot,
  search: Search,
  moments: readonly number[],
): Promise<(RangeCount & { oldest: number })[]> {
  const statement = sql<RangeCount & { oldest: number }>`
    select k.type, c.place, sum(c.entries)::bigint as entries, min(c.oldest) as oldest
      from (
        select e.kind, width_bucket(e.at, ${moments}::bigint[]) - 1 as place, count(*) as entries, min(e.at) as oldest
          ${found(search)} group by 1, 2
      ) as c
      join change_kind k on k.tenant = ${tenant} and k.kind = c.kind
      group by k.type, c.place`;
  return await runSearch(transaction, search, statement);
}

/** The fields of facets whose values are in the dictionary of actors. */
const fieldsOfActors = ['actor', 'actorId', 'onBehalfOf'] as const;

export type FacetField = 'entity' | 'type' | (typeof fieldsOfActors)[number] | 'path' | `context.${string}`;

export function isOfActors(field: FacetField): field is (typeof fieldsOfActors)[number] {
  return fieldsOfActors.some((known) => known === field);
}

export interface FacetOptions {
  readonly field: FacetField;
  readonly size: number;
}

export interface FacetValue {
  value: string;
  /** Of an `actorId`: the latest name among the entries that count. */
  name?: string;
  count: number;
}

/** The values of a field with most entries, ties by code point, and how many entries there are in all. */
export async function readFacetValues(
  { transaction, tenant, dictionary }: Pick<QuerySnapshot, 'transaction' | 'tenant' | 'dictionary'>,
  { parts, search }: { parts: readonly CountedPart[]; search: Search | undefined },
  { field, size }: FacetOptions,
): Promise<{ total: number; values: FacetValue[] }> {
  const key = sql.ref(isOfActors(field) ? 'e.actor' : 'e.kind');
  const byKey = (of: Search) =>
    sql<{ key: number; entries: number }>`select ${key} as key, count(*) as entries ${found(of)} group by 1`;
  const counted = search === undefined ? [] : await runSearch(transaction, search, byKey(search));
  if (parts.length === 0 && counted.length === 0) return { total: 0, values: [] };
  const { rows } = await statementsOf(transaction).query<{ total: number; value: string | null; count: number }>({
    text: 'select total, value, count from change_facet_values($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)',
    values: [
      ...[tenant, ...columnsOfParts(parts, dictionary), field],
      ...[counted.map((row) => row.key), counted.map(({ entries }) => entries), size],
    ],
  });
  const values = rows.flatMap(({ value, count }) => (value === null ? [] : [{ value, count }]));
  return { total: rows[0]?.total ?? 0, values };
}
