import type { BegunCall, EndOfCall } from './call-record.ts';
import type { JsonFormat, Message, Tool } from './port.ts';

/** Where calls are reserved, settled and recorded. */
export interface CallLedger {
  /**
   * Reserves what a call uses at most: of the quota with the shared token, and of budgets. Returns undefined for a call with an own
   * key to which no budget applies: it reserves nothing. Waits where the call fits only after others have settled. Throws 403
   * quota_exceeded where it can never fit, 503 after 60 seconds, and 400 where a budget cannot tell what the call costs at most.
   */
  reserve(request: QuotaRequest): Promise<Reservation | undefined>;
  /**
   * A reservation that `send` makes when the call leaves, in one step. Undefined where the call has to reserve before. If `send`
   * resolves to false, nothing is reserved, and `reserve` decides.
   */
  reserveLeaving(request: QuotaRequest): Reservation | undefined;
  /**
   * Writes the record of a call that reserved nothing, and counts its tokens, in one transaction with other calls of the tenant. Does
   * not throw: a failed write to the database is tried again.
   */
  record(tenant: string, call: BegunCall, end: EndOfCall): Promise<void>;
  inputBound(messages: readonly Message[], tools?: readonly Tool[], format?: JsonFormat): InputBound;
}

/** Upper bound of a call's input: tokens without images, and how many images there are. */
export interface InputBound {
  readonly tokens: number;
  readonly images: number;
}

export interface QuotaRequest {
  readonly tenant: string;
  /** The begin of the call's record. */
  readonly call: BegunCall;
  /** Upper bound of the input; undefined where nobody can tell. */
  readonly input: InputBound | undefined;
  /** Of a call with an own key: whether the tenant has budgets, read since the request came. Left out: the ledger asks. */
  readonly hasBudgets?: boolean | undefined;
  /** The max. output tokens that the caller wants. */
  readonly output: number;
  /** The max. duration of the call in milliseconds. A reservation that was sent lives longer. */
  readonly maxDuration: number;
  /** Cancels the wait. */
  readonly signal?: AbortSignal | undefined;
}

export interface Reservation {
  /** The max. output tokens that the call has to send. Near the end of the quota it is less than the caller wants. */
  readonly output: number;
  /**
   * To be called when the call is about to leave. False: it must not, because the reservation was given back meanwhile. Until
   * then the reservation is given back 30 seconds after its process died; from then on it is charged.
   */
  send(): Promise<boolean>;
  /**
   * Replaces the reserved tokens with the used ones, and writes the call's record with them. `none` returns all of them. `unknown`
   * and a missing figure charge the reserved tokens. Does not throw: a failed write to the database is tried again. Returns what
   * is charged.
   */
  settle(end: EndOfCall): Promise<Tokens>;
}

export interface Tokens {
  readonly input: number;
  readonly output: number;
}
