import { AsyncLocalStorage } from 'node:async_hooks';
import { Stop, type StopSignal } from '../stop-signal.ts';
import { setDeadline } from './deadline.ts';

/** Milliseconds that a request has until its headers are sent, and a later statement of it (contract 11). */
export const requestLimit = 30_000;

export interface WorkOptions {
  readonly tenant: string;
  /** Whether it takes its connections from the share of writes; left out: from that of reads. */
  readonly writes?: boolean | undefined;
  /** Milliseconds of a statement or a transaction, waiting included; 30,000 unless given. */
  readonly stepLimit?: number | undefined;
}

/** What a statement or a transaction, waiting for its connection included, is stopped by. */
export interface Step {
  readonly signal: StopSignal;
  end(): void;
}

/**
 * What a tenant has asked for and what goes on for it now: a request, or a part of a job. It tells everything that is
 * done for it whose share to take, and when to stop.
 */
export class Work {
  readonly tenant: string;
  readonly writes: boolean;
  readonly #stepLimit: number;
  readonly #stop = new Stop();
  #endLimit: (() => void) | undefined;
  #limit = 0;
  /** In milliseconds of performance.now(). */
  #until = 0;
  /** Milliseconds that are left once the limit goes on. */
  #left: number | undefined;

  constructor({ tenant, writes = false, stepLimit = requestLimit }: WorkOptions) {
    this.tenant = tenant;
    this.writes = writes;
    this.#stepLimit = stepLimit;
  }

  /** Aborted where nobody waits for the work any more, or its time is over. */
  get signal(): StopSignal {
    return this.#stop;
  }

  /** Only the first reason counts. */
  abort(reason: unknown): void {
    this.#stop.abort(reason);
  }

  /** All steps together have so many milliseconds, from now until `endLimit`; then it is aborted with 503. */
  limit(milliseconds: number): void {
    this.#limit = milliseconds;
    this.#setLimit(milliseconds);
  }

  /** The time until `resumeLimit` does not count. */
  pauseLimit(): void {
    if (this.#endLimit === undefined) return;
    this.endLimit();
    this.#left = this.#until - performance.now();
  }

  resumeLimit(): void {
    if (this.#left !== undefined) this.#setLimit(this.#left);
  }

  /** From now on each step has its own time. */
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

  /** Begins a statement or a transaction. */
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

/** What the caller works on; undefined in upkeep and in commands, which work for no tenant. */
export function currentWork(): Work | undefined {
  return storage.getStore();
}

/** Calls a function whose work, and all that follows from it, is `work`. */
export function enterWork<Result>(work: Work, call: () => Result): Result {
  return storage.run(work, call);
}

/**
 * Does work that goes on where the request that began it is over: what others wait for too, or what has to be written
 * whatever becomes of its client. `signal` stops it; `timeLimit` is in milliseconds for the whole of it.
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
 * Pieces of an answer that are read while it is being sent: they belong to the current work, wherever they are asked for.
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

/** Calls a function that works for no tenant: what the process itself has to do, whoever was the first to need it. */
export function leaveWork<Result>(call: () => Result): Result {
  return storage.exit(call);
}
