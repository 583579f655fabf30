import type { Generated } from 'kysely';

interface SubscriptionTable {
  tenant: string;
  id: string;
  version: number;
  /** What clients wrote, as JSON text, with masks in place of secrets. */
  document: string;
  /** The document as jsonb, for filters and sorting. */
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

/** `active` and `retrying` subscriptions are running. */
export type SubscriptionState = 'active' | 'retrying' | 'paused' | 'suspended';

/**
 * Paused: by a client; not enabled; its maker lost the scopes; in a restored backup; its position was lost in a
 * restore. Suspended: the target is gone (410), or failed for days.
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
  reason: string | null;
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
