import type { CallEnd, CallStart } from './call-record.ts';
import type { JsonFormat, Message, Tool } from './port.ts';

/** Where calls are reserved, settled and recorded. */
export interface CallLedger {
  /**
   * Reserves the most that a call can use: of the quota with the shared token, and of budgets. Returns undefined for an
   * own key without a budget. Waits where the call fits only after others have settled. Throws 403 quota_exceeded
   * where it can never fit, 503 after 60 seconds, 400 where a budget cannot bound the call's cost.
   */
  reserve(request: QuotaRequest): Promise<Reservation | undefined>;
  /**
   * A reservation that `send` makes as the call leaves, in one step. Undefined where the call must reserve first. If
   * `send` resolves to false, nothing is reserved: use `reserve`.
   */
  reserveOnSend(request: QuotaRequest): Reservation | undefined;
  /**
   * Writes the record of a call without a reservation and counts its tokens, in one transaction with other calls of the
   * tenant. Does not throw: failed database writes are retried.
   */
  record(tenant: string, call: CallStart, end: CallEnd): Promise<void>;
  inputBound(messages: readonly Message[], tools?: readonly Tool[], format?: JsonFormat): InputBound;
}

/** Upper bound of a call's input: tokens without images, and the number of images. */
export interface InputBound {
  readonly tokens: number;
  readonly images: number;
  /** Whether vendors add nothing to it. */
  readonly isExact?: boolean;
}

export interface QuotaRequest {
  readonly tenant: string;
  /** The start of the call's record. */
  readonly call: CallStart;
  /** Upper bound of the input; undefined where it is unknown. */
  readonly input: InputBound | undefined;
  /** With an own key: whether the tenant has budgets, read since the request arrived. Left out: the ledger reads it. */
  readonly hasBudgets?: boolean | undefined;
  /** Requested max. output tokens. */
  readonly output: number;
  /** The max. duration of the call in milliseconds. A sent reservation lives longer. */
  readonly maxDuration: number;
  /** Cancels the wait. */
  readonly signal?: AbortSignal | undefined;
}

export interface Reservation {
  /** The max. output tokens that the call must send: fewer than requested near the end of the quota. */
  readonly output: number;
  /**
   * Call it right before the call leaves. False: the reservation was released, so the call must not leave. An unsent
   * reservation is released 30 seconds after its process died; a sent one is charged.
   */
  send(): Promise<boolean>;
  /**
   * Replaces the reserved tokens with the used ones and writes the call's record. `none` returns all of them; `unknown`
   * or a missing figure charges the reserved tokens. Does not throw: failed database writes are retried. Returns the
   * charged tokens.
   */
  settle(end: CallEnd): Promise<Tokens>;
}

export interface Tokens {
  readonly input: number;
  readonly output: number;
}
