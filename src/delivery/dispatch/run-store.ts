import { sql } from 'kysely';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';
import type { TenantWork } from '../../postgres/tenants/tenants-with.ts';
import type { ReadingPosition } from '../changes.ts';
import type { PauseReason, SubscriptionState } from '../subscriptions/tables.ts';

/** Milliseconds: how long a lease lasts after a heartbeat, and the interval of heartbeats. */
export const lease = { length: 10_000, heartbeat: 2_000 };

/** Waiting changes of a subscription at which it stops reading. */
export const maxWaiting = 1_000;

const isFree = `state in ('active', 'retrying') and (held_until is null or held_until < statement_timestamp())
  and (rest_until is null or rest_until <= statement_timestamp())`;

/** Subscriptions with work other than new changes. */
export const dueSubscriptions: TenantWork = {
  table: 'subscription_state',
  condition: `due_at <= statement_timestamp() and ${isFree}`,
};

/** The state of a leased subscription at the start of its run, and after each settlement. */
export interface RunState extends ReadingPosition {
  readonly state: SubscriptionState;
  readonly waiting: number;
  readonly unreachable: number;
  readonly slowed: number;
}

export interface LeasedSubscription extends RunState {
  readonly id: string;
  readonly version: number;
  /** JSON text. */
  readonly document: string;
  readonly sealed: Uint8Array | null;
  readonly maker: string;
}

/** The progress of a replay, and the last position that it reads. */
export interface StoredReplay extends ReadingPosition {
  readonly until: number;
}

export interface Holder {
  readonly tenant: string;
  readonly id: string;
  readonly holder: string;
}

const stateColumns = sql`state, position, fingerprint, waiting, unreachable, slowed`;

/** Leases the free subscriptions of a tenant that are due or behind `last`, excluding those in `except`. */
export async function leaseDue(
  db: Database,
  tenant: string,
  { holder, last, except }: { readonly holder: string; readonly last: number; readonly except: readonly string[] },
): Promise<LeasedSubscription[]> {
  const { rows } = await sql<LeasedSubscription>`
    with taken as (
      update subscription_state
        set holder = ${holder}::uuid, held_until = statement_timestamp() + ${lease.length} * interval '1 millisecond',
            due_at = statement_timestamp()
        where tenant = ${tenant} and ${sql.raw(isFree)} and subscription <> all (${except}::text[])
          and (due_at <= statement_timestamp() or (position < ${last}::bigint and waiting < ${maxWaiting}))
        returning tenant, subscription, ${stateColumns}
    )
    select s.id, s.version, s.document, s.sealed, s.maker, t.state, t.position, t.fingerprint, t.waiting, t.unreachable, t.slowed
      from taken t join subscription s on s.tenant = t.tenant and s.id = t.subscription
      where s.tenant = ${tenant}`.execute(db);
  return rows;
}

/** Extends the lease of a run. Returns false if it was lost, or if the subscription was stopped or changed. */
export async function extendLease(db: Database, { tenant, id, holder }: Holder, version: number): Promise<boolean> {
  const { rows } = await sql`
    update subscription_state t
      set held_until = statement_timestamp() + ${lease.length} * interval '1 millisecond'
      where t.tenant = ${tenant} and t.subscription = ${id} and t.holder = ${holder}::uuid and t.state in ('active', 'retrying')
        and exists (select from subscription s where s.tenant = ${tenant} and s.id = ${id} and s.version = ${version}::bigint)
      returning 1`.execute(db);
  return rows.length > 0;
}

/** Increments of the subscription's counts since the last settlement. */
export interface Counts {
  readonly matched?: number;
  readonly delivered?: number;
  readonly skipped?: number;
  readonly expired?: number;
  readonly dropped?: number;
  readonly waiting?: number;
  readonly parked?: number;
}

/** The health of the target after the last attempt. Missing if nothing was sent. */
export type Health =
  | { readonly is: 'well' }
  /** `rest`: milliseconds without any attempt. */
  | { readonly is: 'failing'; readonly rest?: number }
  | { readonly is: 'busy' | 'away'; readonly rest: number }
  | { readonly is: 'gone' };

export interface StateChange {
  readonly counts: Counts;
  readonly checkpoint?: (ReadingPosition & { readonly cursor: string }) | undefined;
  readonly health?: Health | undefined;
  /** Milliseconds until the subscription is considered again, even if changes are recorded. */
  readonly rest?: number;
}

/** Milliseconds of continuous failure after which a subscription is suspended. */
export const maxFailing = 5 * 24 * 60 * 60 * 1000;

/**
 * Writes progress, with a holder only if it has the lease. Undefined if it has not, or the subscription was deleted. A
 * stopped subscription stays stopped. `hasFailed`: it is now suspended because of continuous failures.
 */
export async function changeState(
  transaction: DatabaseTransaction,
  { tenant, id, holder }: Pick<Holder, 'tenant' | 'id'> & Partial<Holder>,
  { counts, checkpoint, health, rest: pause }: StateChange,
): Promise<(RunState & { readonly hasFailed: boolean; readonly failingSince: Date | null }) | undefined> {
  const { matched = 0, delivered = 0, skipped = 0, expired = 0, dropped = 0, waiting = 0, parked = 0 } = counts;
  const is = health?.is ?? 'unknown';
  const isHolder = holder === undefined ? sql`true` : sql`holder = ${holder}::uuid`;
  const rest = (health !== undefined && 'rest' in health ? health.rest : pause) ?? null;
  const { rows } = await sql<RunState & { reason: PauseReason | null; wasRunning: boolean; failingSince: Date | null }>`
    with locked as (
      select state in ('active', 'retrying') as running,
             case when ${is} = 'well' then null when ${is} = 'unknown' then failing_since
               else coalesce(failing_since, statement_timestamp()) end as failing_since
        from subscription_state where tenant = ${tenant} and subscription = ${id} and ${isHolder} for update
    ), before as (
      -- Computed here, since Citus rejects it in the update.
      select running, failing_since,
             failing_since < statement_timestamp() - ${maxFailing}::double precision * interval '1 millisecond' as fails_long,
             statement_timestamp() + ${rest}::double precision * interval '1 millisecond' as rest_until
        from locked
    )
    update subscription_state t
      set matched = matched + ${matched}::bigint, delivered = delivered + ${delivered}::bigint,
          skipped = skipped + ${skipped}::bigint, expired = expired + ${expired}::bigint,
          dropped = dropped + ${dropped}::bigint, waiting = waiting + ${waiting}::bigint, parked = parked + ${parked}::bigint,
          position = coalesce(${checkpoint?.position ?? null}::bigint, position),
          fingerprint = coalesce(${checkpoint?.fingerprint ?? null}::integer, fingerprint),
          cursor = coalesce(${checkpoint?.cursor ?? null}::text, cursor),
          failing_since = b.failing_since,
          unreachable = case when ${is} = 'away' then unreachable + 1 when ${is} = 'unknown' then unreachable else 0 end,
          slowed = case when ${is} = 'busy' then slowed + 1 when ${is} = 'well' then 0 else slowed end,
          rest_until = coalesce(b.rest_until, t.rest_until),
          state = case when not b.running then state when ${is} = 'gone' or b.fails_long then 'suspended'
            when b.failing_since is null then 'active' else 'retrying' end,
          reason = case when not b.running then reason when ${is} = 'gone' then 'gone'
            when b.fails_long then 'failures' end
      from before b
      where t.tenant = ${tenant} and t.subscription = ${id} and ${isHolder}
      returning t.state, t.reason, t.position, t.fingerprint, t.waiting, t.unreachable, t.slowed, b.running as "wasRunning",
        t.failing_since as "failingSince"`.execute(transaction);
  const [row] = rows;
  return row && { ...row, hasFailed: row.wasRunning && row.reason === 'failures' };
}

/** Ends a run. `pause`: milliseconds until its next work, apart from waiting changes. */
export async function release(db: Database, { tenant, id, holder }: Holder, pause: number | undefined): Promise<void> {
  await sql`
    with due as (
      -- Computed here, since Citus rejects it in the update.
      select case when rest_until > statement_timestamp() then rest_until
               else least(statement_timestamp() + ${pause ?? null}::double precision * interval '1 millisecond', (
                 select min(w.due_at) from delivery_waiting w
                   where w.tenant = ${tenant} and w.subscription = ${id} and w.parked_at is null
                     and not exists (
                       select from delivery_waiting e
                         where e.tenant = ${tenant} and e.subscription = ${id} and e.document = w.document
                           and e.parked_at is null and e.position < w.position))) end as at
        from subscription_state where tenant = ${tenant} and subscription = ${id} and holder = ${holder}::uuid for update
    )
    update subscription_state t set holder = null, held_until = null, due_at = due.at
      from due
      where t.tenant = ${tenant} and t.subscription = ${id} and t.holder = ${holder}::uuid`.execute(db);
}

export async function findReplay(db: Database, tenant: string, id: string): Promise<StoredReplay | undefined> {
  return await db
    .selectFrom('subscription_replay')
    .select(['position', 'fingerprint', 'until'])
    .where(({ and }) => and({ tenant, subscription: id }))
    .executeTakeFirst();
}

/** Moves a replay, or deletes it if it is over. */
export async function moveReplay(
  transaction: DatabaseTransaction,
  { tenant, id }: Holder,
  { position, fingerprint }: ReadingPosition,
  isOver: boolean,
): Promise<void> {
  if (isOver) {
    await transaction
      .deleteFrom('subscription_replay')
      .where(({ and }) => and({ tenant, subscription: id }))
      .execute();
    return;
  }
  await transaction
    .updateTable('subscription_replay')
    .set({ position, fingerprint })
    .where(({ and }) => and({ tenant, subscription: id }))
    .execute();
}

/** Pauses a subscription whose position no longer exists, with the message as its last error. */
export async function pauseRestored(db: Database, { tenant, id, holder }: Holder, message: string): Promise<void> {
  const lastError = JSON.stringify({ at: new Date().toISOString(), message });
  await sql`
    update subscription_state set state = 'paused', reason = 'restored', last_error = ${lastError}
      where tenant = ${tenant} and subscription = ${id} and holder = ${holder}::uuid and state in ('active', 'retrying')`.execute(
    db,
  );
}
