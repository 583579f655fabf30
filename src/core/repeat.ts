import { setTimeout as sleep } from 'node:timers/promises';

/**
 * `length`: a process counts as alive for this long after its last heartbeat. `heartbeat`: the time between two
 * heartbeats. Both are in milliseconds.
 */
export const defaultLease = { length: 30_000, heartbeat: 8_000 };

/**
 * Extends a lease at every heartbeat until the caller calls the returned function. A lease is a time in a row. A
 * process that has not extended its lease is dead, and another process continues its work.
 *
 * @example
 * const stop = keepLease(() => extendRequest(db, name), { onError: warn });
 * try { await work(); } finally { stop(); }
 */
export function keepLease(
  extend: () => Promise<unknown>,
  { heartbeat = defaultLease.heartbeat, onError }: { heartbeat?: number; onError: (error: unknown) => void },
): () => void {
  let isExtending = false;
  const timer = setInterval(() => {
    // No second heartbeat while the database is slow to answer the first.
    if (isExtending) return;
    isExtending = true;
    extend()
      .catch(onError)
      .finally(() => {
        isExtending = false;
      });
  }, heartbeat);
  return () => clearInterval(timer);
}

interface Repeated {
  /** Milliseconds between the end of a run and the next run. */
  readonly every: number;
  /** Maximum milliseconds of a pause after failures; default: 10 seconds, at least `every`. */
  readonly maxPause?: number;
  /** Ends the repetition: the current run is the last one. */
  readonly signal: AbortSignal;
  run(): Promise<void>;
  /** Called with the error of a run. Runs continue, with growing pauses. */
  onError(error: unknown): void;
}

/** Milliseconds: short, so that failing work soon notices that the database is back. */
const maxPauseOfRepeated = 10_000;

/** Repeats work, and resolves when the last run has ended. Does not keep the process alive. */
export async function repeat({ every, maxPause, signal, run, onError }: Repeated): Promise<void> {
  const pause = new GrowingPause({ min: every, max: maxPause ?? Math.max(every, maxPauseOfRepeated) });
  while (!signal.aborted) {
    try {
      await run();
      pause.reset();
    } catch (error) {
      onError(error);
      await rest(pause.next(), signal);
      continue;
    }
    await rest(every, signal);
  }
}

/**
 * The pauses of work that fails, for instance because its progress cannot be saved: each is twice as long as the last,
 * up to `max`, and the first after a success is `min` again. In milliseconds.
 *
 * With `random` (0 to 1), each is shortened by up to half, so that processes that failed together do not all retry
 * together.
 */
export class GrowingPause {
  readonly #min: number;
  readonly #max: number;
  readonly #random: () => number;
  #next: number;

  constructor({
    min,
    max,
    random = () => 1,
  }: {
    readonly min: number;
    readonly max: number;
    readonly random?: () => number;
  }) {
    this.#min = min;
    this.#random = random;
    this.#max = max;
    this.#next = min;
  }

  /** The pause after one more failure. */
  next(): number {
    const pause = this.#next;
    this.#next = Math.min(2 * pause, this.#max);
    return pause * (0.5 + this.#random() / 2);
  }

  reset(): void {
    this.#next = this.#min;
  }
}

/** Waits so many milliseconds, or until the signal is aborted. Does not keep the process alive. */
export async function rest(milliseconds: number, signal: AbortSignal): Promise<void> {
  await sleep(milliseconds, undefined, { signal, ref: false }).catch(() => {});
}
