import { JsonTape } from '../../core/json/tape.ts';
import type { BatchCounts } from '../../recording/batches/record-batch.ts';
import type { Change, Outcome } from '../../recording/change.ts';
import { maximumLineBytes } from '../../recording/lines.ts';
import { type ImportedLine, readImportLine } from '../../recording/mapping/import-line.ts';
import type { ValueRules } from '../../recording/mapping/mapping.ts';
import { Occurrences } from '../../recording/occurrences.ts';

/** Lines of an import by outcome, without blank lines. `read` is the sum of the others. */
export type ImportCounts = Omit<BatchCounts, 'ignored'>;

/** Limits of a batch; the bytes are approximate. */
const maxChanges = 2000;
const maxBytes = 8 * 1024 * 1024;
/** Approximate bytes of a change without its paths. */
const bytesOfChange = 200;

/** A tape that grew larger than this is replaced. */
const cellsToKeep = 4 * 1024 * 1024;

/** Reads lines into batches of changes, and counts the outcomes. */
export class LineBatch {
  readonly counts: ImportCounts = { read: 0, recorded: 0, unchanged: 0, duplicate: 0, expired: 0, rejected: 0 };
  readonly #rules: ReadonlyMap<string, ValueRules> | undefined;
  readonly #onRejected: (at: number, reason: string) => void;
  readonly #occurrences = new Occurrences();
  #tape = new JsonTape();
  #changes: Change[] = [];
  /** The line of each change. */
  #places: number[] = [];
  #bytes = 0;

  /** `rules`: masks and ignores by entity. A reason has no content of the line. */
  constructor(rules: ReadonlyMap<string, ValueRules> | undefined, onRejected: (at: number, reason: string) => void) {
    this.#rules = rules;
    this.#onRejected = onRejected;
  }

  get isEmpty(): boolean {
    return this.#changes.length === 0;
  }

  get isFull(): boolean {
    return this.#changes.length >= maxChanges || this.#bytes >= maxBytes;
  }

  /** Adds the next line, undefined if it is too long. Returns its change, if it is one. */
  take(bytes: Buffer | undefined, at: number): Extract<ImportedLine, { kind: 'change' }> | undefined {
    this.counts.read += 1;
    if (bytes === undefined) {
      this.#reject(at, `is longer than ${maximumLineBytes / 1024 / 1024} MiB`);
      return undefined;
    }
    const line = readImportLine(bytes, this.#tape, this.#occurrences, this.#rules);
    if (this.#tape.cells.length > cellsToKeep) this.#tape = new JsonTape();
    if (line.kind === 'change') {
      this.#changes.push(line.change);
      this.#places.push(at);
      this.#bytes += line.change.paths.length + bytesOfChange;
      return line;
    }
    if (line.kind === 'rejected') this.#reject(at, line.reason);
    else this.counts.unchanged += 1;
    return undefined;
  }

  /** Starts the next batch. Returns the changes of this one, and a function that counts their outcomes. */
  next(): { changes: readonly Change[]; settle: (outcomes: readonly Outcome[]) => void } {
    const [changes, places] = [this.#changes, this.#places];
    this.#changes = [];
    this.#places = [];
    this.#bytes = 0;
    const settle = (outcomes: readonly Outcome[]) => {
      for (const [index, at] of places.entries()) {
        const outcome = outcomes[index];
        if (outcome === undefined) throw new Error('a recorder answered fewer outcomes than it was given changes');
        if (outcome === 'conflict') this.#reject(at, 'has the id and time of another change with other content');
        else this.counts[outcome] += 1;
      }
    };
    return { changes, settle };
  }

  close(): void {
    this.#occurrences.close();
  }

  #reject(at: number, reason: string): void {
    this.counts.rejected += 1;
    this.#onRejected(at, reason);
  }
}
