import { sql } from 'kysely';
import type { DocumentRows } from '../../pagination/document-lists.ts';
import type { DatabaseTransaction } from '../../postgres/database.ts';
import { documentTable } from '../../recording/documents/document-table.ts';

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

export const viewTable = documentTable('saved_view', {});

/** The views of a tenant, for lists. */
export function viewRows(tenant: string): DocumentRows {
  return { from: sql`saved_view`, where: sql`tenant = ${tenant}` };
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
