import type { Readable } from 'node:stream';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import { JsonTape } from '../../core/json/tape.ts';
import type { Change, Outcome, RecordBatch } from '../../recording/change.ts';
import { decompressedChunks } from '../../recording/decompress.ts';
import { type Line, LineSplitter, maximumLineBytes } from '../../recording/lines.ts';
import { readImportLine } from '../../recording/mapping/import-line.ts';
import type { ValueRules } from '../../recording/mapping/mapping.ts';
import { Occurrences } from '../../recording/occurrences.ts';

/** How many lines of an import ended in which way. Blank lines do not count. All other members add up to `read`. */
export interface ImportCounts {
  read: number;
  recorded: number;
  unchanged: number;
  duplicate: number;
  expired: number;
  rejected: number;
}

export interface ImportOptions {
  /** NDJSON, plain or compressed with gzip or Zstandard. */
  source: Readable;
  record: RecordBatch;
  /** What is masked and left out, by entity. */
  rules?: ReadonlyMap<string, ValueRules> | undefined;
  /** Called with the 1-based number of a line and the reason, which holds nothing of the line's content. */
  onRejected: (line: number, reason: string) => void;
  onProgress?: (counts: Readonly<ImportCounts>) => void;
  /** When it aborts, the import ends after the batch that is being recorded. */
  signal?: AbortSignal;
}

/** The import broke off before the end of its source. `counts` says what was done before. */
export class ImportStoppedError extends Error {
  readonly counts: ImportCounts;

  constructor(message: string, counts: ImportCounts, cause: unknown) {
    super(message, { cause });
    this.name = 'ImportStoppedError';
    this.counts = counts;
  }
}

/** A batch is recorded when it has this many changes, or about this many bytes. */
const changesOfBatch = 2000;
const bytesOfBatch = 8 * 1024 * 1024;
/** Roughly the bytes of a change beside its paths. */
const bytesOfChange = 200;

/** Milliseconds without input after which the changes so far are recorded. */
const flushAfter = 500;

/** A tape that a long line made larger than this is dropped. The next line gets a new one. */
const cellsToKeep = 4 * 1024 * 1024;

/**
 * Records the changes of an NDJSON source (contract 6), in memory that does not grow with the source. It reads the next batch
 * while it records one. It never records two at once, so of two lines with one identity the first counts. Throws
 * `ImportStoppedError` where the source is damaged, where recording fails, or on the signal. What was recorded until then
 * stays, and the same import may run again.
 *
 * @example
 * const counts = await importChanges({ source: process.stdin, record, onRejected: (line, reason) => console.error(line, reason) });
 */
export async function importChanges(options: ImportOptions): Promise<ImportCounts> {
  const run = new ImportRun(options);
  try {
    return await run.toEnd();
  } finally {
    run.close();
  }
}

class ImportRun {
  readonly #options: ImportOptions;
  readonly #counts: ImportCounts = { read: 0, recorded: 0, unchanged: 0, duplicate: 0, expired: 0, rejected: 0 };
  readonly #occurrences = new Occurrences();
  #tape = new JsonTape();
  #batch: Change[] = [];
  /** The number of the line that each change of the batch came from. */
  #lines: number[] = [];
  #bytes = 0;
  #recording: Promise<void> = Promise.resolve();

  constructor(options: ImportOptions) {
    this.#options = options;
  }

  async toEnd(): Promise<ImportCounts> {
    const { source, signal, onProgress } = this.#options;
    const stop = () => source.destroy(new Error('interrupted'));
    signal?.addEventListener('abort', stop);
    if (signal?.aborted === true) stop();
    try {
      const damage = await this.#readAll(decompressedChunks(source));
      await this.#flush();
      await this.#recording;
      onProgress?.(this.#counts);
      if (damage !== undefined) throw this.#stopped('the input could not be read to its end', damage);
      return this.#counts;
    } finally {
      signal?.removeEventListener('abort', stop);
      source.destroy();
    }
  }

  close(): void {
    this.#occurrences.close();
  }

  /** Takes all lines. Returns the error that ended reading, if there was one. It does not count the line in which it broke off. */
  async #readAll(chunks: AsyncGenerator<Buffer>): Promise<Error | undefined> {
    const splitter = new LineSplitter();
    try {
      for (;;) {
        const next = nextChunk(chunks);
        if (this.#batch.length > 0 && (await isQuiet(next))) {
          // Changes that have come through a pipe do not wait for more input.
          await this.#flush();
          await this.#recording;
          this.#options.onProgress?.(this.#counts);
        }
        const chunk = await next;
        if (chunk instanceof Error) return chunk;
        await this.#takeAll(chunk === undefined ? splitter.end() : splitter.split(chunk));
        this.#options.onProgress?.(this.#counts);
        if (chunk === undefined) return undefined;
        // The recording of the last batch continues here.
        await setImmediate();
      }
    } finally {
      await chunks.return(undefined);
    }
  }

  async #takeAll(lines: Iterable<Line>): Promise<void> {
    for (const line of lines) {
      this.#take(line);
      if (this.#batch.length >= changesOfBatch || this.#bytes >= bytesOfBatch) await this.#flush();
    }
  }

  #take({ number, bytes }: Line): void {
    this.#counts.read += 1;
    if (bytes === undefined) {
      this.#reject(number, `is longer than ${maximumLineBytes / 1024 / 1024} MiB`);
      return;
    }
    const line = readImportLine(bytes, this.#tape, this.#occurrences, this.#options.rules);
    if (this.#tape.cells.length > cellsToKeep) this.#tape = new JsonTape();
    if (line.kind === 'rejected') this.#reject(number, line.reason);
    else if (line.kind === 'unchanged') this.#counts.unchanged += 1;
    else {
      this.#batch.push(line.change);
      this.#lines.push(number);
      this.#bytes += line.change.paths.length + bytesOfChange;
    }
  }

  #reject(line: number, reason: string): void {
    this.#counts.rejected += 1;
    this.#options.onRejected(line, reason);
  }

  /** Records the batch after the one before it. */
  async #flush(): Promise<void> {
    const { record } = this.#options;
    const batch = this.#batch;
    const prepared = batch.length === 0 ? undefined : (record.prepare?.(batch) ?? (() => record(batch)));
    await this.#recording;
    if (prepared === undefined) return;
    this.#recording = this.#record(prepared, this.#lines);
    // The next batch awaits this promise and gets the error. Until then it is no unhandled rejection.
    this.#recording.catch(() => {});
    this.#batch = [];
    this.#lines = [];
    this.#bytes = 0;
  }

  async #record(record: () => Promise<readonly Outcome[]>, lines: readonly number[]): Promise<void> {
    const outcomes = await record().catch((error: unknown) => {
      throw this.#stopped('recording failed', error);
    });
    for (const [index, line] of lines.entries()) {
      const outcome = outcomes[index];
      if (outcome === undefined) throw new Error('a recorder answered fewer outcomes than it was given changes');
      if (outcome === 'conflict') this.#reject(line, 'has the id and time of another change with other content');
      else this.#counts[outcome] += 1;
    }
  }

  #stopped(what: string, cause: unknown): ImportStoppedError {
    const why = cause instanceof Error ? cause.message : String(cause);
    return new ImportStoppedError(`${what}: ${why}`, this.#counts, cause);
  }
}

/** Whether no input has come for the time after which the changes so far are recorded. */
async function isQuiet(next: Promise<unknown>): Promise<boolean> {
  const stop = new AbortController();
  const quiet = sleep(flushAfter, true, { signal: stop.signal }).catch(() => false);
  const was = await Promise.race([quiet, next.then(() => false)]);
  stop.abort();
  return was;
}

async function nextChunk(chunks: AsyncGenerator<Buffer>): Promise<Buffer | undefined | Error> {
  try {
    const { value, done } = await chunks.next();
    return done === true ? undefined : value;
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}
