import type { DatabaseTransaction } from '../../postgres/database.ts';
import type { Change, RecordedBy } from '../change.ts';

/**
 * A change from a reader. `rejected`: it can never be recorded. `ignored`: excluded by the mapping. `unchanged`: an
 * update without changes.
 */
export type IncomingChange =
  | { kind: 'change'; change: Change; source: ChangeSource }
  | { kind: 'unchanged' }
  | { kind: 'ignored' }
  | { kind: 'rejected'; reason: string; source: ChangeSource };

/** The source of a change, and what Annals stores of it if it is rejected. */
export interface ChangeSource {
  /** The position in the source, for people: a line, an index in a request, an LSN. Without content of the change. */
  position: string;
  /**
   * The change as a masked import line, for `annals rejected retry`. Called only if the change is rejected. Undefined
   * if masks cannot be applied to it; then only the reason is stored.
   */
  line(): string | undefined;
  /** The 16-byte identity of a change whose line has no `id`. */
  identity?: Uint8Array | undefined;
  /** Whether the line is a row written by `rejectedRowText`. A line from a client is never treated as one otherwise. */
  isRow?: boolean;
}

/** The changes of a tenant to record in one transaction, in order. */
export interface IncomingBatch {
  /** As the source names it. If it is unknown or malformed, every change is rejected and stored without a tenant. */
  tenant: string;
  recordedBy: RecordedBy;
  /** The id of the client that sent them. Its rights apply to retries. */
  client?: string | undefined;
  changes: readonly IncomingChange[];
  /** Whether one rejected change fails the whole batch. */
  strict: boolean;
}

/** Changes of a batch by outcome. `read` is the sum of the others. */
export interface BatchCounts {
  read: number;
  recorded: number;
  unchanged: number;
  duplicate: number;
  expired: number;
  ignored: number;
  rejected: number;
}

export function noCounts(): BatchCounts {
  return { read: 0, recorded: 0, unchanged: 0, duplicate: 0, expired: 0, ignored: 0, rejected: 0 };
}

export function addCounts(sum: BatchCounts, counts: Partial<BatchCounts>): void {
  for (const name of Object.keys(sum) as (keyof BatchCounts)[]) sum[name] += counts[name] ?? 0;
}

export interface RejectedChange {
  /** 0-based index in the batch. */
  index: number;
  /** Names members and positions, never content. */
  reason: string;
}

export interface RecordedBatch {
  counts: BatchCounts;
  rejected: readonly RejectedChange[];
}

/**
 * Records a batch in the caller's transaction, and stores rejected changes in `change_rejected`. Throws
 * `RejectedChangesError` if the batch is strict or the tenant has too many; the caller must then roll back. The caller
 * must retry serialization failures (`inTransaction` with `retries: maxRetries`).
 */
export type RecordBatch = (transaction: DatabaseTransaction, batch: IncomingBatch) => Promise<RecordedBatch>;

/** The batch has rejected changes and must not continue. */
export class RejectedChangesError extends Error {
  readonly rejected: readonly RejectedChange[];
  /** Whether the tenant reached its limit of rejected changes; otherwise the batch was strict. */
  readonly isFull: boolean;

  constructor(rejected: readonly RejectedChange[], isFull: boolean) {
    super(isFull ? 'the tenant keeps too many rejected changes' : `${rejected.length} changes were rejected`);
    this.name = 'RejectedChangesError';
    this.rejected = rejected;
    this.isFull = isFull;
  }
}
