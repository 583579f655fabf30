import type { DeliveredChange } from '../changes.ts';
import type { Exchange } from '../targets/guarded-http.ts';
import type { DeliveryResult, Sending, Target } from '../targets/target.ts';

/** Changes sent together. Retries have the same bounds and are the same batch. */
export interface DeliveredBatch {
  /** Positions of its first and last change. */
  readonly first: number;
  readonly last: number;
  readonly changes: number;
  /** The UTC day on which it began. */
  readonly day: string;
  /** The idempotency key: the same for each attempt, unique per batch. */
  readonly key: string;
  /** The uncompressed content. Empty if retention has dropped all of its changes. */
  readonly text: string;
  /** SHA-256 of the text, in hexadecimal digits. */
  readonly sha256: string;
  /** The hashes of all texts sent as this batch: retention, erasure and a changed subscription change the text. */
  readonly hashes: readonly string[];
  /** The receipt of an accepted attempt that is not acknowledged yet. */
  readonly receipt: string | undefined;
}

export interface BatchResult extends Omit<DeliveryResult, 'outcome'> {
  /** `taken`: accepted; the target reports later, for the receipt, whether the batch was stored. */
  readonly outcome: DeliveryResult['outcome'] | 'taken';
  readonly receipt?: string;
  /** The content of an object that already existed. */
  readonly found?: { readonly sha256: string; readonly changes: number };
  /** Nothing of the batch is left to send, and no earlier attempt arrived. */
  readonly isAbsent?: boolean;
}

/** The list of a subscription's objects of a UTC day. */
export interface DayManifest {
  readonly day: string;
  readonly changes: number;
  readonly text: string;
  /** SHA-256 of the text, in hexadecimal digits. */
  readonly sha256: string;
}

/** A target that accepts batches. */
export interface BatchTarget extends Target {
  /** The text of each change, in order. */
  textsOf(sending: Sending, changes: readonly DeliveredChange[]): string[];
  join(sending: Sending, texts: readonly string[]): string;
  deliverBatch(sending: Sending, batch: DeliveredBatch): Promise<BatchResult>;
  /** For object stores: object keys and manifests. */
  readonly objects?: {
    keyOf(sending: Sending, batch: Pick<DeliveredBatch, 'day' | 'first' | 'last'>): string;
    deliverManifest(sending: Sending, manifest: DayManifest): Promise<BatchResult>;
  };
}

/** A result with another outcome and error message. */
export function resultWith({ result }: Exchange, outcome: BatchResult['outcome'], error?: string): BatchResult {
  const { error: _, ...rest } = result;
  return { ...rest, outcome, ...(error !== undefined && { error }) };
}

/** A test counts as delivered once the target has accepted it. */
export function resultOfTest({ outcome, ...result }: BatchResult): DeliveryResult {
  return { ...result, outcome: outcome === 'taken' ? 'delivered' : outcome };
}
