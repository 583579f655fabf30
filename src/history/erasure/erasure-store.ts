import { sql } from 'kysely';
import type { Connection, DatabaseTransaction } from '../../postgres/database.ts';
import type { ErasureReason } from './subject.ts';

/** An erasure without its subject. */
export interface StoredErasure {
  /** A UUID. */
  readonly erasure: string;
  readonly begunAt: Date;
  /** Null: it is running, or was interrupted. */
  readonly endedAt: Date | null;
  readonly reason: ErasureReason;
  readonly entries: number;
}

/** Newest first, after `before`. */
export async function listErasures(
  db: Connection,
  tenant: string,
  { before, limit }: { before?: StoredErasure | undefined; limit: number },
): Promise<(StoredErasure & { readonly subject: Uint8Array })[]> {
  const behind =
    before === undefined
      ? sql``
      : sql`and (begun_at, erasure) < (${before.begunAt}::timestamptz, ${before.erasure}::uuid)`;
  const { rows } = await sql<StoredErasure & { subject: Uint8Array }>`
    select erasure, begun_at as "begunAt", ended_at as "endedAt", reason, entries, subject from change_erasure
      where tenant = ${tenant} ${behind} order by begun_at desc, erasure desc limit ${limit}::integer`.execute(db);
  return rows;
}

export async function insertErasure(
  transaction: DatabaseTransaction,
  tenant: string,
  { erasure, reason, subject, now }: { erasure: string; reason: ErasureReason; subject: Uint8Array; now: number },
): Promise<void> {
  await sql`
    insert into change_erasure (tenant, erasure, begun_at, reason, subject)
      values (${tenant}, ${erasure}::uuid, ${new Date(now)}::timestamptz, ${reason}, ${subject})`.execute(transaction);
}

/** Ends an erasure. Returns the number of entries that it changed. */
export async function endErasure(
  transaction: DatabaseTransaction,
  tenant: string,
  { erasure, now }: { erasure: string; now: number },
): Promise<number> {
  const { rows } = await sql<{ entries: number }>`
    update change_erasure set ended_at = ${new Date(now)}::timestamptz
      where tenant = ${tenant} and erasure = ${erasure}::uuid returning entries`.execute(transaction);
  return rows[0]?.entries ?? 0;
}

/**
 * A subscription that got changes and no notice of their erasure: for e-mails there is none, stopped ones get it later.
 */
export interface UntoldSubscription {
  readonly id: string;
  readonly name: string;
  readonly target: string;
  readonly state: string;
}

export async function listUntold(db: Connection, tenant: string): Promise<UntoldSubscription[]> {
  const { rows } = await sql<UntoldSubscription>`
    select s.id, s.document::json ->> 'name' as name, s.document::json -> 'target' ->> 'type' as target, t.state
      from subscription s join subscription_state t on t.tenant = ${tenant} and t.subscription = s.id
      where s.tenant = ${tenant} and t.delivered > 0
        and (s.document::json -> 'target' ->> 'type' = 'email' or t.state in ('paused', 'suspended'))
      order by s.id`.execute(db);
  return rows;
}

/** Makes every process drop what it caches of histories. */
export async function announceErasure(transaction: DatabaseTransaction): Promise<void> {
  await sql`update installation set erasures = erasures + 1`.execute(transaction);
}
