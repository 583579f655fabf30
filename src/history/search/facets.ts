import { type SqlBool, sql } from 'kysely';
import type { DatabaseTransaction } from '../../postgres/database.ts';
import { statementsOf } from '../../postgres/statements.ts';
import { projectedText, textOfProjection } from '../../query/json-projection.ts';
import { nameOfPath } from '../../recording/path-names.ts';
import type { EntryRow, PlanName } from '../entries/entry-store.ts';
import {
  type FacetField,
  type FacetOptions,
  type FacetValue,
  isOfActors,
  partsInRanges,
  readFacetValues,
} from './count-store.ts';
import type { Actor } from './names/dictionary.ts';
import { findVisible } from './names/name-store.ts';
import { readPathNames } from './names/path-name-store.ts';
import { compareCodePoints, type FindVisible, type NameField } from './names/search-names.ts';
import { hasNumber } from './path-predicate.ts';
import { isContextField } from './plan/id-patterns.ts';
import { planNameOf, planQuery } from './query-plan.ts';
import type { Search } from './search.ts';
import { found, isUnderestimated, runSearch } from './search-store.ts';
import { type HistorySnapshot, kindsShown, type QuerySnapshot } from './snapshot.ts';

export interface Facets {
  readonly plan: PlanName;
  readonly field: FacetField;
  readonly total: number;
  readonly values: readonly FacetValue[];
  /** The number of entries with any other value; of paths, the number of the other paths. */
  readonly others: number;
}

/** Counts the entries of a query by the values of a field, and takes the `size` values with most entries. */
export async function readFacets(snapshot: QuerySnapshot, options: FacetOptions): Promise<Facets> {
  const { field, size } = options;
  if (field === 'path') return await readPathFacets(snapshot, size);
  if (isContextField(field)) return await readContextFacets(snapshot, field, size);
  const split = isOfActors(field) ? 'actor' : 'kind';
  const plan = await planQuery(snapshot, { split, ranges: 1 });
  const parts = partsInRanges(plan.intervals, [snapshot.since], split);
  const { total, values } = await readFacetValues(snapshot, { parts, search: plan.search }, options);
  const others = othersOf(total, values);
  const named = field === 'actorId' ? await withLatestNames(snapshot, plan.everything, values) : values;
  return { plan: planNameOf(plan), field, total, values: named, others };
}

export function countValues(entries: readonly EntryRow[], { field, size }: FacetOptions): Facets {
  const pathsOf = ({ paths }: EntryRow) => [...new Set(Object.keys(JSON.parse(paths)).map(nameOfPath))];
  const valuesOf = (entry: EntryRow) => (field === 'path' ? pathsOf(entry) : valuesOfField(entry, field));
  const counts = new Map<string, number>();
  for (const value of entries.flatMap(valuesOf)) counts.set(value, (counts.get(value) ?? 0) + 1);
  const counted = [...counts].map(([value, count]) => ({ value, count }));
  counted.sort((a, b) => b.count - a.count || compareCodePoints(a.value, b.value));
  const values = counted.slice(0, size);
  const others = field === 'path' ? counted.length - values.length : othersOf(entries.length, values);
  // The newest entry comes first.
  const nameOf = (id: string) => entries.find(({ actorId }) => actorId === id)?.actor ?? '';
  const named = field === 'actorId' ? values.map((of) => ({ ...of, name: nameOf(of.value) })) : values;
  return { plan: 'search', field, total: entries.length, values: named, others };
}

function valuesOfField(entry: EntryRow, field: Exclude<FacetField, 'path'>): string[] {
  // A context is not read with its entry.
  if (isContextField(field)) throw new Error('contexts are counted by the database');
  const value = field === 'onBehalfOf' ? entry.onBehalfOfName : entry[field];
  return value == null ? [] : [value];
}

function othersOf(total: number, values: readonly FacetValue[]): number {
  return values.reduce((left, { count }) => left - count, total);
}

/** Adds to each id the name of its newest entry that the search finds. */
async function withLatestNames(
  { transaction, tenant, dictionary }: QuerySnapshot,
  search: Search,
  values: readonly FacetValue[],
): Promise<FacetValue[]> {
  const ids = new Set(values.map(({ value }) => value));
  const namesOf = Map.groupBy(
    dictionary.actors.filter(({ actorId }) => actorId !== undefined && ids.has(actorId)),
    ({ actorId }) => actorId ?? '',
  );
  const renamed = [...namesOf.values()].filter((actors) => new Set(actors.map(({ name }) => name)).size > 1).flat();
  const latest = renamed.length === 0 ? [] : await newestOf(transaction, tenant, search, renamed);
  const nameOf = new Map(latest.map(({ id, name }) => [id, name]));
  return values.map((of) => ({ ...of, name: nameOf.get(of.value) ?? namesOf.get(of.value)?.[0]?.name ?? '' }));
}

/** The name of the newest entry of each id. */
async function newestOf(
  transaction: DatabaseTransaction,
  tenant: string,
  search: Search,
  actors: readonly Actor[],
): Promise<{ id: string; name: string }[]> {
  const ofActor = { ...search, condition: sql<SqlBool>`e.actor = of.actor and ${search.condition}` };
  return await runSearch(
    transaction,
    search,
    sql<{ id: string; name: string }>`
      select distinct on (a.actor_id) a.actor_id as id, a.name
        from unnest(${actors.map(({ id }) => id)}::bigint[]) as of (actor)
        cross join lateral (select e.at, e.sequence ${found(ofActor)} order by e.at desc, e.sequence desc limit 1) as newest
        join change_actor a on a.tenant = ${tenant} and a.actor = of.actor
        order by a.actor_id, newest.at desc, newest.sequence desc`,
  );
}

/** How all entries of a query are read, for values that tallies do not count. */
async function planEntries(snapshot: QuerySnapshot): Promise<{ plan: 'search' | 'scan'; read: Search }> {
  const { search, intervals, everything, scanned } = await planQuery(snapshot);
  return {
    plan: scanned === undefined && search !== undefined ? 'search' : 'scan',
    read: search !== undefined && intervals.length === 0 ? search : everything,
  };
}

async function readContextFacets(snapshot: QuerySnapshot, field: `context.${string}`, size: number): Promise<Facets> {
  const { plan, read } = await planEntries(snapshot);
  const member = sql`change_context_text(e.context, ${projectedText(field.slice('context.'.length))})`;
  const rows = await runSearch(
    snapshot.transaction,
    read,
    sql<{ total: number; value: string | null; count: number }>`
      with counted as materialized (select ${member} as value, count(*)::bigint as entries ${found(read)} group by 1)
      select (select coalesce(sum(entries), 0) from counted)::bigint as total, top.value, top.entries as count
        from (select) as one
        left join lateral (
          select * from counted c where c.value is not null order by c.entries desc, c.value collate "C" limit ${size}
        ) as top on true
        order by top.entries desc, top.value collate "C"`,
  );
  const total = rows[0]?.total ?? 0;
  const values = rows.flatMap(({ value, count }) =>
    value === null ? [] : [{ value: textOfProjection(value), count }],
  );
  return { plan, field, total, values, others: othersOf(total, values) };
}

export function facetsView({ field, total, values, others }: Facets) {
  return { field, totalElements: total, values: [...values], others };
}

/** Tallies do not count paths, so entries are read, from their table or an index. */
async function readPathFacets(snapshot: QuerySnapshot, size: number): Promise<Facets> {
  const { plan, read } = await planEntries(snapshot);
  // The names of the paths are joined to what the search finds.
  const underestimated = await isUnderestimated(snapshot.transaction, snapshot.tenant);
  return { plan, field: 'path', ...(await countPaths(snapshot, { ...read, underestimated }, size)) };
}

/**
 * Counts the entries of a search by the names of their paths, each entry once for each name. Entries whose numbers do
 * not identify all names are read.
 */
async function countPaths(
  { transaction, tenant }: QuerySnapshot,
  search: Search,
  size: number,
): Promise<Pick<Facets, 'total' | 'values' | 'others'>> {
  const shared = { entities: null, like: null, shared: true };
  const { names, rest } = await readPathNames(statementsOf(transaction), tenant, shared);
  const unclear = [...new Set([...names.map(({ number }) => number), ...(rest === undefined ? [] : [rest])])];
  const isUnclear = sql<SqlBool>`${search.condition} and ${hasNumber(unclear)}`;
  const ofRead =
    unclear.length > 0
      ? sql`union all
      select k.name, count(*)
        from (select e.paths ${found({ ...search, condition: isUnclear })}) as e
        cross join lateral (
          select distinct change_path_name(p.path) as name from jsonb_object_keys(change_paths(e.paths)) as p (path)
        ) as k
        group by 1`
      : sql``;
  const statement = sql<{ total: number; names: number; value: string | null; count: number }>`
    with shape as materialized (
      select e.path_numbers as numbers, count(*) as entries ${found(search)} group by 1
    ), numbered as (
      select n.number, sum(s.entries) as entries
        from shape s cross join lateral unnest(s.numbers) as n (number)
        where not s.numbers && ${`{${unclear.join(',')}}`}::integer[]
        group by 1
    ), named as materialized (
      select path.name, sum(path.entries)::bigint as entries
        from (
          select replace(p.name, chr(1), chr(1) || chr(2)) as name, t.entries
            from numbered t
            join (select distinct c.number, c.name from change_path c where c.tenant = ${tenant} and c.entity <> '') as p
              on p.number = t.number
          ${ofRead}
        ) as path
        group by 1
    )
    select (select coalesce(sum(s.entries), 0) from shape s)::bigint as total, (select count(*) from named) as names,
           top.name as value, top.entries as count
      from (select) as one
      left join lateral (
        select n.name, n.entries from named n order by n.entries desc, n.name collate "C" limit ${size}
      ) as top on true
      order by top.entries desc, top.name collate "C"`;
  const rows = await runSearch(transaction, search, statement);
  const values = rows.flatMap(({ value, count }) =>
    value === null ? [] : [{ value: textOfProjection(value), count }],
  );
  return { total: rows[0]?.total ?? 0, values, others: (rows[0]?.names ?? 0) - values.length };
}

/** Finds the actors, or the kinds, that still have an entry that the caller sees. */
export function findVisibleNames(snapshot: HistorySnapshot, tenant: string, field: NameField): FindVisible {
  const { transaction, dictionary, horizon: since } = snapshot;
  const shown = kindsShown(snapshot, undefined);
  if (field !== 'actor' || shown === undefined) {
    const of = field === 'actor' ? 'actor' : 'kind';
    return (ids) => findVisible(transaction, tenant, of, { ids, since });
  }
  // No index has the entries of an actor by their kinds, but the tallies have.
  const kinds = shown.map(({ id }) => id);
  return async (actors) => {
    if (actors.length === 0 || kinds.length === 0) return new Set();
    const part = {
      split: 'actor',
      selection: { actors, kinds },
      moments: [since],
      firstPlace: 0,
      before: null,
    } as const;
    const { values } = await readFacetValues(
      { transaction, tenant, dictionary },
      { parts: [part], search: undefined },
      { field: 'actor', size: actors.length },
    );
    const names = new Set(values.map(({ value }) => value));
    return new Set(actors.filter((id) => names.has(dictionary.actorOf.get(id)?.name ?? '')));
  };
}
