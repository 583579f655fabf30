import { randomBytes } from 'node:crypto';
import { Webhook as StandardWebhook } from 'standardwebhooks';
import { Webhook as SvixWebhook } from 'svix';
import { expect } from 'vitest';
import { inTransaction } from '../../../src/postgres/transaction.ts';
import { recordChanges } from '../../../src/recording/record-change.ts';
import type { Received } from '../vendor/receiver.ts';
import { changeOf } from './history.ts';
import type { TestServer } from './server.ts';
import { setBack } from './set-back.ts';

/** What tests read of a subscription. */
export interface SubscriptionShown {
  readonly id: string;
  readonly state: string;
  readonly reason?: string;
  readonly cursor: string;
  readonly pending: number;
  readonly parked: number;
  readonly matched: number;
  readonly delivered: number;
  readonly skipped: number;
  readonly expired: number;
  readonly dropped: number;
  readonly replay?: { readonly left: number };
  readonly lastError?: { readonly message: string; readonly status?: number };
  readonly target: Readonly<Record<string, unknown>>;
  readonly metadata: { readonly version: number };
}

export interface Answered<Body = unknown> {
  readonly status: number;
  readonly body: Body;
  readonly headers: Headers;
}

/** Calls the operations of subscriptions for one tenant. */
export function subscriptionsOf(server: TestServer, tenant: string, token: string) {
  async function call<Body>(method: string, path = '', body?: unknown, as = token): Promise<Answered<Body>> {
    const response = await server.call(`/changelog/${tenant}/subscriptions${path}`, { token: as, method, json: body });
    const text = await response.text();
    return { status: response.status, body: text === '' ? null : JSON.parse(text), headers: response.headers };
  }
  return {
    call,

    /** Makes a subscription, and returns its id and its secret. */
    async make(body: object): Promise<{ id: string; secret: string; publicKey: string }> {
      const made = await call<{ id: string; secret: string; publicKey: string }>('POST', '', { name: 'Some', ...body });
      expect(made).toMatchObject({ status: 201 });
      return made.body;
    },

    async get(id: string): Promise<SubscriptionShown> {
      return (await call<SubscriptionShown>('GET', `/${id}`)).body;
    },

    /** The counts of a subscription, and whether each change that matched is in one of them. */
    async counts(id: string) {
      const { matched, delivered, skipped, dropped, pending, parked } = (await call<SubscriptionShown>('GET', `/${id}`))
        .body;
      const sum = delivered + skipped + dropped + pending + parked;
      return { matched, delivered, skipped, dropped, pending, parked, isWhole: sum === matched };
    },
  };
}

/** Records an update of each of these documents, in their order, in one transaction. */
export async function recordUpdates(
  { context: { db } }: TestServer,
  tenant: string,
  documents: readonly string[],
  { at = Date.now(), paths = '{"n":{"before":1.10,"after":1.20}}' }: { at?: number; paths?: string } = {},
): Promise<void> {
  const changes = documents.map((entityId) =>
    changeOf({ identity: randomBytes(16), at, entity: 'product', entityId, paths }),
  );
  await inTransaction(db, (transaction) => recordChanges(transaction, tenant, changes, Date.now(), { way: 'service' }));
}

/** The parsed body of a delivery, whose signature two implementations of Standard Webhooks have checked. */
export function verified({ headers, body }: Received, secret: string): { type: string; data: { entityId: string } } {
  const webhookHeaders = {
    'webhook-id': String(headers['webhook-id']),
    'webhook-timestamp': String(headers['webhook-timestamp']),
    'webhook-signature': String(headers['webhook-signature']),
  };
  const parsed = new StandardWebhook(secret).verify(body, webhookHeaders);
  new SvixWebhook(secret).verify(body, webhookHeaders);
  return parsed as { type: string; data: { entityId: string } };
}

/** Lets time pass for a subscription: all moments that are kept of it move back by so many milliseconds. */
export async function passTime({ database: { pool } }: TestServer, id: string, milliseconds: number): Promise<void> {
  const back = (column: string) => `${column} = ${setBack(column, '$2::double precision / 1000')}`;
  const times = {
    delivery_waiting: ['due_at', 'parked_at'],
    subscription_state: ['due_at', 'rest_until', 'failing_since'],
  };
  for (const [table, columns] of Object.entries(times)) {
    await pool.query(`update ${table} set ${columns.map(back).join(', ')} where subscription = $1`, [id, milliseconds]);
  }
}

export const hour = 60 * 60 * 1000;
