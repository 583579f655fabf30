import type { Generated } from 'kysely';

interface SubscriptionTable {
  tenant: string;
  id: string;
  version: number;
  /** What clients wrote, as JSON text, with masks in place of secrets. */
  document: string;
  /** The same as jsonb, for filters and sorting. */
  fields: string;
  sealed: Uint8Array | null;
  maker: string;
}

interface SubscriptionStateTable {
  tenant: string;
  subscription: string;
  state: SubscriptionState;
  reason: PauseReason | null;
  position: number;
  fingerprint: number;
  cursor: string;
  due_at: Date | null;
  rest_until: Date | null;
  unreachable: Generated<number>;
  slowed: Generated<number>;
  failing_since: Date | null;
  holder: string | null;
  held_until: Date | null;
  matched: Generated<number>;
  delivered: Generated<number>;
  skipped: Generated<number>;
  expired: Generated<number>;
  dropped: Generated<number>;
  waiting: Generated<number>;
  parked: Generated<number>;
  attempts: Generated<number>;
  last_delivery: string | null;
  last_error: string | null;
}

/** Only `active` and `retrying` ones are delivered. */
export type SubscriptionState = 'active' | 'retrying' | 'paused' | 'suspended';

/**
 * Why a subscription is paused: by a client, because it is not enabled, its maker may not any more, a backup was restored, or its place is
 * not there any more in a database that was restored. Why it is suspended: the target is gone (410), or nothing but failures for days.
 */
export type PauseReason = 'client' | 'disabled' | 'maker' | 'backup' | 'restored' | 'gone' | 'failures';

interface SubscriptionReplayTable {
  tenant: string;
  subscription: string;
  position: number;
  fingerprint: number;
  until: number;
}

interface DeliveryWaitingTable {
  tenant: string;
  subscription: string;
  position: number;
  fingerprint: number;
  document: string;
  attempts: number;
  due_at: Date;
  parked_at: Date | null;
}

interface DeliveryAttemptTable {
  tenant: string;
  subscription: string;
  number: number;
  at: Date;
  kind: string;
  outcome: string;
  first_position: number | null;
  last_position: number | null;
  status: number | null;
  duration: number | null;
  error: string | null;
  answer: string | null;
}

declare module '../../postgres/tables.ts' {
  interface Tables {
    subscription: SubscriptionTable;
    subscription_state: SubscriptionStateTable;
    subscription_replay: SubscriptionReplayTable;
    delivery_waiting: DeliveryWaitingTable;
    delivery_attempt: DeliveryAttemptTable;
  }
}
