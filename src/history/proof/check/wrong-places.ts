import { sql } from 'kysely';
import type { Connection } from '../../../postgres/database.ts';

/**
 * The first positions of rows of places with a gap or something else before them, or with another size or other bounds of time than those of
 * their entries; and the end of all where more is sealed. Such rows give a position twice, or hide one from an erasure.
 */
export async function findWrongPlaces(db: Connection, tenant: string, limit: number): Promise<number[]> {
  const { rows } = await sql<{ first: number }>`
    with place as (
      select p.first, p.first + cardinality(p.ats) as next,
             lag(p.first + cardinality(p.ats), 1, 1::bigint) over (order by p.first) as expected,
             cardinality(p.ats) = cardinality(p.sequences) and cardinality(p.ats) = cardinality(p.recorded)
               and cardinality(p.ats) = cardinality(p.fingerprints)
               and p.oldest = (select coalesce(min(one) filter (where one >= 0), -1) from unnest(p.ats) as one)
               and p.newest = (select max(one) from unnest(p.ats) as one) as is_right
        from change_position p where p.tenant = ${tenant}
    )
    select place.first from place where place.first <> place.expected or place.is_right is distinct from true
    union all
    select coalesce(max(place.next), 1) as first from place
      having coalesce(max(place.next), 1) <= (
        select max(l.first + octet_length(l.kinds) - 1) from proof_leaf l where l.tenant = ${tenant})
    order by first limit ${limit}::integer`.execute(db);
  return rows.map(({ first }) => first);
}
