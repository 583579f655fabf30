import { type Generated, sql } from 'kysely';
import type { Connection, DatabaseTransaction } from '../../postgres/database.ts';
import { lockTenant } from '../../postgres/tenants/tenants.ts';
import type { RecordedBy } from '../change.ts';
import type { RejectedRow } from './rejected-content.ts';

/** Maximum rejected changes of a tenant. */
export const maxRejected = 100_000;

/**
 * Stores new rejected changes under a lock of the tenant. Returns false if the tenant then has more than `max`; the
 * caller must roll back.
 */
export async function storeRejected(
  transaction: DatabaseTransaction,
  tenant: string,
  { way, by = null }: { way: RecordedBy['way']; by?: string | null | undefined },
  rows: readonly RejectedRow[],
  max = maxRejected,
): Promise<boolean> {
  await lockTenant(transaction, tenant);
  const { rows: existing } = await sql<{ there: number }>`
    select count(*) as there from (
      select from change_rejected where tenant = ${tenant} limit ${max + 1}
    ) as portion`.execute(transaction);
  const column = <Name extends keyof RejectedRow>(name: Name) => rows.map((row) => row[name]);
  const { rows: inserted } = await sql<{ id: string }>`
    insert into change_rejected (tenant, id, way, recorder, position, reason, sealed)
      select ${tenant}, input.id, ${way}, ${by}::text, input.position, input.reason, decode(input.sealed, 'base64')
        from unnest(${column('id')}::uuid[], ${column('position')}::text[], ${column('reason')}::text[],
                    ${rows.map(({ sealed }) => (sealed === null ? null : Buffer.from(sealed).toString('base64')))}::text[])
          as input (id, position, reason, sealed)
      on conflict (tenant, id) do nothing
      returning id::text`.execute(transaction);
  return Number(existing[0]?.there ?? 0) + inserted.length <= max;
}

/** A rejected change, as listed. */
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

/**
 * Up to `count` rejected changes by tenant and id, after a key, or the one with `id`. Without a tenant: all tenants.
 */
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

/** Returns whether it existed. */
export async function deleteRejected(db: Connection, tenant: string, id: string): Promise<boolean> {
  const { rows } = await sql`
    delete from change_rejected where tenant = ${tenant} and id = ${id}::uuid returning id`.execute(db);
  return rows.length > 0;
}

/** Deletes up to `count` of a tenant. Returns the number deleted. */
export async function deleteRejectedBatch(db: Connection, tenant: string, count: number): Promise<number> {
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
