import type { Readable } from 'node:stream';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import type { Outcome, RecordChanges } from '../../recording/change.ts';
import { decompressedChunks } from '../../recording/decompress.ts';
import { type Line, LineSplitter } from '../../recording/lines.ts';
import type { ValueRules } from '../../recording/mapping/mapping.ts';
import { type ImportCounts, LineBatch } from './line-batch.ts';

export interface ImportOptions {
  /** NDJSON, plain or compressed with gzip or Zstandard. */
  source: Readable;
  record: RecordChanges;
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

/** Milliseconds without input after which the changes so far are recorded. */
const flushAfter = 500;

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
        // Where the process was asked to stop, the input is not at fault.
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

  /** Takes all lines. Returns the error that ended reading, if there was one. It does not count the line in which it broke off. */
  async #readAll(chunks: AsyncGenerator<Buffer>): Promise<Error | undefined> {
    const splitter = new LineSplitter();
    try {
      for (;;) {
        const next = nextChunk(chunks);
        if (!this.#lines.isEmpty && (await isQuiet(next))) {
          // Changes that have come through a pipe do not wait for more input.
          await this.#flush();
          await this.#recording;
          this.#options.onProgress?.(this.#lines.counts);
        }
        const chunk = await next;
        if (chunk instanceof Error) return chunk;
        await this.#takeAll(chunk === undefined ? splitter.end() : splitter.split(chunk));
        this.#options.onProgress?.(this.#lines.counts);
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
      this.#lines.take(line.bytes, line.number);
      if (this.#lines.isFull) await this.#flush();
    }
  }

  /** Records the batch after the one before it. */
  async #flush(): Promise<void> {
    const { record } = this.#options;
    const { changes, settle } = this.#lines.next();
    const prepared = changes.length === 0 ? undefined : (record.prepare?.(changes) ?? (() => record(changes)));
    await this.#recording;
    if (prepared === undefined) return;
    this.#recording = this.#record(prepared, settle);
    // The next batch awaits this promise and gets the error. Until then it is no unhandled rejection.
    this.#recording.catch(() => {});
  }

  async #record(record: () => Promise<readonly Outcome[]>, settle: (outcomes: readonly Outcome[]) => void) {
    const outcomes = await record().catch((error: unknown) => {
      throw this.#stopped('recording failed', error);
    });
    settle(outcomes);
  }

  #stopped(what: string, cause: unknown): ImportStoppedError {
    const why = cause instanceof Error ? cause.message : String(cause);
    return new ImportStoppedError(`${what}: ${why}`, this.#lines.counts, cause);
  }
}

/** The reason of a signal that is aborted: the name of a signal of the system, a sentence, or an error. */
function whyStopped(reason: unknown): string {
  if (typeof reason !== 'string') return 'interrupted';
  return /^SIG[A-Z]+$/.test(reason) ? `interrupted by ${reason}` : reason.replace(/\.$/, '');
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
