import { parentPort, Worker } from 'node:worker_threads';

/** What a thread sends: that it runs, for each request that its answer begins, and the reply. */
type ThreadMessage<Reply> = 'started' | 'begun' | { readonly reply: Reply };

export interface ThreadLimits {
  /** MiB of heap. A thread that needs more ends. */
  readonly memory: number;
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
 * threadFile(import.meta.url, 'threaded-worker'); // …/threaded-worker.ts, or …/threaded-worker.js
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
  #settle: { begin(): void; resolve(reply: Reply): void; reject(error: Error): void } | undefined;

  /** The worker in the file calls `answerRequests`. */
  constructor(file: URL, { memory }: ThreadLimits, startLimits = defaultStartLimits) {
    this.#startLimits = startLimits;
    this.#worker = new Worker(file, {
      execArgv: ['--enable-source-maps'],
      env: {},
      resourceLimits: {
        maxOldGenerationSizeMb: memory,
        // A thread that makes much garbage stays small.
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
    // The thread has answered, and this one could not read it: an answer may have more levels than the stack here has room for.
    this.#worker.on('messageerror', (error: Error) => this.#settle?.reject(error));
    this.#worker.on('error', (error: Error) => this.#close(error));
    this.#worker.on('exit', () => this.#close(new Error('the thread has ended')));
  }

  get ended(): boolean {
    return this.#ended !== undefined;
  }

  /**
   * Ends the thread if its answer takes more milliseconds than `timeLimit`; its start and the loading of modules do not
   * count. Rejects with ThreadLost where the thread gives no answer.
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
          // The time of the request may be over, and the thread another request's.
          if (this.#settle !== settle) return;
          clearTimeout(timer);
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
  return error instanceof Error && 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY';
}

/** In a thread: answers its requests, one at a time. `prepare` is not counted against the time limit of the answer. */
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
  // A request that cannot be read gets no answer, so the thread ends.
  parentPort?.on('messageerror', (error) => {
    throw error;
  });
  send('started');
}
