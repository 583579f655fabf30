import { Worker } from 'node:worker_threads';
import type { ThreadMessage } from './thread-worker.ts';

export interface ThreadLimits {
  /** MiB of heap. A thread that needs more ends. */
  readonly memory: number;
  /** MiB of heap for new objects; default: what the runtime gives. With less, a thread that makes much garbage stays smaller. */
  readonly newMemory?: number;
}

/**
 * A thread gave no answer: it ended, or the request or the answer could not be sent. `isTooSlow`: its time was over, or it wanted more
 * memory or stack than it may have.
 */
export class ThreadLost extends Error {
  readonly isTooSlow: boolean;

  constructor(isTooSlow: boolean, cause: unknown) {
    super('a thread gave no answer', { cause });
    this.name = 'ThreadLost';
    this.isTooSlow = isTooSlow;
  }
}

/**
 * The file of a worker beside the module with this `import.meta.url`. The bundler rewrites only the paths of imports, so
 * the path must be right for the sources and for the bundle, all of whose files stand in one folder.
 *
 * @example
 * threadFile(import.meta.url, 'regex-worker'); // …/regex-worker.ts, or …/regex-worker.js
 */
export function threadFile(moduleUrl: string, name: string): URL {
  return new URL(`./${name}${moduleUrl.endsWith('.ts') ? '.ts' : '.js'}`, moduleUrl);
}

const defaultStartLimits = {
  /** Milliseconds that a request waits for its thread to start. On a busy machine the thread starts later, for another request. */
  request: 10_000,
  /** Milliseconds after which a thread that has not started is ended. */
  thread: 120_000,
};

/** A worker thread that answers one request at a time. While it has none, the process may end. */
export class Thread<Request, Reply> {
  readonly #worker: Worker;
  readonly #started: Promise<void>;
  readonly #startLimits: typeof defaultStartLimits;
  #ended: Error | undefined;
  #settle: { resolve(reply: Reply): void; reject(error: Error): void } | undefined;

  /** The worker in the file calls `answerRequests`. */
  constructor(file: URL, { memory, newMemory }: ThreadLimits, startLimits = defaultStartLimits) {
    this.#startLimits = startLimits;
    this.#worker = new Worker(file, {
      execArgv: ['--enable-source-maps'],
      env: {},
      resourceLimits: {
        maxOldGenerationSizeMb: memory,
        ...(newMemory === undefined ? {} : { maxYoungGenerationSizeMb: newMemory }),
        stackSizeMb: 4,
      },
    });
    this.#worker.unref();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#started = promise;
    const start = setTimeout(() => this.#endLate(), startLimits.thread).unref();
    void promise.then(() => clearTimeout(start));
    this.#worker.on('message', (message: ThreadMessage<Reply>) => {
      if (message === 'started') resolve();
      else this.#settle?.resolve(message.reply);
    });
    // The thread has answered, and this one could not read it: an answer may have more levels than the stack here has room for.
    this.#worker.on('messageerror', (error: Error) => this.#settle?.reject(error));
    this.#worker.on('error', (error: Error) => this.#close(error));
    this.#worker.on('exit', () => this.#close(new Error('the thread has ended')));
  }

  get ended(): boolean {
    return this.#ended !== undefined;
  }

  /**
   * Ends the thread if it does not answer within so many milliseconds of wall time, its start not counted. Rejects with
   * ThreadLost if the thread gives no answer.
   */
  async ask(request: Request, timeLimit = Number.POSITIVE_INFINITY): Promise<Reply> {
    let timer: NodeJS.Timeout | undefined;
    this.#worker.ref();
    try {
      if (this.#ended !== undefined) throw this.#ended;
      return await new Promise<Reply>((resolve, reject) => {
        const settle = { resolve, reject };
        this.#settle = settle;
        timer = setTimeout(() => reject(new ThreadLost(true, undefined)), this.#startLimits.request);
        void this.#started.then(() => {
          // The time of the request may be over, and the thread another request's.
          if (this.#settle !== settle) return;
          clearTimeout(timer);
          if (timeLimit !== Number.POSITIVE_INFINITY) timer = setTimeout(() => this.#endLate(), timeLimit);
          try {
            this.#worker.postMessage(request);
          } catch (error) {
            // The request cannot be copied, or has more levels than the stack has room for. The thread goes on.
            reject(error);
          }
        });
      });
    } catch (error) {
      throw error instanceof ThreadLost ? error : new ThreadLost(isTooLarge(error), error);
    } finally {
      clearTimeout(timer);
      this.#settle = undefined;
      // Who ends the thread waits until it has ended.
      if (this.#ended === undefined) this.#worker.unref();
    }
  }

  async end(): Promise<void> {
    this.#close(new Error('the thread was ended'));
    await this.#worker.terminate();
  }

  #endLate(): void {
    this.#close(new ThreadLost(true, undefined));
    void this.#worker.terminate();
  }

  #close(reason: Error): void {
    this.#ended ??= reason;
    this.#settle?.reject(reason);
  }
}

function isTooLarge(error: unknown): boolean {
  if (error instanceof RangeError) return true;
  return error instanceof Error && 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY';
}
