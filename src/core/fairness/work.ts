import { AsyncLocalStorage } from 'node:async_hooks';
import { Stop, type StopSignal } from '../stop-signal.ts';
import { setDeadline } from './deadline.ts';

/** Maximum milliseconds until a request's headers are sent, and of each later statement (contract 11). */
export const requestLimit = 30_000;

export interface WorkOptions {
  readonly tenant: string;
  /** Whether the work takes its connections from the share for writes; default: for reads. */
  readonly writes?: boolean | undefined;
  /** Whether it serves viewers, who get half of the tenant's share. */
  readonly ofViewers?: boolean | undefined;
  /** Maximum milliseconds of a statement or a transaction, including its wait; default 30,000. */
  readonly stepLimit?: number | undefined;
}

/** Stops a statement or a transaction, including its wait for a connection. */
export interface Step {
  readonly signal: StopSignal;
  end(): void;
}

/**
 * The current work of a tenant: a request, or a part of a job. Functions read from it whose share to use and when to
 * stop.
 */
export class Work {
  readonly tenant: string;
  readonly writes: boolean;
  readonly ofViewers: boolean;
  readonly #stepLimit: number;
  readonly #stop = new Stop();
  #endLimit: (() => void) | undefined;
  #limit = 0;
  /** In milliseconds of performance.now(). */
  #until = 0;
  /** Milliseconds left when the limit resumes. */
  #left: number | undefined;

  constructor({ tenant, writes = false, ofViewers = false, stepLimit = requestLimit }: WorkOptions) {
    this.tenant = tenant;
    this.writes = writes;
    this.ofViewers = ofViewers;
    this.#stepLimit = stepLimit;
  }

  /** Aborted when no caller waits for the work, or when its time is over. */
  get signal(): StopSignal {
    return this.#stop;
  }

  /** Only the first reason counts. */
  abort(reason: unknown): void {
    this.#stop.abort(reason);
  }

  /** Limits all steps together, from now until `endLimit`. After these milliseconds the work is aborted with 503. */
  limit(milliseconds: number): void {
    this.#limit = milliseconds;
    this.#setLimit(milliseconds);
  }

  /** Pauses the limit until `resumeLimit`. */
  pauseLimit(): void {
    if (this.#endLimit === undefined) return;
    this.endLimit();
    this.#left = this.#until - performance.now();
  }

  resumeLimit(): void {
    if (this.#left !== undefined) this.#setLimit(this.#left);
  }

  /** Ends the common limit: from now on each step has its own limit. */
  endLimit(): void {
    this.#endLimit?.();
    this.#endLimit = undefined;
    this.#left = undefined;
  }

  #setLimit(rest: number): void {
    this.endLimit();
    this.#until = performance.now() + rest;
    this.#endLimit = setDeadline(this.#stop, this.#limit, rest);
  }

  /** Starts a statement or a transaction. */
  beginStep(): Step {
    if (this.#endLimit !== undefined || this.#stepLimit === Number.POSITIVE_INFINITY) {
      return { signal: this.#stop, end: () => {} };
    }
    const stop = new Stop();
    const onAbort = () => stop.abort(this.#stop.reason);
    if (this.#stop.aborted) onAbort();
    this.#stop.addEventListener('abort', onAbort);
    const endDeadline = setDeadline(stop, this.#stepLimit);
    return {
      signal: stop,
      end: () => {
        endDeadline();
        this.#stop.removeEventListener('abort', onAbort);
      },
    };
  }
}

const storage = new AsyncLocalStorage<Work>({ name: 'annals work' });

/** The work of the caller; undefined in upkeep and commands, which belong to no tenant. */
export function currentWork(): Work | undefined {
  return storage.getStore();
}

/** Calls a function with `work` as the current work, also of everything it starts. */
export function enterWork<Result>(work: Work, call: () => Result): Result {
  return storage.run(work, call);
}

/**
 * Runs work that outlives the request that started it, because several callers share it or Annals must write something
 * even if the client is gone. `signal` stops it; `timeLimit` is in milliseconds for the whole work.
 *
 * @example
 * const names = await doWork({ tenant, timeLimit: 30_000 }, () => readNames(pool, tenant));
 */
export async function doWork<Result>(
  options: WorkOptions & { readonly signal?: StopSignal | undefined; readonly timeLimit?: number | undefined },
  call: () => Promise<Result>,
): Promise<Result> {
  const { signal, timeLimit } = options;
  signal?.throwIfAborted();
  const work = new Work(options);
  const onAbort = () => work.abort(signal?.reason);
  signal?.addEventListener('abort', onAbort, { once: true });
  if (timeLimit !== undefined) work.limit(timeLimit);
  try {
    return await storage.run(work, call);
  } finally {
    work.endLimit();
    signal?.removeEventListener('abort', onAbort);
  }
}

/**
 * The pieces of an answer, read as part of the current work whichever code consumes them.
 *
 * @example
 * reply.send(Readable.from(ofCurrentWork(readPieces(pool, places))));
 */
export function ofCurrentWork<Piece>(pieces: AsyncIterable<Piece>): AsyncIterable<Piece> {
  const work = currentWork();
  return work === undefined ? pieces : inWork(work, pieces[Symbol.asyncIterator]());
}

async function* inWork<Piece>(work: Work, pieces: AsyncIterator<Piece>): AsyncGenerator<Piece> {
  try {
    for (;;) {
      const piece = await storage.run(work, () => pieces.next());
      if (piece.done === true) return;
      yield piece.value;
    }
  } finally {
    await pieces.return?.();
  }
}
