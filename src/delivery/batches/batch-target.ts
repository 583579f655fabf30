import type { DeliveredChange } from '../changes.ts';
import type { Exchange } from '../targets/guarded-http.ts';
import type { DeliveryResult, Sending, Target } from '../targets/target.ts';

/** Some changes that go out together. The same bounds are the same batch, however often it is sent. */
export interface DeliveredBatch {
  /** Positions of its first and last change. */
  readonly first: number;
  readonly last: number;
  readonly changes: number;
  /** The UTC day on which it was begun. */
  readonly day: string;
  /** The same for each attempt, and another one for each other batch. */
  readonly key: string;
  /** What is sent, before it is compressed. Empty where retention has dropped all of its changes since. */
  readonly text: string;
  /** SHA-256 of the text, in hexadecimal digits. */
  readonly sha256: string;
  /** Of all texts that were or are sent as this batch: retention, erasure and a changed subscription make another text. */
  readonly hashes: readonly string[];
  /** Of an attempt that was taken and not acknowledged yet. */
  readonly receipt: string | undefined;
}

export interface BatchResult extends Omit<DeliveryResult, 'outcome'> {
  /** `taken`: the target will tell later, to whoever asks with the receipt, whether the batch has arrived. */
  readonly outcome: DeliveryResult['outcome'] | 'taken';
  readonly receipt?: string;
  /** Of an object that was there already: what it has. */
  readonly found?: { readonly sha256: string; readonly changes: number };
  /** Nothing of the batch is left to send, and no earlier attempt of it has arrived. */
  readonly isAbsent?: boolean;
}

/** What a bucket has of a subscription and a UTC day. */
export interface DayManifest {
  readonly day: string;
  readonly changes: number;
  readonly text: string;
  /** Of the text, in hexadecimal digits. */
  readonly sha256: string;
}

/** A kind of target that takes batches. */
export interface BatchTarget extends Target {
  /** The text of each change, in their order. */
  textsOf(sending: Sending, changes: readonly DeliveredChange[]): string[];
  join(sending: Sending, texts: readonly string[]): string;
  deliverBatch(sending: Sending, batch: DeliveredBatch): Promise<BatchResult>;
  /** Where objects are kept: their name, and the day's list of them. */
  readonly objects?: {
    keyOf(sending: Sending, batch: Pick<DeliveredBatch, 'day' | 'first' | 'last'>): string;
    deliverManifest(sending: Sending, manifest: DayManifest): Promise<BatchResult>;
  };
}

/** A result with another outcome, and words for the subscription's owner. */
export function resultWith({ result }: Exchange, outcome: BatchResult['outcome'], error?: string): BatchResult {
  const { error: _, ...others } = result;
  return { ...others, outcome, ...(error !== undefined && { error }) };
}

/** A sample counts as delivered when the target has taken it. */
export function resultOfTest({ outcome, ...result }: BatchResult): DeliveryResult {
  return { ...result, outcome: outcome === 'taken' ? 'delivered' : outcome };
}
