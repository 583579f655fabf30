import type { Readable } from 'node:stream';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '../../core/errors.ts';
import type { Outcome, RecordChanges } from '../../recording/change.ts';
import { decompressedChunks } from '../../recording/decompress.ts';
import { type Line, LineSplitter } from '../../recording/lines.ts';
import type { ValueRules } from '../../recording/mapping/mapping.ts';
import { type ImportCounts, LineBatch } from './line-batch.ts';

interface ImportOptions {
  /** NDJSON, plain or compressed (gzip, Zstandard). */
  source: Readable;
  record: RecordChanges;
  /** Masks and ignores by entity. */
  rules?: ReadonlyMap<string, ValueRules> | undefined;
  /** `line`: 1-based. The reason has no content of the line. */
  onRejected: (line: number, reason: string) => void;
  onProgress?: (counts: Readonly<ImportCounts>) => void;
  /** Stops the import after the current batch. */
  signal?: AbortSignal;
}

/** The import stopped before the end of its source. `counts`: what was done before. */
export class ImportStoppedError extends Error {
  readonly counts: ImportCounts;

  constructor(message: string, counts: ImportCounts, cause: unknown) {
    super(message, { cause });
    this.name = 'ImportStoppedError';
    this.counts = counts;
  }
}

/** Milliseconds without input before pending changes are recorded. */
const flushAfter = 500;

/**
 * Records the changes of an NDJSON source (contract 6) in bounded memory, reading the next batch while recording one.
 * Batches are never recorded concurrently, so of two lines with one identity the first counts. Throws
 * `ImportStoppedError` if the source is damaged, recording fails, or the signal aborts. Idempotent: recorded changes
 * stay.
 *
 * @example
 * const counts = await importChanges({ source: process.stdin, record, onRejected: (line, reason) => warn(line, reason)
 * });
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
  readonly #lines: LineBatch;
  #recording: Promise<void> = Promise.resolve();

  constructor(options: ImportOptions) {
    this.#options = options;
    this.#lines = new LineBatch(options.rules, options.onRejected);
  }

  async toEnd(): Promise<ImportCounts> {
    const { source, signal, onProgress } = this.#options;
    const stop = () => source.destroy(new Error(whyStopped(signal?.reason)));
    signal?.addEventListener('abort', stop);
    if (signal?.aborted === true) stop();
    try {
      const damage = await this.#readAll(decompressedChunks(source));
      await this.#flush();
      await this.#recording;
      onProgress?.(this.#lines.counts);
      if (damage !== undefined) {
        // If the process was asked to stop, the input is not at fault.
        throw this.#stopped(
          signal?.aborted === true ? 'it ended early' : 'the input could not be read to its end',
          damage,
        );
      }
      return this.#lines.counts;
    } finally {
      signal?.removeEventListener('abort', stop);
      source.destroy();
    }
  }

  close(): void {
    this.#lines.close();
  }

  /** Returns the error that ended reading, if any. The line in which it occurred is not counted. */
  async #readAll(chunks: AsyncGenerator<Buffer>): Promise<Error | undefined> {
    const splitter = new LineSplitter();
    try {
      for (;;) {
        const next = nextChunk(chunks);
        if (!this.#lines.isEmpty && (await isQuiet(next))) {
          // Changes from a pipe do not wait for more input.
          await this.#flush();
          await this.#recording;
          this.#options.onProgress?.(this.#lines.counts);
        }
        const chunk = await next;
        if (chunk instanceof Error) return chunk;
        await this.#takeAll(chunk === undefined ? splitter.end() : splitter.split(chunk));
        this.#options.onProgress?.(this.#lines.counts);
        if (chunk === undefined) return undefined;
        // Lets the recording of the last batch continue.
        await setImmediate();
      }
    } finally {
      await chunks.return(undefined);
    }
  }

  async #takeAll(lines: Iterable<Line>): Promise<void> {
    for (const line of lines) {
      this.#lines.take(line.bytes, line.number);
      if (this.#lines.isFull) await this.#flush();
    }
  }

  /** Starts to record the batch, after the previous one. */
  async #flush(): Promise<void> {
    const { record } = this.#options;
    const { changes, settle } = this.#lines.next();
    const prepared = changes.length === 0 ? undefined : (record.prepare?.(changes) ?? (() => record(changes)));
    await this.#recording;
    if (prepared === undefined) return;
    this.#recording = this.#record(prepared, settle);
    // The next batch awaits this promise and gets the error; until then it is not an unhandled rejection.
    this.#recording.catch(() => {});
  }

  async #record(record: () => Promise<readonly Outcome[]>, settle: (outcomes: readonly Outcome[]) => void) {
    const outcomes = await record().catch((error: unknown) => {
      throw this.#stopped('recording failed', error);
    });
    settle(outcomes);
  }

  #stopped(what: string, cause: unknown): ImportStoppedError {
    const why = messageOf(cause);
    return new ImportStoppedError(`${what}: ${why}`, this.#lines.counts, cause);
  }
}

/** A signal's name, a sentence, or an error. */
function whyStopped(reason: unknown): string {
  if (typeof reason !== 'string') return 'interrupted';
  return /^SIG[A-Z]+$/.test(reason) ? `interrupted by ${reason}` : reason.replace(/\.$/, '');
}

/** Whether no input arrived within `flushAfter`. */
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
