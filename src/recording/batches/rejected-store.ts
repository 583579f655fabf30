import { type Generated, sql } from 'kysely';
import type { Connection, DatabaseTransaction } from '../../postgres/database.ts';
import { lockTenant } from '../../postgres/tenants/tenants.ts';
import type { RecordedBy } from '../change.ts';
import type { RejectedRow } from './kept-change.ts';

/** How many rejected changes a tenant keeps. */
export const maxRejected = 100_000;

/**
 * Stores rejected changes that are not stored yet. Returns false, and stores none, where the tenant would then have more than `most`.
 * Until the transaction ends, nobody else stores rejected changes of the tenant.
 */
export async function storeRejected(
  transaction: DatabaseTransaction,
  tenant: string,
  { way, by = null }: { way: RecordedBy['way']; by?: string | null | undefined },
  rows: readonly RejectedRow[],
  most = maxRejected,
): Promise<boolean> {
  await lockTenant(transaction, tenant);
  const { rows: counted } = await sql<{ there: number }>`
    select count(*) as there from (
      select from change_rejected where tenant = ${tenant} limit ${most + 1}
    ) as portion`.execute(transaction);
  const column = <Name extends keyof RejectedRow>(name: Name) => rows.map((row) => row[name]);
  const { rows: stored } = await sql<{ id: string }>`
    insert into change_rejected (tenant, id, way, recorder, position, reason, sealed)
      select ${tenant}, given.id, ${way}, ${by}::text, given.position, given.reason, decode(given.sealed, 'base64')
        from unnest(${column('id')}::uuid[], ${column('position')}::text[], ${column('reason')}::text[],
                    ${rows.map(({ sealed }) => (sealed === null ? null : Buffer.from(sealed).toString('base64')))}::text[])
          as given (id, position, reason, sealed)
      on conflict (tenant, id) do nothing
      returning id::text`.execute(transaction);
  return Number(counted[0]?.there ?? 0) + stored.length <= most;
}

/** A rejected change with what people may see of it. */
export interface ListedRejection {
  tenant: string;
  id: string;
  way: RecordedBy['way'];
  recorder: string | null;
  position: string;
  reason: string;
  keptAt: Date;
  sealed: Uint8Array | null;
}

/** Up to `count` rejected changes in the order of tenants and ids, after a place, or the one with the id. Without a tenant: of all tenants. */
export async function listRejected(
  db: Connection,
  tenant: string | undefined,
  { after, count, id }: { after: { tenant: string; id: string } | undefined; count: number; id?: string | undefined },
): Promise<ListedRejection[]> {
  const { rows } = await sql<ListedRejection>`
    select tenant, id::text, way, recorder, position, reason, kept_at as "keptAt", sealed from change_rejected
      where ${tenant === undefined ? sql`true` : sql`tenant = ${tenant}`}
        and ${id === undefined ? sql`true` : sql`id = ${id}::uuid`}
        and ${after === undefined ? sql`true` : sql`(tenant, id) > (${after.tenant}, ${after.id}::uuid)`}
      order by tenant, id limit ${count}`.execute(db);
  return rows;
}

/** Deletes one. Returns whether it was there. */
export async function deleteRejected(db: Connection, tenant: string, id: string): Promise<boolean> {
  const { rows } = await sql`
    delete from change_rejected where tenant = ${tenant} and id = ${id}::uuid returning id`.execute(db);
  return rows.length > 0;
}

/** Deletes up to `count` of a tenant. Returns how many. */
export async function deletePortion(db: Connection, tenant: string, count: number): Promise<number> {
  const { rows } = await sql`
    delete from change_rejected r using (
      select tenant, id from change_rejected where tenant = ${tenant} order by id limit ${count}
    ) as portion
      where r.tenant = ${tenant} and r.tenant = portion.tenant and r.id = portion.id returning r.id`.execute(db);
  return rows.length;
}

export async function updateReason(db: Connection, tenant: string, id: string, reason: string): Promise<void> {
  await sql`update change_rejected set reason = ${reason} where tenant = ${tenant} and id = ${id}::uuid`.execute(db);
}

interface ChangeRejectedTable {
  tenant: string;
  id: string;
  way: string;
  recorder: string | null;
  position: string;
  reason: string;
  sealed: Uint8Array | null;
  kept_at: Generated<Date>;
}

declare module '../../postgres/tables.ts' {
  interface Tables {
    change_rejected: ChangeRejectedTable;
  }
}
