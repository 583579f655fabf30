import { AnnalsError } from '../../core/errors.ts';
import type { InputBound } from '../../providers/call-ledger.ts';
import { formatLimits } from './limits.ts';

/** A validated request, ready to pass on. */
export interface PassedRequest {
  readonly stream: boolean;
  readonly user: string | undefined;
  /** Whom metadata names, who need not be the end user. */
  readonly metadataUser?: string | undefined;
  readonly maxTokens: number | undefined;
  /** How many answers it asks for. */
  readonly answers: number;
  /** The distinct types of hosted tools, which are left out because they would bypass the quota and the records. */
  readonly leftOut: readonly string[];
  /** Members at the top level that Annals does not know. */
  readonly unknown: readonly string[];
  /** Upper bound of the input; undefined if unknown, because of a file or audio. */
  readonly inputBound: InputBound | undefined;
  /** Whether a member changes the price of tokens. */
  readonly isUnpriced: boolean;
  /** Whether it may write to a cache that keeps for an hour. Left out: unknown. */
  readonly mayCacheForHour?: boolean;
  /** Whether the client did not ask for the figures of a stream. */
  readonly hidesUsage: boolean;
  /** What to send, with this cap of output tokens; undefined: with the client's own. */
  bytes(maxTokens: number | undefined): Uint8Array<ArrayBuffer>;
}

/** Bytes: the JSON around texts is longer than what a vendor adds to them. */
export const perCall = 64;

/** Throws payload_too_large for texts of more bytes together. */
export function checkTextBytes(bytes: number): void {
  if (bytes <= formatLimits.textBytes) return;
  throw new AnnalsError(
    'payload_too_large',
    `The texts of a request must have at most ${formatLimits.textBytes} bytes together.`,
  );
}
