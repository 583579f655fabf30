import { sql } from 'kysely';
import { entryConditions } from '../search/predicate.ts';
import type { QuerySnapshot } from '../search/snapshots.ts';
import type { ReferredEntry } from './entry-ref.ts';
import type { Place } from './entry-store-new.ts';

/** The place of an entry; undefined if the query of the snapshot does not find it, or it is not there any more. */
export async function findPlace(
  { transaction, tenant, expression, dictionary, since, slice }: QuerySnapshot,
  { at, identity }: ReferredEntry,
): Promise<Place | undefined> {
  const conditions = await entryConditions(tenant, expression, dictionary, slice);
  const { rows } = await sql<Place>`
    select e.at, e.sequence from change_entry e
      where e.tenant = ${tenant} and e.at = ${at} and e.identity = ${identity}::uuid and e.at >= ${since}
        and ${conditions.satisfies(expression)}`.execute(transaction);
  return rows[0];
}
