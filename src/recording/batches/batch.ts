import type { DatabaseTransaction } from '../../postgres/database.ts';
import type { Change, RecordedBy } from '../change.ts';

/**
 * A change as its reader passes it on. `rejected`: it can never be recorded. `ignored`: the mapping leaves it out.
 * `unchanged`: it is an update that changes nothing.
 */
export type GivenChange =
  | { kind: 'change'; change: Change; source: ChangeSource }
  | { kind: 'unchanged' }
  | { kind: 'ignored' }
  | { kind: 'rejected'; reason: string; source: ChangeSource };

/** Where a change comes from, and what Annals keeps of it where it can never be recorded. */
export interface ChangeSource {
  /** A place in the source for people: a line, an index in a request, an LSN. Without content of the change. */
  position: string;
  /**
   * The change as a line of an import, masked already, for `annals rejected retry`. Called only where the change is rejected. Undefined
   * where the change cannot be read so far that its masks could be applied; then Annals keeps the reason alone.
   */
  line(): string | undefined;
  /** The 16 bytes that identify the change where its line has no `id`. */
  identity?: Uint8Array | undefined;
  /** Whether the line is a row as `rejectedRowText` writes it. Of what a client sends nothing else is taken for a row. */
  isRow?: boolean;
}

/** The changes of one tenant that one transaction records, in their order. */
export interface GivenBatch {
  /** As the source names it. It may be unknown or malformed: then every change is rejected and kept without a tenant. */
  tenant: string;
  recordedBy: RecordedBy;
  /** The id of the client that sent them, whose rights decide when they are tried again. */
  client?: string | undefined;
  changes: readonly GivenChange[];
  /** Whether one rejected change refuses the whole batch. */
  strict: boolean;
}

/** How many changes of a batch ended in which way. All other members add up to `read`. */
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
  /** Its place in the batch, from 0. */
  index: number;
  /** Names members and positions, never content. */
  reason: string;
}

export interface TakenBatch {
  counts: BatchCounts;
  rejected: readonly RejectedChange[];
}

/**
 * Records a batch in the caller's transaction by the rules that hold for every way, and keeps what can never be recorded in
 * `change_rejected`. Throws `RejectedChangesError` where the batch is strict or the tenant keeps too many already; the caller must
 * then roll back. The caller must repeat a transaction that loses a race (`inTransaction` with `retries: maxRetries`).
 */
export type TakeChanges = (transaction: DatabaseTransaction, batch: GivenBatch) => Promise<TakenBatch>;

/** Changes of the batch can never be recorded, and the batch must not go on past them. */
export class RejectedChangesError extends Error {
  readonly rejected: readonly RejectedChange[];
  /** Whether the tenant keeps as many rejected changes as it may; otherwise the batch was strict. */
  readonly isFull: boolean;

  constructor(rejected: readonly RejectedChange[], isFull: boolean) {
    super(isFull ? 'the tenant keeps too many rejected changes' : `${rejected.length} changes were rejected`);
    this.name = 'RejectedChangesError';
    this.rejected = rejected;
    this.isFull = isFull;
  }
}
