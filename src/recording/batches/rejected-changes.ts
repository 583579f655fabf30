import { hash } from 'node:crypto';
import { sql } from 'kysely';
import type { Sealer } from '../../core/sealing.ts';
import type { Connection, DatabaseTransaction } from '../../postgres/database.ts';
import type { SealedColumn } from '../../postgres/reseal.ts';
import { lockTenant } from '../../postgres/tenants/tenants.ts';
import type { RecordedBy } from '../change.ts';

/** The source of a change, and what Annals stores of it if it is rejected. */
export interface ChangeSource {
  /** The position in the source, for people: a line, an index in a request, an LSN. Without content of the change. */
  position: string;
  /**
   * The change as a masked import line, for `annals rejected retry`. Called only if the change is rejected. Undefined
   * if masks cannot be applied to it; then only the reason is stored.
   */
  line(): string | undefined;
  /** The 16-byte identity of a change whose line has no `id`. */
  identity?: Uint8Array | undefined;
  /** What Annals derived for a change without one: a retry has it too. */
  correlationId?: string | undefined;
  /** Whether the line is a row written by `rejectedRowText`. A line from a client is never treated as one otherwise. */
  isRow?: boolean;
}

/** The sealed content of a rejected change. */
export interface RejectedContent {
  /** As the source names it. */
  tenant: string;
  /** The change as a masked import line. */
  line: string;
  /** The identity in hexadecimal, if the line has no `id`. */
  identity?: string | undefined;
  /** The correlation id that Annals derived. */
  correlationId?: string | undefined;
  /** The id of the client that sent it. */
  client?: string | undefined;
  /** Whether the recorder wrote the line from a row. */
  isRow?: boolean | undefined;
}

/** A rejected change as a row. Its id is deterministic, so a change that comes again is stored once. */
interface RejectedRow {
  id: string;
  position: string;
  reason: string;
  sealed: Uint8Array | null;
}

/** The tenant of rows whose tenant is unknown or malformed. No tenant has this name. */
export const unknownTenant = '';

export function rejectedRow(
  sealer: Sealer,
  {
    tenant,
    storedTenant,
    recordedBy,
    client,
  }: { tenant: string; storedTenant: string; recordedBy: RecordedBy; client?: string | undefined },
  { reason, source }: { reason: string; source: ChangeSource },
): RejectedRow {
  const line = source.line();
  const identity = source.identity === undefined ? undefined : Buffer.from(source.identity).toString('hex');
  const { way, by = '' } = recordedBy;
  const key = line ?? identity ?? `${source.position} ${reason}`;
  const id = uuidOf(hash('sha256', JSON.stringify(['annals:rejected', tenant, way, by, key]), 'hex').slice(0, 32));
  const seal = (content: RejectedContent) =>
    sealer.seal(Buffer.from(JSON.stringify(content)), purposeOf(storedTenant, id));
  const sealed =
    line === undefined
      ? null
      : seal({ tenant, line, identity, correlationId: source.correlationId, client, isRow: source.isRow });
  return { id, position: source.position, reason, sealed };
}

/** Throws if no secret key opens it. The message names only the row. */
export function openRejected(sealer: Sealer, tenant: string, id: string, sealed: Uint8Array): RejectedContent {
  const content = tryOpenRejected(sealer, tenant, id, sealed);
  if (content === undefined) throw new Error(`no key of ANNALS_SECRET_KEY opens the rejected change ${id}`);
  return content;
}

/** Undefined if no secret key opens it. */
export function tryOpenRejected(
  sealer: Sealer,
  tenant: string,
  id: string,
  sealed: Uint8Array,
): RejectedContent | undefined {
  const text = sealer.open(sealed, purposeOf(tenant, id));
  return text && JSON.parse(Buffer.from(text).toString('utf8'));
}

export const sealedRejectedChanges: SealedColumn = {
  table: 'change_rejected',
  column: 'sealed',
  keys: ['tenant', 'id'],
  purposeOf: ({ tenant, id }) => purposeOf(String(tenant), String(id)),
};

function purposeOf(tenant: string, id: string): string {
  return `rejected change ${tenant} ${id}`;
}

/** As PostgreSQL writes it. */
function uuidOf(hex: string): string {
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

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
