import { parentPort, Worker } from 'node:worker_threads';
import { hasCode } from '../errors.ts';

/** From a thread: it runs; it begins to answer a request; the reply. */
type ThreadMessage<Reply> = 'started' | 'begun' | { readonly reply: Reply };

interface ThreadLimits {
  /** MiB of heap. A thread that needs more ends. */
  readonly memory: number;
}

/**
 * A thread gave no answer: it ended, or the request or the answer could not be sent. `isTooSlow`: it exceeded its limit
 * of time, memory or stack.
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
 * The file of a worker beside the module with this `import.meta.url`. The bundler rewrites only paths of imports, so
 * this must be right for the sources and for the bundle, whose files are in one folder.
 *
 * @example
 * threadFile(import.meta.url, 'threaded-worker'); // …/threaded-worker.ts, or …/threaded-worker.js
 */
export function threadFile(moduleUrl: string, name: string): URL {
  return new URL(`./${name}${moduleUrl.endsWith('.ts') ? '.ts' : '.js'}`, moduleUrl);
}

const defaultStartLimits = {
  /** Milliseconds that a request waits for its thread, which may still start later, for another request. */
  request: 10_000,
  /** Milliseconds after which a thread that has not started is ended. */
  thread: 120_000,
  /** Milliseconds after which a thread that has the request and has not begun its answer is ended. */
  load: 30_000,
};

/** A worker thread that answers one request at a time. While idle, it does not keep the process alive. */
export class Thread<Request, Reply> {
  readonly #worker: Worker;
  readonly #started: Promise<void>;
  readonly #startLimits: typeof defaultStartLimits;
  #ended: Error | undefined;
  #settle: { begin(): void; resolve(reply: Reply): void; reject(error: Error): void } | undefined;

  /** The worker in the file calls `answerRequests`. */
  constructor(file: URL, { memory }: ThreadLimits, startLimits = defaultStartLimits) {
    this.#startLimits = startLimits;
    this.#worker = new Worker(file, {
      execArgv: ['--enable-source-maps'],
      env: {},
      resourceLimits: {
        maxOldGenerationSizeMb: memory,
        // Keeps threads small that make much garbage.
        maxYoungGenerationSizeMb: 16,
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
      else if (message === 'begun') this.#settle?.begin();
      else this.#settle?.resolve(message.reply);
    });
    // This thread could not read the answer, which may nest deeper than its stack allows.
    this.#worker.on('messageerror', (error: Error) => this.#settle?.reject(error));
    this.#worker.on('error', (error: Error) => this.#close(error));
    this.#worker.on('exit', () => this.#close(new Error('the thread has ended')));
  }

  get ended(): boolean {
    return this.#ended !== undefined;
  }

  /**
   * Ends the thread if its answer takes longer than `timeLimit` milliseconds, without its start and the loading of
   * modules. Rejects with ThreadLost if the thread gives no answer.
   */
  async ask(request: Request, timeLimit = Number.POSITIVE_INFINITY): Promise<Reply> {
    let timer: NodeJS.Timeout | undefined;
    this.#worker.ref();
    try {
      if (this.#ended !== undefined) throw this.#ended;
      return await new Promise<Reply>((resolve, reject) => {
        const begin = () => {
          clearTimeout(timer);
          if (timeLimit !== Number.POSITIVE_INFINITY) timer = setTimeout(() => this.#endLate(), timeLimit);
        };
        const settle = { begin, resolve, reject };
        this.#settle = settle;
        timer = setTimeout(() => reject(new ThreadLost(true, undefined)), this.#startLimits.request);
        void this.#started.then(() => {
          // The request may have timed out, and the thread may serve another one.
          if (this.#settle !== settle) return;
          // From here on a thread that gives no answer ends: a late reply would answer another request.
          clearTimeout(timer);
          timer = setTimeout(() => this.#endLate(), this.#startLimits.load);
          try {
            this.#worker.postMessage(request);
          } catch (error) {
            // The request cannot be cloned, or nests deeper than the stack allows. The thread stays usable.
            reject(error);
          }
        });
      });
    } catch (error) {
      throw error instanceof ThreadLost ? error : new ThreadLost(isTooLarge(error), error);
    } finally {
      clearTimeout(timer);
      this.#settle = undefined;
      if (this.#ended === undefined) this.#worker.unref();
    }
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
  return hasCode(error, 'ERR_WORKER_OUT_OF_MEMORY');
}

/** In a thread: answers its requests, one at a time. The time limit does not include `prepare`. */
export function answerRequests<Request, Reply>(
  answer: (request: Request) => Reply | Promise<Reply>,
  prepare?: (request: Request) => Promise<unknown>,
): void {
  const send = (message: ThreadMessage<Reply>) => parentPort?.postMessage(message);
  parentPort?.on('message', async (request: Request) => {
    await prepare?.(request);
    send('begun');
    send({ reply: await answer(request) });
  });
  // An unreadable request gets no answer, so the thread ends.
  parentPort?.on('messageerror', (error) => {
    throw error;
  });
  send('started');
}
