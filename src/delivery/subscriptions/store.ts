import './tables.ts';
import { type RawBuilder, sql } from 'kysely';
import { AnnalsError, invalidBody } from '../../core/errors.ts';
import type { DocumentRows } from '../../pagination/paginator.ts';
import type { Connection, DatabaseTransaction } from '../../postgres/database.ts';
import { lockTenant } from '../../postgres/tenants/tenants.ts';
import type { TenantWork } from '../../postgres/tenants/tenants-with.ts';
import { documentTable } from '../../recording/documents/document-table.ts';
import { notFound } from '../../recording/documents/own-documents.ts';
import type { HistoryToDeliver, ReadingPosition } from '../changes.ts';
import type { Target } from '../targets/target.ts';
import type { SubscriptionDocument } from './schemas.ts';
import type { PauseReason, SubscriptionState } from './tables.ts';

export interface SubscriptionColumns {
  readonly sealed: Uint8Array | null;
  /** The id of the client whose scopes apply. */
  readonly maker: string;
}

/** Its documents do not contain the live state. */
export const subscriptionTable = documentTable<SubscriptionColumns>('subscription', {
  sealed: 'sealed',
  maker: 'maker',
});

/** The live members as JSON texts, from subscription `s`, state `t`, replay `r` and client `c`. Nulls are omitted. */
const live: Readonly<Record<string, RawBuilder<unknown>>> = {
  state: sql`to_json(t.state)`,
  reason: sql`to_json(t.reason)`,
  maker: sql`to_json(s.maker)`,
  makerName: sql`to_json(c.name)`,
  cursor: sql`to_json(t.cursor)`,
  pending: sql`t.waiting`,
  parked: sql`t.parked`,
  matched: sql`t.matched`,
  delivered: sql`t.delivered`,
  skipped: sql`t.skipped`,
  expired: sql`t.expired`,
  dropped: sql`t.dropped`,
  replay: sql`'{"left":' || (r.until - r.position) || '}'`,
  lastDelivery: sql`t.last_delivery`,
  lastError: sql`t.last_error`,
};

/** The live members, each after a comma, and the closing brace. */
const liveText = sql<string>`concat(${sql.join(
  Object.entries(live).map(([name, value]) => sql`${sql.lit(`,"${name}":`)} || ${value}`),
)}, '}')`;

const joined = sql`subscription s
  join subscription_state t on t.tenant = s.tenant and t.subscription = s.id
  left join subscription_replay r on r.tenant = s.tenant and r.subscription = s.id
  left join oauth_client c on c.tenant = s.tenant and c.client_id = s.maker`;

const shown = sql<string>`left(s.document, -1) || ${liveText}`;

/** The subscriptions of a tenant, for listing. */
export function subscriptionRows(tenant: string): DocumentRows {
  const from = sql`(select s.tenant, s.id, ${shown} as document, s.fields || ('{' || substr(${liveText}, 2))::jsonb as fields
    from ${joined} where s.tenant = ${tenant}) subscription`;
  return { from, where: sql`tenant = ${tenant}` };
}

/** The subscription as JSON text, with its live members. */
export async function findShown(db: Connection, tenant: string, id: string): Promise<string | undefined> {
  const { rows } = await sql<{ document: string }>`
    select ${shown} as document from ${joined} where s.tenant = ${tenant} and s.id = ${id}`.execute(db);
  return rows[0]?.document;
}

/** Counts a tenant's subscriptions. Holds a lock, so none is added until the transaction ends. */
export async function countSubscriptions(transaction: DatabaseTransaction, tenant: string): Promise<number> {
  await lockTenant(transaction, tenant);
  const { count } = await transaction
    .selectFrom('subscription')
    .select((expression) => expression.fn.countAll<number>().as('count'))
    .where('tenant', '=', tenant)
    .executeTakeFirstOrThrow();
  return count;
}

export async function insertState(
  transaction: DatabaseTransaction,
  tenant: string,
  id: string,
  { position, fingerprint, cursor, enabled }: ReadingPosition & { readonly cursor: string; readonly enabled: boolean },
): Promise<void> {
  await transaction
    .insertInto('subscription_state')
    .values({
      tenant,
      subscription: id,
      state: enabled ? 'active' : 'paused',
      reason: enabled ? null : 'disabled',
      position,
      fingerprint,
      cursor,
      due_at: sql`statement_timestamp()`,
      rest_until: null,
      failing_since: null,
      holder: null,
      held_until: null,
      last_delivery: null,
      last_error: null,
    })
    .execute();
}

/** Stops a subscription. Deliveries in flight may still arrive. */
export async function stopSubscription(
  transaction: Connection,
  tenant: string,
  id: string,
  { state, reason }: { readonly state: 'paused' | 'suspended'; readonly reason: PauseReason },
): Promise<void> {
  await transaction
    .updateTable('subscription_state')
    .set({ state, reason })
    .where(({ and }) => and({ tenant, subscription: id }))
    .execute();
}

/** Resumes a subscription, from `at` if present, and clears its failures. */
export async function resumeSubscription(
  transaction: DatabaseTransaction,
  tenant: string,
  id: string,
  at?: ReadingPosition & { readonly cursor: string },
): Promise<void> {
  await transaction
    .updateTable('subscription_state')
    .set({
      state: 'active',
      reason: null,
      due_at: sql`statement_timestamp()`,
      rest_until: null,
      failing_since: null,
      unreachable: 0,
      slowed: 0,
      ...(at && { position: at.position, fingerprint: at.fingerprint, cursor: at.cursor }),
    })
    .where(({ and }) => and({ tenant, subscription: id }))
    .execute();
}

export async function makeDue(transaction: DatabaseTransaction, tenant: string, id: string): Promise<void> {
  await transaction
    .updateTable('subscription_state')
    .set({ due_at: sql`statement_timestamp()` })
    .where(({ and }) => and({ tenant, subscription: id }))
    .execute();
}

/** Returns false if a replay is already running. */
export async function insertReplay(
  transaction: DatabaseTransaction,
  tenant: string,
  id: string,
  { position, fingerprint, until }: ReadingPosition & { readonly until: number },
): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await transaction
    .insertInto('subscription_replay')
    .values({ tenant, subscription: id, position, fingerprint, until })
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirstOrThrow();
  return numInsertedOrUpdatedRows === 1n;
}

/** Moves all parked changes back to waiting, with their attempts reset. */
export async function unpark(transaction: DatabaseTransaction, tenant: string, id: string): Promise<void> {
  await transaction
    .updateTable('delivery_waiting')
    .set({ parked_at: null, attempts: 0, due_at: sql`statement_timestamp()` })
    .where(({ and }) => and({ tenant, subscription: id }))
    .where('parked_at', 'is not', null)
    .execute();
  await transaction
    .updateTable('subscription_state')
    .set({ waiting: sql`waiting + parked`, parked: 0, due_at: sql`statement_timestamp()` })
    .where(({ and }) => and({ tenant, subscription: id }))
    .execute();
}

/** Deletes the changes parked before a time; default: all. */
export async function dropParked(
  transaction: DatabaseTransaction,
  tenant: string,
  id: string,
  before: RawBuilder<Date> = sql`'infinity'::timestamptz`,
): Promise<void> {
  const { numDeletedRows } = await transaction
    .deleteFrom('delivery_waiting')
    .where(({ and }) => and({ tenant, subscription: id }))
    .where('parked_at', '<', before)
    .executeTakeFirstOrThrow();
  const dropped = Number(numDeletedRows);
  if (dropped === 0) return;
  await transaction
    .updateTable('subscription_state')
    .set({ parked: sql`parked - ${dropped}::bigint`, dropped: sql`dropped + ${dropped}::bigint` })
    .where(({ and }) => and({ tenant, subscription: id }))
    .execute();
}

/** Deletes waiting and parked changes, batches and the replay, whose positions are no longer valid. */
export async function discardPending(transaction: DatabaseTransaction, tenant: string, id: string): Promise<void> {
  await transaction
    .deleteFrom('delivery_waiting')
    .where(({ and }) => and({ tenant, subscription: id }))
    .execute();
  await sql`delete from delivery_batch where tenant = ${tenant} and subscription = ${id}`.execute(transaction);
  await transaction
    .deleteFrom('subscription_replay')
    .where(({ and }) => and({ tenant, subscription: id }))
    .execute();
  await transaction
    .updateTable('subscription_state')
    .set({ waiting: 0, parked: 0, dropped: sql`dropped + waiting + parked` })
    .where(({ and }) => and({ tenant, subscription: id }))
    .execute();
}

export interface StateOfSubscription {
  readonly state: SubscriptionState;
  readonly reason: PauseReason | null;
}

/** Locks the state of a subscription, so that no run settles until the transaction ends. */
export async function lockState(
  transaction: DatabaseTransaction,
  tenant: string,
  id: string,
): Promise<StateOfSubscription | undefined> {
  return await transaction
    .selectFrom('subscription_state')
    .select(['state', 'reason'])
    .where(({ and }) => and({ tenant, subscription: id }))
    .forUpdate()
    .executeTakeFirst();
}

/** Running subscriptions. */
export const activeSubscriptions: TenantWork = {
  table: 'subscription_state',
  condition: "state in ('active', 'retrying')",
};

export const subscriptionNoun = 'subscription';

/** Reads a subscription. Throws resource_not_found. */
export async function requireSubscription(
  connection: Connection,
  tenant: string,
  id: string,
): Promise<{ sealed: Uint8Array | null; document: SubscriptionDocument }> {
  const stored = await subscriptionTable.find(connection, tenant, id);
  if (stored === undefined) throw notFound(subscriptionNoun);
  return { sealed: stored.sealed, document: JSON.parse(stored.document) as SubscriptionDocument };
}

/** The target with this `type`. */
export function targetOf(targets: readonly Target[], { type }: { readonly type: string }): Target {
  const target = targets.find((candidate) => candidate.type === type);
  if (target === undefined) throw new Error(`there is no target ${type}`);
  return target;
}

/** The position of a cursor that a client sent in this field. Throws validation_violation. */
export async function positionOfCursor(
  history: HistoryToDeliver,
  tenant: string,
  field: string,
  text: string,
  fault = 'is not a cursor of the feed of this tenant',
): Promise<ReadingPosition> {
  try {
    return await history.positionOf(tenant, text);
  } catch (error) {
    if (!(error instanceof AnnalsError) || error.type !== 'validation_violation') throw error;
    throw invalidBody({ field, message: fault });
  }
}
