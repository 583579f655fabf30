import { availableParallelism } from 'node:os';
import { AnnalsError } from '../errors.ts';
import { type Release, Semaphore } from './semaphore.ts';
import { Thread, ThreadLost, threadFile } from './thread.ts';
import { currentWork } from './work.ts';

/** A call of a function that a module made by `threaded`. */
export interface ThreadCall {
  /** The URL of the module. */
  readonly module: string;
  readonly name: string;
  readonly args: readonly unknown[];
}

/** Classes of errors are lost between threads, so a refusal is sent as its parts. */
export type ThreadOutcome =
  | { readonly result: unknown }
  | { readonly refusal: Pick<AnnalsError, 'type' | 'message' | 'details' | 'headers'> }
  | { readonly error: unknown };

/** Longer texts together may block the event loop for more than a few milliseconds. */
export const maxInlineCharacters = 32 * 1024;

/** Maximum calls of one tenant that wait for a thread. */
export const maxWaitingCalls = 256;

/** Two, since one tenant may occupy half of the threads. */
export const minThreads = 2;
export const maxThreads = 4;

/** One thread fewer than cores, from `minThreads` to `maxThreads`. */
export function defaultThreads(cores = availableParallelism()): number {
  return Math.max(minThreads, Math.min(maxThreads, cores - 1));
}

interface ThreadPoolOptions {
  /** Maximum number of threads. Each starts when it is first needed. */
  readonly size?: number;
  /** MiB of heap. A thread that needs more ends. */
  readonly memory?: number;
  /** Maximum number of calls of one tenant that wait; more are refused with 429. */
  readonly waiting?: number;
  /** The name of the threads in metrics and refusals. */
  readonly name?: string;
}

/**
 * Worker threads that tenants share: one tenant has at most half of them, and at least one; waiting tenants take turns.
 * A call belongs to the tenant of the current work, and leaves the queue if that work is aborted. Lost threads are
 * replaced on demand.
 */
export class ThreadPool {
  readonly #memory: number;
  readonly #places: Semaphore;
  readonly #idle: Thread<ThreadCall, ThreadOutcome>[] = [];

  constructor({
    size = defaultThreads(),
    memory = 512,
    waiting = maxWaitingCalls,
    name = threadsName,
  }: ThreadPoolOptions = {}) {
    this.#memory = memory;
    this.#places = new Semaphore({ places: size, maxWaitingOfTenant: waiting, name });
  }

  /**
   * Calls a function in a thread; `timeLimit` is in milliseconds. Rejects with the function's error, with ThreadLost if
   * it needs too much time, memory or stack, and with rate_limit_exceeded (429) if too many calls of the tenant wait.
   */
  async call(call: ThreadCall, timeLimit?: number): Promise<unknown> {
    const release = await this.#acquire();
    try {
      return await this.#callThread(call, timeLimit);
    } finally {
      release();
    }
  }

  /**
   * Makes one call after another, and yields the thread to waiting tenants in between. Passes each result to `take`.
   * Rejects as `call` does.
   */
  async callEach(calls: Iterable<ThreadCall>, timeLimit: number, take: (result: unknown) => void): Promise<void> {
    const tenant = currentWork()?.tenant ?? '';
    let release: Release | undefined;
    try {
      for (const call of calls) {
        if (this.#places.othersWait(tenant)) {
          release?.();
          release = undefined;
        }
        release ??= await this.#acquire();
        take(await this.#callThread(call, timeLimit));
      }
    } finally {
      release?.();
    }
  }

  async #acquire(): Promise<Release> {
    const work = currentWork();
    const tenant = work?.tenant ?? '';
    return this.#places.tryAcquire(tenant) ?? (await this.#places.acquire(tenant, work?.signal));
  }

  async #callThread(call: ThreadCall, timeLimit: number | undefined): Promise<unknown> {
    const thread = this.#idleThread() ?? new Thread<ThreadCall, ThreadOutcome>(workerFile, { memory: this.#memory });
    try {
      const outcome = await thread.ask(call, timeLimit);
      if ('result' in outcome) return outcome.result;
      if ('refusal' in outcome) throw refusalOf(outcome.refusal);
      throw isExhausted(outcome.error) ? new ThreadLost(true, outcome.error) : outcome.error;
    } finally {
      if (!thread.ended) this.#idle.push(thread);
    }
  }

  #idleThread(): Thread<ThreadCall, ThreadOutcome> | undefined {
    for (let idle = this.#idle.pop(); idle !== undefined; idle = this.#idle.pop()) if (!idle.ended) return idle;
    return undefined;
  }
}

const threadsName = 'long computations in threads';
const workerFile = threadFile(import.meta.url, 'threaded-worker');

/**
 * The threads of the process for all short work that would block its event loop. Work that may take many seconds has
 * threads of its own: other tenants' short calls would wait behind it.
 */
export const threads = new ThreadPool();

/** A function that runs in a thread if its arguments are long. `here` runs it in the caller's thread. */
interface Threaded<Args extends readonly unknown[], Result> {
  (...args: Args): Promise<Result>;
  here(...args: Args): Result;
  /** The call of the function, for a pool. */
  callOf(...args: Args): ThreadCall;
}

/** The functions of all modules that this thread has loaded, by their names. */
const functions = new Map<string, (...args: never[]) => unknown>();

/**
 * Makes a function run in a worker thread if its arguments have more than `maxInlineCharacters`, so that it does not
 * block the event loop (contract 11). The function depends only on its arguments, which are plain data, as is its
 * result. AnnalsErrors reach the caller unchanged.
 *
 * @param moduleUrl `import.meta.url` of the module, which the worker loads
 * @param name unique among all modules
 * @param isLong whether short arguments count as long, because their result is
 *
 * @example
 * export const sizeOfText = threaded(import.meta.url, 'sizeOfText', (text: string) => sizeOfJson(parseJson(text)));
 * const size = await sizeOfText(document);
 */
export function threaded<Args extends readonly unknown[], Result>(
  moduleUrl: string,
  name: string,
  call: (...args: Args) => Result,
  isLong: (...args: Args) => boolean = () => false,
): Threaded<Args, Result> {
  functions.set(name, call);
  const callOf = (...args: Args): ThreadCall => ({ module: moduleUrl, name, args });
  const callWhereFit = async (...args: Args) => {
    if (charactersOf(args) <= maxInlineCharacters && !isLong(...args)) return call(...args);
    // The thread has called the same function.
    return (await threads.call(callOf(...args))) as Result;
  };
  return Object.assign(callWhereFit, { here: call, callOf });
}

/** In a thread: loads the module, and calls its function. */
export async function callInThread({ module, name, args }: ThreadCall): Promise<unknown> {
  await import(module);
  const call = functions.get(name);
  if (call === undefined) throw new Error(`${module} makes no function ${name}`);
  // The types were checked at the call of the same function.
  return call(...(args as never[]));
}

/** Whether V8 ran out of stack or of memory for one value. */
function isExhausted(error: unknown): boolean {
  return (
    error instanceof RangeError && /call stack|string length|array (?:buffer|length)|allocation/i.test(error.message)
  );
}

function refusalOf({ type, message, details, headers }: Extract<ThreadOutcome, { refusal: unknown }>['refusal']) {
  return new AnnalsError(type, message, { details, headers });
}

/** The characters of texts in the arguments, and one level into lists and objects. */
function charactersOf(args: readonly unknown[], levels = 1): number {
  let characters = 0;
  for (const value of args) {
    if (typeof value === 'string') characters += value.length;
    else if (typeof value === 'object' && value !== null && levels > 0) {
      characters += charactersOf(Array.isArray(value) ? value : Object.values(value), levels - 1);
    }
  }
  return characters;
}
