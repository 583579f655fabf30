import { TimeSlice } from '../../core/fairness/time-slice.ts';
import { BatchTrace, type Tracer } from '../../core/trace.ts';
import type { SourceChange } from '../../recording/mapping/record-mapped.ts';
import { formatLsn, type Position } from './position.ts';
import { bytesOf, type Truncate } from './step.ts';
import type { CapturedTransaction } from './transaction-reader.ts';

/** Changes to record in one transaction, with the positions around them. */
export interface CapturedBatch {
  readonly changes: readonly SourceChange[];
  readonly from: Position;
  readonly to: Position;
  /** A truncate is a batch without changes. */
  readonly truncate: Truncate | undefined;
}

type RecordCaptured = (batch: CapturedBatch) => Promise<void>;

interface BatcherOptions {
  readonly record: RecordCaptured;
  readonly position: Position;
  /** Stops even within a large transaction. */
  readonly signal: AbortSignal;
  /** Called after a commit. */
  readonly onRecorded: (position: Position) => void;
  readonly tracer?: Tracer | undefined;
}

interface Traced {
  readonly batch: CapturedBatch;
  readonly trace: BatchTrace;
}

/** Limits of a batch; the bytes are approximate. */
const maxChanges = 2_000;
const maxBytes = 8 * 1024 * 1024;

/**
 * A batch with this many changes, or of this age in milliseconds, is recorded as soon as no other is being recorded.
 */
const minChanges = 500;
const maxAge = 20;

/** The time slice, in milliseconds, for collecting rows of a large transaction before recording continues. */
const sliceLength = 3;

/**
 * Collects the transactions of the source into batches, and records them one after another. Small transactions share a
 * batch; a large one has several. While one batch is recorded, the next one is collected, so at most two are in memory.
 */
export class Batcher {
  readonly #options: BatcherOptions;
  #changes: SourceChange[] = [];
  #bytes = 0;
  /** The position after all batches whose recording has started. */
  #started: Position;
  /** The position after the collected changes. */
  #collected: Position;
  #recording: Promise<void> = Promise.resolve();
  #isRecording = false;
  /** When the first collected change arrived, by performance.now(). */
  #since = 0;
  #trace: BatchTrace;

  constructor(options: BatcherOptions) {
    this.#options = options;
    this.#started = options.position;
    this.#collected = options.position;
    this.#trace = this.#beginCollecting();
  }

  /** Whether all added changes are recorded or being recorded. */
  get isEmpty(): boolean {
    return this.#collected === this.#started;
  }

  async add(transaction: CapturedTransaction): Promise<void> {
    const { begin, endLsn, at, rows } = transaction;
    const position = (changes: number, complete: boolean): Position => ({
      ...this.#collected,
      commitLsn: begin.commitLsn,
      endLsn,
      xid: begin.xid,
      committedAt: begin.committedAt,
      lastAt: at,
      changes,
      complete,
    });
    if (this.isEmpty) this.#trace = this.#beginCollecting();
    const slice = new TimeSlice(sliceLength);
    for (const step of transaction.steps()) {
      if (this.#options.signal.aborted) return;
      if (slice.isDue) await slice.rest();
      const place = `${formatLsn(begin.commitLsn)} row ${step.rows}`;
      for (const mapped of step.changes) this.#changes.push({ mapped, position: place, content: step.content });
      this.#bytes += bytesOf(step);
      this.#collected = position(step.rows, false);
      if (step.truncate !== undefined) {
        // A truncate deletes the documents that exist after all earlier changes, so these are recorded first.
        this.#collected = position(step.rows - 1, false);
        await this.#flush(undefined);
        this.#collected = position(step.rows, false);
        await this.#flush(step.truncate);
      } else if (this.#changes.length >= maxChanges || this.#bytes >= maxBytes) {
        await this.#flush(undefined);
      }
    }
    this.#collected = position(rows, true);
  }

  /** Starts to record the collected changes, unless a batch is being recorded. */
  flush(): void {
    if (!this.isEmpty && !this.#isRecording) this.#begin(this.#batch(undefined));
  }

  /** Starts to record once enough changes were collected, or have waited long enough. */
  flushIfDue(): void {
    if (this.#changes.length >= minChanges || performance.now() - this.#since >= maxAge) this.flush();
  }

  /** Records all collected changes, and waits for it. */
  async finish(): Promise<void> {
    if (!this.isEmpty) await this.#flush(undefined);
    await this.#recording;
  }

  /** Waits for the current recording, even if it fails. */
  async settled(): Promise<void> {
    await this.#recording.catch(() => {});
  }

  /** Starts to record the collected changes, after the previous batch. */
  async #flush(truncate: Truncate | undefined): Promise<void> {
    const batch = this.#batch(truncate);
    await this.#recording;
    this.#begin(batch);
  }

  #beginCollecting(): BatchTrace {
    this.#since = performance.now();
    const trace = new BatchTrace(this.#options.tracer, 'capture');
    // Rows are mapped as they are read.
    trace.begin('read and map');
    return trace;
  }

  #batch(truncate: Truncate | undefined): Traced {
    const trace = this.#trace;
    const batch: CapturedBatch = { changes: this.#changes, from: this.#started, to: this.#collected, truncate };
    this.#changes = [];
    this.#bytes = 0;
    this.#started = this.#collected;
    this.#trace = this.#beginCollecting();
    return { batch, trace };
  }

  #begin(traced: Traced): void {
    this.#isRecording = true;
    this.#recording = this.#record(traced);
    // The next batch awaits this promise and gets the error; until then it is not an unhandled rejection.
    this.#recording.catch(() => {});
  }

  async #record({ batch, trace }: Traced): Promise<void> {
    let hasFailed = true;
    try {
      await trace.run('record', () => this.#options.record(batch));
      hasFailed = false;
    } finally {
      // Most batcher of an idle source only move the position.
      const isEmpty = batch.changes.length === 0 && batch.truncate === undefined;
      if (!isEmpty) trace.end({ changes: batch.changes.length, hasFailed });
    }
    this.#isRecording = false;
    this.#options.onRecorded(batch.to);
  }
}
