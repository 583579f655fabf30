import { sql } from 'kysely';
import type { DocumentRows } from '../../pagination/paginator.ts';
import type { Connection, DatabaseTransaction } from '../../postgres/database.ts';
import type { DeliveryResult } from '../targets/target.ts';
import './tables.ts';

/** Attempts kept per subscription. */
export const maxAttempts = 10_000;

/** The attempts of a subscription, for listing. */
export function attemptRows(tenant: string, id: string): DocumentRows {
  const attempt = sql`jsonb_strip_nulls(jsonb_build_object(
    'id', number::text, 'at', to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), 'kind', kind,
    'first', first_position, 'last', last_position, 'outcome', outcome, 'status', status, 'duration', duration, 'reason', reason, 'error', error,
    'answer', answer))`;
  const from = sql`(select tenant, lpad(number::text, 12, '0') as id, (${attempt})::text as document, ${attempt} as fields
    from delivery_attempt where tenant = ${tenant} and subscription = ${id}) delivery_attempt`;
  return { from, where: sql`tenant = ${tenant}` };
}

/** When an attempt was made (milliseconds), and its first and last position; undefined if there is none. */
export async function findAttempt(
  db: Connection,
  tenant: string,
  id: string,
  number: number,
): Promise<{ at: number; first: number | null; last: number | null } | undefined> {
  const row = await db
    .selectFrom('delivery_attempt')
    .select(['at', 'first_position as first', 'last_position as last'])
    .where(({ and }) => and({ tenant, subscription: id, number }))
    .executeTakeFirst();
  return row && { ...row, at: row.at.getTime() };
}

export interface AttemptRecord {
  readonly kind: 'live' | 'replay' | 'test';
  readonly result: DeliveryResult;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly first?: number | undefined;
  readonly last?: number | undefined;
}

/** Records attempts, the last delivery and the last error. Locks the state of the subscription. */
export async function recordAttempts(
  transaction: DatabaseTransaction,
  tenant: string,
  id: string,
  attempts: readonly AttemptRecord[],
): Promise<void> {
  if (attempts.length === 0) return;
  const delivered = attempts.findLast(({ kind, result }) => kind !== 'test' && result.outcome === 'delivered');
  const failed = attempts.findLast(({ kind, result }) => kind !== 'test' && result.outcome !== 'delivered');
  const lastDelivery = delivered && JSON.stringify({ at: timeOf(delivered.at), ...shownOf(delivered.result) });
  const lastError =
    failed &&
    JSON.stringify({ at: timeOf(failed.at), message: failed.result.error ?? '', status: failed.result.status });
  const { rows } = await sql<{ last: number }>`
    update subscription_state
      set attempts = attempts + ${attempts.length}::bigint, last_delivery = coalesce(${lastDelivery ?? null}::text, last_delivery),
          last_error = coalesce(${lastError ?? null}::text, last_error)
      where tenant = ${tenant} and subscription = ${id}
      returning attempts as last`.execute(transaction);
  const [row] = rows;
  if (row === undefined) return;
  const before = row.last - attempts.length;
  await transaction
    .insertInto('delivery_attempt')
    .values(
      attempts.map(({ kind, at, first, last, result }, index) => ({
        tenant,
        subscription: id,
        number: before + index + 1,
        at: new Date(at),
        kind,
        outcome: result.outcome,
        first_position: first ?? null,
        last_position: last ?? null,
        status: result.status ?? null,
        duration: result.duration ?? null,
        reason: result.reason ?? null,
        error: result.error ?? null,
        answer: result.answer ?? null,
      })),
    )
    .execute();
  await transaction
    .deleteFrom('delivery_attempt')
    .where(({ and }) => and({ tenant, subscription: id }))
    .where('number', '<=', row.last - maxAttempts)
    .execute();
}

function shownOf({ status, duration }: DeliveryResult) {
  return { status, duration };
}

function timeOf(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}
