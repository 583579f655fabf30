import { formatLsn, type Lsn, type Position } from './position.ts';
import type { Slot, SourceSystem } from './slot.ts';

/** Everything before this LSN is recorded. A partially recorded transaction is sent again. */
export function recordedUntil(position: Position): Lsn {
  return position.complete ? position.endLsn : position.commitLsn;
}

interface SourceState {
  readonly system: SourceSystem;
  readonly slot: Slot | undefined;
  readonly publication: 'missing' | 'altered' | 'whole';
}

/**
 * Why the source cannot send every change after the position; undefined if it can. Checked up front, because
 * `START_REPLICATION` reports no gap: it starts at the slot's own position.
 */
export function gapBetween(position: Position, { system, slot, publication }: SourceState): string | undefined {
  const name = position.slot;
  const until = recordedUntil(position);
  if (system.identifier !== position.systemIdentifier)
    return 'the source is another server than the one that was recorded';
  if (slot === undefined) return `the slot ${name} is missing`;
  if (slot.walStatus === 'lost' || slot.confirmedFlush === null) {
    return `the source has dropped the part of its log that the slot ${name} needs`;
  }
  if (publication === 'missing') return `the publication ${name} is missing`;
  if (publication === 'altered') return `the publication ${name} was altered and does not publish every change`;
  if (system.timeline < position.timeline) {
    return `the source is on timeline ${system.timeline}, and timeline ${position.timeline} was recorded`;
  }
  if (system.end < until) {
    return `the source's log ends at ${formatLsn(system.end)}, and it was recorded until ${formatLsn(until)}`;
  }
  if (slot.confirmedFlush > until) {
    return `the slot ${name} begins at ${formatLsn(slot.confirmedFlush)}, and the log was recorded until ${formatLsn(until)}`;
  }
  if (slot.confirmedFlush < until && position.xid === undefined) {
    return `the slot ${name} begins before the place where it was made`;
  }
  return undefined;
}

/** What identifies a transaction in the stream. */
export interface TransactionBegin {
  readonly commitLsn: Lsn;
  readonly xid: number;
  readonly committedAt: bigint;
}

/**
 * Compares the transactions that the source sends again with the last recorded one. A source restored from a backup has
 * another transaction at that position, or none.
 */
export class ResumeCheck {
  readonly #position: Position;
  #isVerified: boolean;

  constructor(position: Position, confirmedFlush: Lsn) {
    this.#position = position;
    this.#isVerified = position.complete && confirmedFlush === position.endLsn;
  }

  /** The number of row changes already recorded; `all` if the transaction is; or the gap. */
  recordedOf(begin: TransactionBegin): number | 'all' | { gap: string } {
    const { commitLsn, xid, committedAt, complete, changes } = this.#position;
    if (begin.commitLsn < commitLsn) return 'all';
    if (begin.commitLsn === commitLsn) {
      if (begin.xid !== xid || begin.committedAt !== committedAt) return { gap: this.#otherHistory() };
      this.#isVerified = true;
      return complete ? 'all' : changes;
    }
    return this.#isVerified ? 0 : { gap: this.#otherHistory() };
  }

  #otherHistory(): string {
    return `the source's log does not have the transaction at ${formatLsn(this.#position.commitLsn)} that was recorded last`;
  }
}
