import { type RawBuilder, type SqlBool, sql } from 'kysely';
import type { DatabaseTransaction } from '../../db/database.ts';
import type { HashedId, IdsOf } from '../plan/id-patterns.ts';
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

/** How many entries a search finds, and the places of a page of them, newest first; the search is done once. */
export async function searchPage(
  transaction: DatabaseTransaction,
  search: Search,
  page: { skip: number; size: number },
): Promise<{ total: number; places: Place[] }> {
  const { rows } = await sql<{ total: number; at: number | null; sequence: number }>`
    with found as materialized (select e.at, e.sequence ${found(search)})
    select counted.total, place.at, place.sequence
      from (select count(*) as total from found) as counted
      left join lateral (
        select * from found order by at desc, sequence desc offset ${page.skip} limit ${page.size}
      ) as place on true
      order by place.at desc, place.sequence desc`.execute(transaction);
  const places = rows.flatMap(({ at, sequence }) => (at === null ? [] : [{ at, sequence }]));
  return { total: rows[0]?.total ?? 0, places };
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

/** So many ids are fetched at a time. */
const idsAtOnce = 5_000;

/**
 * The distinct ids of documents, or of related documents, that entries since then have: those with one of some texts in them,
 * and documents of some kinds; null stands for any. Once at a time in a transaction.
 */
export async function* readDocumentIds(
  transaction: DatabaseTransaction,
  tenant: string,
  of: IdsOf,
  {
    since,
    kinds,
    containing,
  }: { since: number; kinds: readonly number[] | null; containing: readonly string[] | null },
): AsyncGenerator<HashedId[]> {
  const ofKinds = kinds === null ? sql`true` : sql`e.kind = any (${kinds}::bigint[])`;
  const contains = (id: RawBuilder<unknown>) =>
    containing === null
      ? sql`true`
      : sql`(${sql.join(
          containing.map((text) => sql`strpos(${id}, ${text}) > 0`),
          sql` or `,
        )})`;
  const ids =
    of === 'document'
      ? sql`select distinct e.document as hash, e.entity_id as id from change_entry e
              where e.tenant = ${tenant} and e.at >= ${since} and ${ofKinds} and ${contains(sql`e.entity_id`)}`
      : sql`select distinct r.document as hash, r.entity_id as id from change_related r
              where r.tenant = ${tenant} and r.at >= ${since} and ${contains(sql`r.entity_id`)}`;
  // All of them are wanted, not the first ones soon.
  await sql`set local cursor_tuple_fraction = 1`.execute(transaction);
  await sql`declare document_ids no scroll cursor for ${ids}`.execute(transaction);
  for (;;) {
    const { rows } = await sql<HashedId>`fetch ${sql.lit(idsAtOnce)} from document_ids`.execute(transaction);
    if (rows.length > 0) yield rows;
    if (rows.length < idsAtOnce) break;
  }
  await sql`close document_ids`.execute(transaction);
}
