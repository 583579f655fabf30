import { type RawBuilder, type SqlBool, sql } from 'kysely';
import type { DatabaseTransaction } from '../db/database.ts';
import type { Place } from './store.ts';

/** Where entries may be found that satisfy a condition on `e`: rows of change_entry, or places first. */
export interface Search {
  tenant: string;
  since: number;
  /** A select of (at, sequence), without repetitions; all of the tenant's entries where it is left out. */
  places?: RawBuilder<unknown> | undefined;
  condition: RawBuilder<SqlBool>;
}

/** How many entries a search finds. */
export async function countEntries(transaction: DatabaseTransaction, search: Search): Promise<number> {
  const { rows } = await sql<{ total: number }>`select count(*) as total ${found(search)}`.execute(transaction);
  return rows[0]?.total ?? 0;
}

/** The places of what a search finds, newest first. */
export async function findPlaces(
  transaction: DatabaseTransaction,
  search: Search,
  page: { skip: number; size: number },
): Promise<Place[]> {
  const { rows } = await sql<Place>`
    select e.at, e.sequence ${found(search)}
      order by e.at desc, e.sequence desc offset ${page.skip} limit ${page.size}`.execute(transaction);
  return rows;
}

/** What finds them, from `from` on. */
export function found({ tenant, since, places, condition }: Search): RawBuilder<unknown> {
  const from =
    places === undefined
      ? sql`change_entry e`
      : sql`(${places}) as place
          join change_entry e on e.tenant = ${tenant} and e.at = place.at and e.sequence = place.sequence`;
  return sql`from ${from} where e.tenant = ${tenant} and e.at >= ${since} and ${condition}`;
}

/** The distinct ids of documents, or of related documents, that entries since then have. */
export async function readDocumentIds(
  transaction: DatabaseTransaction,
  tenant: string,
  of: 'document' | 'related',
  range: { since: number; kinds: readonly number[] | null },
): Promise<string[]> {
  const ofKinds = range.kinds === null ? sql`` : sql`and e.kind = any (${range.kinds}::bigint[])`;
  const { rows } =
    of === 'document'
      ? await sql<{ id: string }>`
          select distinct e.entity_id as id from change_entry e
            where e.tenant = ${tenant} and e.at >= ${range.since} ${ofKinds}`.execute(transaction)
      : await sql<{ id: string }>`
          select distinct r.entity_id as id from change_related r
            where r.tenant = ${tenant} and r.at >= ${range.since}`.execute(transaction);
  return rows.map((row) => row.id);
}
