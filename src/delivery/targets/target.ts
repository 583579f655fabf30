import type { TSchema } from 'typebox';
import type { ErrorDetail } from '../../core/errors.ts';
import type { StopSignal } from '../../core/stop-signal.ts';
import type { DeliveredChange } from '../changes.ts';

/** The members of a `target` as a client writes them, secrets included or masked. */
export type TargetMembers = Readonly<Record<string, unknown>> & { readonly type: string };

/**
 * How an attempt ended. `refused`: there was no connection, or the address is refused, which reads the same. `failed`: the target
 * did not take it. `suspended`: the target wants no more, so the subscription stops.
 */
export type DeliveryOutcome = 'delivered' | 'failed' | 'refused' | 'suspended';

/** What an attempt showed. What is not known is left out. */
export interface DeliveryResult {
  readonly outcome: DeliveryOutcome;
  readonly status?: number;
  /** Milliseconds. */
  readonly duration?: number;
  /** For the subscription's owner, without anything secret. */
  readonly error?: string;
  /** Milliseconds that the target wants to be left alone. */
  readonly retryAfter?: number;
  /** Whether the target is too busy: it is sent less at once. */
  readonly isBusy?: boolean;
  /** The first KiB of the answer. */
  readonly answer?: string;
}

/** What every attempt of a subscription is made with. */
export interface Sending {
  readonly tenant: string;
  readonly subscription: string;
  /** The members of the target, with its secrets. */
  readonly target: TargetMembers;
  /** What the service keeps for the target besides: keys that sign, the newest first. */
  readonly keys: readonly StoredKey[];
  /** Paths of entries whose values are masked. */
  readonly hide: readonly string[];
  readonly signal: StopSignal;
}

/** A key that Annals has made for a subscription. `until`: when it ends, in milliseconds; left out: never. */
export interface StoredKey {
  readonly signing: string;
  readonly secret: string;
  readonly until?: number;
}

/** A kind of target. */
export interface Target {
  readonly type: string;
  /** The schema of the members, `type` among them. It takes no others. */
  readonly schema: TSchema;
  /** The sealed members: each is a string, or an object of strings. Answers show masks in place of these. */
  readonly secrets: readonly string[];
  /** What applies to the subscription without a `maxAge`: an ISO 8601 duration; undefined: any age. */
  readonly maxAge: string | undefined;
  /** Members that answers show where the client has left them out. */
  readonly defaults?: Readonly<Record<string, unknown>>;
  /** Whether changes can be sent once more; default: true. */
  readonly isReplayed?: boolean;
  /** Whether it is told which positions were erased (GDPR, Art. 19); default: true. */
  readonly tellsErasures?: boolean;
  /** Where secrets are sent to. For another host they have to be given anew. */
  hostOf(target: TargetMembers): string;
  /** What is wrong with the members that the schema cannot say; fields begin with `target.`. */
  check(tenant: string, target: TargetMembers): readonly ErrorDetail[];
  /** Makes a key for the subscription, with the members that its maker is shown once; left out: it needs none. */
  makeKey?(target: TargetMembers): { readonly key: StoredKey; readonly shown: Readonly<Record<string, string>> };
  /** Sends a sample that says so. */
  test(sending: Sending): Promise<DeliveryResult>;
  deliverOne?(sending: Sending, change: DeliveredChange): Promise<DeliveryResult>;
}
