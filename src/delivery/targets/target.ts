import type { TSchema } from 'typebox';
import type { ErrorDetail } from '../../core/errors.ts';
import type { StopSignal } from '../../core/stop-signal.ts';
import type { DeliveredChange } from '../changes.ts';

/** The members of a `target` as a client writes them, secrets included or masked. */
export type TargetMembers = Readonly<Record<string, unknown>> & { readonly type: string };

/**
 * `refused`: no connection, or the address is refused. `failed`: the target did not accept it. `suspended`: the target
 * is gone (410), so the subscription stops.
 */
export type DeliveryOutcome = 'delivered' | 'failed' | 'refused' | 'suspended';

/** Why there was no answer. */
export const failureReasons = ['no_connection', 'tls', 'timeout', 'closed', 'upgrade'] as const;

/** A request as it was sent, with masks in place of secrets. */
export interface ShownRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** The result of an attempt, without the members that are unknown. */
export interface DeliveryResult {
  readonly outcome: DeliveryOutcome;
  readonly status?: number;
  /** Milliseconds. */
  readonly duration?: number;
  /** Without an answer. */
  readonly reason?: (typeof failureReasons)[number];
  /** Of a test. */
  readonly request?: ShownRequest;
  /** For the subscription's owner. Contains no secrets. */
  readonly error?: string;
  /** `Retry-After` in milliseconds. */
  readonly retryAfter?: number;
  /** Whether the target is overloaded, so that concurrency drops. */
  readonly isBusy?: boolean;
  /** The first KiB of the answer. */
  readonly answer?: string;
}

/** The input of every attempt of a subscription. */
export interface Sending {
  readonly tenant: string;
  readonly subscription: string;
  /** Of the subscription. */
  readonly name: string;
  /** The members of the target, secrets included. */
  readonly target: TargetMembers;
  /** Signing keys, newest first. */
  readonly keys: readonly StoredKey[];
  /** Paths of entries whose values are masked. */
  readonly hide: readonly string[];
  readonly signal: StopSignal;
}

/** A key that Annals generated. `until`: when it expires, in milliseconds; without it, never. */
export interface StoredKey {
  readonly signing: string;
  readonly secret: string;
  readonly until?: number;
}

/** A target type. */
export interface Target {
  readonly type: string;
  /** The schema of the members, including `type`. Rejects unknown members. */
  readonly schema: TSchema;
  /** Members stored sealed and shown masked: each a string, or an object of strings. */
  readonly secrets: readonly string[];
  /** The default `maxAge`, an ISO 8601 duration; undefined: any age. */
  readonly maxAge: string | undefined;
  /** Default values that responses show. */
  readonly defaults?: Readonly<Record<string, unknown>>;
  /** Whether replays are supported; default: true. */
  readonly isReplayed?: boolean;
  /** Whether the creation of the subscription itself is sent; default: no. */
  readonly receivesOwnCreation?: boolean;
  /** Whether erasures are sent (GDPR, Art. 19); default: true. */
  readonly receivesErasures?: boolean;
  /** The host that receives the secrets. When it changes, they must be re-entered. */
  hostOf(target: TargetMembers): string;
  /** Faults that the schema cannot express; fields begin with `target.`. */
  check(tenant: string, target: TargetMembers): readonly ErrorDetail[];
  /** Generates a key, with the members shown once to its maker. Missing if the target needs no key. */
  makeKey?(target: TargetMembers): { readonly key: StoredKey; readonly shown: Readonly<Record<string, string>> };
  /** Sends a test message that is marked as one. */
  test(sending: Sending): Promise<DeliveryResult>;
  deliverOne?(sending: Sending, change: DeliveredChange): Promise<DeliveryResult>;
  /** What `deliverOne` sends of a change at a time (milliseconds), or what `test` sends without one. */
  showRequest?(
    sending: Pick<Sending, 'tenant' | 'target' | 'hide'>,
    attempt: { readonly at: number; readonly change: DeliveredChange | undefined },
  ): Promise<ShownRequest>;
}
