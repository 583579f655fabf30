import type { Readable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import type { Change, Outcome, RecordBatch } from './change.ts';
import { decompressedChunks } from './decompress.ts';
import { readImportLine } from './import-line.ts';
import { JsonTape } from './json-tape.ts';
import { type Line, LineSplitter, maximumLineBytes } from './lines.ts';
import { Occurrences } from './occurrences.ts';

/** What became of the lines of an import that are not blank; all but `read` add up to `read`. */
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
  /** Is told the number of a line, from 1, and what is wrong with it, in words that hold nothing of its content. */
  onRejected: (line: number, reason: string) => void;
  onProgress?: (counts: Readonly<ImportCounts>) => void;
  /** When it aborts, the import ends after the batch that is being recorded. */
  signal?: AbortSignal;
}

/** The import could not go on to the end of its source. `counts` tells what was done before. */
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
/** What a change takes besides its paths, roughly. */
const bytesOfChange = 200;

/** A tape that one long line made larger than this is not kept for the next. */
const cellsToKeep = 4 * 1024 * 1024;

/**
 * Records the changes of an NDJSON source (contract 6), in memory that does not grow with it. While one batch is being
 * recorded the next one is read; never are two recorded at once, so that of two lines with one identity the first
 * counts. Throws `ImportStoppedError` where the source is damaged, where recording fails, or on the signal; what was
 * recorded until then stays, and the same import can simply be run again.
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

  /** Takes all lines; returns what kept it from reading on, if anything did. The line it broke off in is none. */
  async #readAll(chunks: AsyncGenerator<Buffer>): Promise<Error | undefined> {
    const splitter = new LineSplitter();
    try {
      for (;;) {
        const chunk = await nextChunk(chunks);
        if (chunk instanceof Error) return chunk;
        await this.#takeAll(chunk === undefined ? splitter.end() : splitter.split(chunk));
        this.#options.onProgress?.(this.#counts);
        if (chunk === undefined) return undefined;
        // Lets the recording of the last batch go on.
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
    const line = readImportLine(bytes, this.#tape, this.#occurrences);
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

  /** Hands the batch to be recorded once the one before it is. */
  async #flush(): Promise<void> {
    const { record } = this.#options;
    const batch = this.#batch;
    const prepared = batch.length === 0 ? undefined : (record.prepare?.(batch) ?? (() => record(batch)));
    await this.#recording;
    if (prepared === undefined) return;
    this.#recording = this.#record(prepared, this.#lines);
    // Whoever waits for it is told; until then it is no unhandled rejection.
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

async function nextChunk(chunks: AsyncGenerator<Buffer>): Promise<Buffer | undefined | Error> {
  try {
    const { value, done } = await chunks.next();
    return done === true ? undefined : value;
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}
