import { setImmediate } from 'node:timers/promises';
import type { StopSignal } from '../stop-signal.ts';
import { currentWork } from './work.ts';

let lastTurn: Promise<unknown> = Promise.resolve();

/**
 * Divides a long computation on the event loop into slices, so that other requests go on between them.
 *
 * @example
 * const slice = new TimeSlice();
 * for (const name of names) {
 *   if (slice.isDue) await slice.rest();
 *   count(name);
 * }
 */
export class TimeSlice {
  readonly #signal: StopSignal | undefined;
  readonly #length: number;
  #begun = performance.now();

  /** `length` is in milliseconds. */
  constructor(length = 8) {
    this.#signal = currentWork()?.signal;
    this.#length = length;
  }

  /** Whether the slice is used up. Check it every few thousand steps. */
  get isDue(): boolean {
    return performance.now() - this.#begun >= this.#length;
  }

  /** Lets other work run, then starts the next slice. Throws the reason if the current work was aborted. */
  async rest(): Promise<void> {
    // One computation continues in each round of the event loop, however many computations wait.
    const turn = lastTurn.then(() => setImmediate());
    lastTurn = turn;
    await turn;
    this.#signal?.throwIfAborted();
    this.#begun = performance.now();
  }
}
