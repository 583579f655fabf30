import { type SqlBool, sql } from 'kysely';
import { statementsOf } from '../../postgres/statements.ts';
import { textOfProjection } from '../../query/json-projection.ts';
import type { FacetValue } from '../search/count-store.ts';
import { readPathNames } from '../search/names/path-name-store.ts';
import { hasNumber } from '../search/path-predicate.ts';
import { found, runSearch, type Search } from '../search/search-store.ts';
import type { QuerySnapshot } from '../search/snapshots.ts';

/** The paths that most entries have, and the number of the other paths. */
export interface PathFacets {
  readonly total: number;
  readonly values: readonly FacetValue[];
  readonly others: number;
}

/**
 * Counts the entries of a search by the names of their paths. An entry counts once for each name. Entries whose numbers do
 * not tell all names are read.
 */
export async function readPathFacets(
  { transaction, tenant }: QuerySnapshot,
  search: Search,
  size: number,
): Promise<PathFacets> {
  const { names, rest } = await readPathNames(statementsOf(transaction), tenant, {
    entities: null,
    like: null,
    shared: true,
  });
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
    ), told as (
      select n.number, sum(s.entries) as entries
        from shape s cross join lateral unnest(s.numbers) as n (number)
        where not s.numbers && ${`{${unclear.join(',')}}`}::integer[]
        group by 1
    ), named as materialized (
      select one.name, sum(one.entries)::bigint as entries
        from (
          select replace(p.name, chr(1), chr(1) || chr(2)) as name, t.entries
            from told t
            join (select distinct c.number, c.name from change_path c where c.tenant = ${tenant} and c.entity <> '') as p
              on p.number = t.number
          ${ofRead}
        ) as one
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
