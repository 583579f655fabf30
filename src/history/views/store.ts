import { sql } from 'kysely';
import type { DocumentRows } from '../../pagination/document-lists.ts';
import type { Connection, DatabaseTransaction } from '../../postgres/database.ts';
import { projectedJson } from '../../query/json-projection.ts';

interface SavedViewTable {
  tenant: string;
  id: string;
  version: number;
  /** The view as JSON text, as Annals sends it. */
  document: string;
  /** The same as jsonb, for filters and sorting. */
  fields: string;
}

declare module '../../postgres/tables.ts' {
  interface Tables {
    saved_view: SavedViewTable;
  }
}

export interface StoredView {
  readonly version: number;
  /** JSON text. */
  readonly document: string;
}

/** The views of a tenant, for lists. */
export function viewRows(tenant: string): DocumentRows {
  return { from: sql`saved_view`, where: sql`tenant = ${tenant}` };
}

/** Nobody else writes views of the tenant until the transaction ends. */
export async function lockViews(transaction: DatabaseTransaction, tenant: string): Promise<void> {
  await sql`select from tenant where tenant = ${tenant} for no key update`.execute(transaction);
}

export async function findView(db: Connection, tenant: string, id: string): Promise<StoredView | undefined> {
  return await db
    .selectFrom('saved_view')
    .select(['version', 'document'])
    .where('tenant', '=', tenant)
    .where('id', '=', id)
    .executeTakeFirst();
}

/** How many views the tenant has, and the last place among them; 0 without any. */
export async function readPlaces(
  transaction: DatabaseTransaction,
  tenant: string,
): Promise<{ count: number; last: number }> {
  const { rows } = await sql<{ count: number; last: number }>`
    select count(*) as count, coalesce(max((fields ->> 'position')::double precision), 0) as last
      from saved_view where tenant = ${tenant}`.execute(transaction);
  const [places] = rows;
  if (places === undefined) throw new Error('an aggregate has no row');
  return places;
}

export async function insertView(
  transaction: DatabaseTransaction,
  tenant: string,
  { id, version, document }: StoredView & { readonly id: string },
): Promise<void> {
  const fields = sql<string>`${projectedJson(document)}::jsonb`;
  await transaction.insertInto('saved_view').values({ tenant, id, version, document, fields }).execute();
}

export async function updateView(
  transaction: DatabaseTransaction,
  tenant: string,
  { id, version, document }: StoredView & { readonly id: string },
): Promise<void> {
  await transaction
    .updateTable('saved_view')
    .set({ version, document, fields: sql`${projectedJson(document)}::jsonb` })
    .where('tenant', '=', tenant)
    .where('id', '=', id)
    .execute();
}

export async function deleteView(transaction: DatabaseTransaction, tenant: string, id: string): Promise<void> {
  await transaction.deleteFrom('saved_view').where('tenant', '=', tenant).where('id', '=', id).execute();
}
