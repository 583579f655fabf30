import { setImmediate } from 'node:timers/promises';
import type { StopSignal } from '../stop-signal.ts';

let lastTurn: Promise<unknown> = Promise.resolve();

/**
 * For a computation on the event loop that may take long: asked every few thousand steps, it tells when to let everything
 * else go on.
 */
export class Pace {
  readonly #signal: StopSignal | undefined;
  readonly #stretch: number;
  #begun = performance.now();

  /** The signal ends the computation where it would rest; it goes on for `stretch` milliseconds at a time. */
  constructor(signal?: StopSignal, stretch = 8) {
    this.#signal = signal;
    this.#stretch = stretch;
  }

  get isDue(): boolean {
    return performance.now() - this.#begun >= this.#stretch;
  }

  async rest(): Promise<void> {
    // In each round of the loop one computation goes on, however many there are.
    const turn = lastTurn.then(() => setImmediate());
    lastTurn = turn;
    await turn;
    this.#signal?.throwIfAborted();
    this.#begun = performance.now();
  }
}
