import { availableParallelism } from 'node:os';
import { AnnalsError } from '../errors.ts';
import { Stop, type StopSignal } from '../stop-signal.ts';
import { type Release, Semaphore } from './semaphore.ts';
import { Thread, type ThreadLimits } from './thread.ts';
import { currentWork } from './work.ts';

export interface ThreadPoolOptions extends ThreadLimits {
  /** The file of the worker; `threadFile` makes it. */
  readonly file: URL;
  /** Maximum number of threads. Each starts when it is first needed. */
  readonly threads: number;
  /** Maximum number of requests of one tenant that wait; default `maxWaitingCalls`. The next one is refused with 429. */
  readonly maxWaitingOfTenant?: number;
  /** What the threads are for, for the message of a refusal: `regular expressions at work`. */
  readonly name: string;
}

/** Requests of one tenant that wait for a thread. */
export const maxWaitingCalls = 256;

export const maxThreads = 4;

/** One thread less than the machine has cores, but at least `min` and at most `maxThreads`. */
export function defaultThreads(min = 1, cores = availableParallelism()): number {
  return Math.max(min, Math.min(maxThreads, cores - 1));
}

/**
 * Worker threads that tenants share: one tenant has at most half of them, and at least one; tenants that wait take
 * turns. A request belongs to the tenant of the current work, and leaves the queue if that work is aborted. A thread that
 * is lost is replaced when it is needed.
 */
export class ThreadPool<Request, Reply> {
  readonly #options: ThreadPoolOptions;
  readonly #places: Semaphore;
  readonly #threads = new Set<Thread<Request, Reply>>();
  readonly #idle: Thread<Request, Reply>[] = [];
  readonly #closed = new Stop();

  constructor(options: ThreadPoolOptions) {
    const { threads: places, maxWaitingOfTenant = maxWaitingCalls, name } = options;
    this.#options = options;
    this.#places = new Semaphore({ places, maxWaitingOfTenant, name });
  }

  /**
   * Has a thread answer the request; `timeLimit` is in milliseconds. Rejects with ThreadLost, with rate_limit_exceeded (429) if too many requests of the tenant wait, and with
   * service_unavailable (503) if the pool is closed.
   */
  async ask(request: Request, timeLimit?: number): Promise<Reply> {
    const release = await this.#acquire();
    try {
      return await this.#askThread(request, timeLimit);
    } finally {
      release();
    }
  }

  /**
   * Asks one request after another, and gives the thread to another tenant in between if one waits. Calls `take` with
   * each reply. Rejects as `ask` does.
   */
  async askEach(requests: Iterable<Request>, timeLimit: number, take: (reply: Reply) => void): Promise<void> {
    const tenant = currentWork()?.tenant ?? '';
    let release: Release | undefined;
    try {
      for (const request of requests) {
        if (this.#places.othersWait(tenant)) {
          release?.();
          release = undefined;
        }
        release ??= await this.#acquire();
        take(await this.#askThread(request, timeLimit));
      }
    } finally {
      release?.();
    }
  }

  /** Ends all threads. Requests under way reject with 503. */
  async close(): Promise<void> {
    this.#closed.abort(closedError());
    await Promise.all([...this.#threads].map((thread) => thread.end()));
  }

  async #acquire(): Promise<Release> {
    this.#closed.throwIfAborted();
    const work = currentWork();
    const tenant = work?.tenant ?? '';
    return this.#places.tryAcquire(tenant) ?? (await this.#wait(tenant, work?.signal));
  }

  async #wait(tenant: string, signal: StopSignal | undefined): Promise<Release> {
    const stop = new Stop();
    const onAbort = () => stop.abort(signal?.reason);
    const onClose = () => stop.abort(this.#closed.reason);
    signal?.throwIfAborted();
    signal?.addEventListener('abort', onAbort);
    this.#closed.addEventListener('abort', onClose);
    try {
      return await this.#places.acquire(tenant, stop);
    } finally {
      signal?.removeEventListener('abort', onAbort);
      this.#closed.removeEventListener('abort', onClose);
    }
  }

  async #askThread(request: Request, timeLimit: number | undefined): Promise<Reply> {
    this.#closed.throwIfAborted();
    const thread = this.#idleThread() ?? this.#start();
    try {
      return await thread.ask(request, timeLimit);
    } catch (error) {
      this.#closed.throwIfAborted();
      throw error;
    } finally {
      if (thread.ended) this.#threads.delete(thread);
      else this.#idle.push(thread);
    }
  }

  #idleThread(): Thread<Request, Reply> | undefined {
    for (let idle = this.#idle.pop(); idle !== undefined; idle = this.#idle.pop()) {
      if (!idle.ended) return idle;
      this.#threads.delete(idle);
    }
    return undefined;
  }

  #start(): Thread<Request, Reply> {
    const thread = new Thread<Request, Reply>(this.#options.file, this.#options);
    this.#threads.add(thread);
    return thread;
  }
}

function closedError(): AnnalsError {
  return new AnnalsError('service_unavailable', 'The service is ending. Try again shortly.', {
    headers: { 'Retry-After': '1' },
  });
}
