import { sql } from 'kysely';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';
import type { ReadingPosition } from '../changes.ts';

/** A change that was read but not delivered. */
export interface WaitingChange extends ReadingPosition {
  /** A UUID. */
  readonly document: string;
  readonly attempts: number;
}

/** A change to retry after `pause` milliseconds, or to park. */
export interface Retry extends WaitingChange {
  readonly pause: number | 'parked';
}

interface SubscriptionKey {
  readonly tenant: string;
  readonly id: string;
}

/** Waiting changes that are due, the first of each document, longest overdue first. */
export async function readDue(db: Database, { tenant, id }: SubscriptionKey, limit: number): Promise<WaitingChange[]> {
  const { rows } = await sql<WaitingChange>`
    select w.position, w.fingerprint, w.document, w.attempts
      from delivery_waiting w
      where w.tenant = ${tenant} and w.subscription = ${id} and w.parked_at is null and w.due_at <= statement_timestamp()
        and not exists (
          select from delivery_waiting e
            where e.tenant = ${tenant} and e.subscription = ${id} and e.document = w.document and e.parked_at is null
              and e.position < w.position)
      order by w.due_at, w.position
      limit ${limit}`.execute(db);
  return rows;
}

/** Documents with a waiting change, and which of these positions are waiting or parked. */
export async function readKnown(
  db: Database,
  { tenant, id }: SubscriptionKey,
  documents: readonly string[],
  positions: readonly number[],
): Promise<{ blocked: Set<string>; known: Map<number, 'waiting' | 'parked'> }> {
  const { rows } = await sql<{ position: number; document: string; parked: boolean }>`
    select position, replace(document::text, '-', '') as document, parked_at is not null as parked
      from delivery_waiting
      where tenant = ${tenant} and subscription = ${id}
        and ((parked_at is null and document = any (${documents}::uuid[])) or position = any (${positions}::bigint[]))`.execute(
    db,
  );
  return {
    blocked: new Set(rows.flatMap(({ document, parked }) => (parked ? [] : [document]))),
    known: new Map(rows.map(({ position, parked }) => [position, parked ? 'parked' : 'waiting'])),
  };
}

/** Upserts changes to retry or to park. */
export async function saveRetries(
  transaction: DatabaseTransaction,
  { tenant, id }: SubscriptionKey,
  changes: readonly Retry[],
): Promise<void> {
  if (changes.length === 0) return;
  const column = (of: (change: Retry) => unknown) => changes.map(of);
  await sql`
    insert into delivery_waiting (tenant, subscription, position, fingerprint, document, attempts, due_at, parked_at)
      select ${tenant}, ${id}, w.position, w.fingerprint, w.document, w.attempts,
             statement_timestamp() + coalesce(w.pause, 0) * interval '1 millisecond',
             case when w.pause is null then statement_timestamp() end
        from unnest(${column(({ position }) => position)}::bigint[], ${column(({ fingerprint }) => fingerprint)}::integer[],
          ${column(({ document }) => document)}::uuid[], ${column(({ attempts }) => attempts)}::integer[],
          ${column(({ pause }) => (pause === 'parked' ? null : pause))}::double precision[])
          as w (position, fingerprint, document, attempts, pause)
      on conflict (tenant, subscription, position) do update
        set attempts = excluded.attempts, due_at = excluded.due_at, parked_at = excluded.parked_at`.execute(
    transaction,
  );
}

export async function deleteWaiting(
  transaction: DatabaseTransaction,
  { tenant, id }: SubscriptionKey,
  positions: readonly number[],
): Promise<void> {
  if (positions.length === 0) return;
  await transaction
    .deleteFrom('delivery_waiting')
    .where(({ and }) => and({ tenant, subscription: id }))
    .where('position', 'in', positions)
    .execute();
}
