import { setImmediate } from 'node:timers/promises';
import type { StopSignal } from '../stop-signal.ts';

let lastTurn: Promise<unknown> = Promise.resolve();

/**
 * Divides a long computation on the event loop into slices, so that other requests go on between them.
 *
 * @example
 * const slice = new TimeSlice(signal);
 * for (const name of names) {
 *   if (slice.isDue) await slice.rest();
 *   count(name);
 * }
 */
export class TimeSlice {
  readonly #signal: StopSignal | undefined;
  readonly #length: number;
  #begun = performance.now();

  /** `length` is in milliseconds. `rest` throws the signal's reason once the signal is aborted. */
  constructor(signal?: StopSignal, length = 8) {
    this.#signal = signal;
    this.#length = length;
  }

  /** Whether the slice is used up. Ask it every few thousand steps. */
  get isDue(): boolean {
    return performance.now() - this.#begun >= this.#length;
  }

  /** Lets everything else go on, then begins the next slice. */
  async rest(): Promise<void> {
    // One computation goes on in each round of the event loop, however many there are.
    const turn = lastTurn.then(() => setImmediate());
    lastTurn = turn;
    await turn;
    this.#signal?.throwIfAborted();
    this.#begun = performance.now();
  }
}
