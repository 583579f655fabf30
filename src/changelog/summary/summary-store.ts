import { sql } from 'kysely';
import type { QueryParts } from '../read/query-parts.ts';
import type { QuerySnapshot } from '../read/query-snapshot.ts';
import { found, type Search } from '../read/search-store.ts';
import { readTalliedPlaces } from '../read/tallied-page.ts';
import { type CountedPart, countsOf, type Split } from './tally-counts.ts';

/** How many entries the tallies count of a query. */
export async function countTallied(
  { transaction, tenant, now }: QuerySnapshot,
  { intervals }: Pick<QueryParts, 'intervals'>,
): Promise<number> {
  if (intervals.length === 0) return 0;
  return (await readTalliedPlaces(transaction, tenant, { now, intervals, skip: 0, size: 0 })).total;
}

/** How many entries satisfy a query, and when the oldest of them occurred. Undefined: there is none. */
export async function readExtentOfParts(
  snapshot: QuerySnapshot,
  { intervals, search }: QueryParts,
): Promise<{ total: number; oldest: number | undefined }> {
  const { transaction, tenant, now } = snapshot;
  const total = await countTallied(snapshot, { intervals });
  const oldest = { now, intervals, skip: total - 1, size: 1 };
  const last = total === 0 ? undefined : await readTalliedPlaces(transaction, tenant, oldest);
  const moments = last === undefined ? [] : last.places.map(({ at }) => at);
  if (search === undefined) return { total, oldest: moments[0] };
  const { rows } = await sql<{ total: number; oldest: number | null }>`
    select count(*) as total, min(e.at) as oldest ${found(search)}`.execute(transaction);
  const [others] = rows;
  if (others === undefined || others.oldest === null) return { total, oldest: moments[0] };
  return { total: total + others.total, oldest: Math.min(...moments, others.oldest) };
}

/** How many entries are in a range of a list of moments. Ranges without entries are left out. */
interface RangeCount {
  /** The label of the part. */
  label: string;
  /** The place of the moment that begins the range, from 0. */
  place: number;
  entries: number;
}

/** Counts the entries of parts by their labels and ranges. */
export async function countParts(
  { transaction, tenant, dictionary }: QuerySnapshot,
  parts: readonly CountedPart[],
): Promise<RangeCount[]> {
  if (parts.length === 0) return [];
  const { rows } = await sql<RangeCount>`
    select c.label, c.place, sum(c.entries)::bigint as entries
      from (${countsOf(tenant, parts, dictionary)}) as c (label, place, key, entries)
      group by c.label, c.place`.execute(transaction);
  return rows;
}

/** Counts the entries of a search by their types and by the ranges that the moments begin. */
export async function countSearch(
  { transaction, tenant }: QuerySnapshot,
  search: Search,
  moments: readonly number[],
): Promise<RangeCount[]> {
  const { rows } = await sql<RangeCount>`
    select k.type as label, c.place, sum(c.entries)::bigint as entries
      from (
        select e.kind, width_bucket(e.at, ${moments}::bigint[]) - 1 as place, count(*) as entries ${found(search)} group by 1, 2
      ) as c
      join change_kind k on k.tenant = ${tenant} and k.kind = c.kind
      group by k.type, c.place`.execute(transaction);
  return rows;
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
  const sources = [
    ...(parts.length === 0 ? [] : [sql`select key, entries from (${countsOf(tenant, parts, dictionary, split)}) as t`]),
    ...(search === undefined
      ? []
      : [sql`select ${sql.ref(`e.${split}`)} as key, count(*) as entries ${found(search)} group by 1`]),
  ];
  if (sources.length === 0) return { total: 0, values: [] };
  const names =
    split === 'actor'
      ? sql`change_actor n on n.tenant = ${tenant} and n.actor`
      : sql`change_kind n on n.tenant = ${tenant} and n.kind`;
  const name = sql.ref(split === 'actor' ? 'n.name' : `n.${field}`);
  // The collation of names is the order of code points. Two recorders may have registered a name under two numbers.
  const { rows } = await sql<{ total: number | null; value: string | null; count: number }>`
    with counted as materialized (
      select c.key, sum(c.entries) as entries from (${sql.join(sources, sql` union all `)}) as c group by c.key
    ), named as materialized (
      select ${name} as value, sum(counted.entries)::bigint as count
        from counted join ${names} = counted.key
        group by 1 having sum(counted.entries) > 0
    )
    select (select sum(named.count) from named)::bigint as total, top.value, top.count
      from (select) as one
      left join lateral (select * from named order by named.count desc, named.value limit ${size}) as top on true
      order by top.count desc, top.value`.execute(transaction);
  const values = rows.flatMap(({ value, count }) => (value === null ? [] : [{ value, count }]));
  return { total: rows[0]?.total ?? 0, values };
}
