import { sql } from 'kysely';
import type { Connection } from '../../../postgres/database.ts';
import { entriesOfRow } from '../../feed/positions.ts';

/**
 * The first positions of rows of places with a gap or something else before them, or with another size or other bounds of time than those of
 * their entries; and the end of all where more is sealed. Such rows give a position twice, or hide one from an erasure.
 */
export async function findWrongPlaces(db: Connection, tenant: string, limit: number): Promise<number[]> {
  const { rows } = await sql<{ first: number }>`
    with place as (
      select p.first, p.first + cardinality(p.fingerprints) as next,
             lag(p.first + cardinality(p.fingerprints), 1, 1::bigint) over (order by p.first) as expected,
             cardinality(p.fingerprints) = cardinality(p.recorded)
               and cardinality(p.fingerprints) = all (case
                 when cardinality(p.ats) > 0 or p.at_lows is null then array[cardinality(p.ats), cardinality(p.sequences)]
                 else array[cardinality(p.at_lows), cardinality(p.at_highs), cardinality(p.sequence_offsets)] end)
               and p.oldest = bounds.oldest and p.newest = bounds.newest as is_right
        from change_position p
        cross join lateral (
          select coalesce(min(entry.at) filter (where entry.at >= 0), -1) as oldest, max(entry.at) as newest
            from ${entriesOfRow} as entry
        ) bounds
        where p.tenant = ${tenant}
    )
    select place.first from place where place.first <> place.expected or place.is_right is distinct from true
    union all
    select coalesce(max(place.next), 1) as first from place
      having coalesce(max(place.next), 1) <= (
        select max(l.first + octet_length(l.kinds) - 1) from proof_leaf l where l.tenant = ${tenant})
    order by first limit ${limit}::integer`.execute(db);
  return rows.map(({ first }) => first);
}
