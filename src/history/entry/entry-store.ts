import { sql } from 'kysely';
import type { DatabaseTransaction } from '../../postgres/database.ts';
import type { Place } from '../page/store.ts';
import type { ReferredEntry } from './entry-ref.ts';

/** The place of an entry; undefined if it is before `since` or not there any more. */
export async function findPlace(
  transaction: DatabaseTransaction,
  tenant: string,
  { at, identity }: ReferredEntry,
  since: number,
): Promise<Place | undefined> {
  const { rows } = await sql<Place>`
    select e.at, e.sequence from change_entry e
      where e.tenant = ${tenant} and e.at = ${at} and e.identity = ${identity}::uuid and e.at >= ${since}`.execute(
    transaction,
  );
  return rows[0];
}
