import type { StopSignal } from '../stop-signal.ts';
import { ageOfTurn, nextTurn } from './loop-turn.ts';
import { othersHaveShortWork } from './short-work.ts';
import { currentWork } from './work.ts';

/** Milliseconds. A shorter computation never rests, however much others have computed in the same turn of the event loop. */
export const minSlice = 1;

/** Milliseconds of a slice while other tenants have short requests under way. */
export const sliceBesideOthers = 4;

/** Milliseconds of a slice. */
export const defaultSlice = 8;

/**
 * Divides a long computation on the event loop into slices, so that other requests go on between them. All computations
 * of one turn of the loop share one slice, and tenants take turns. While other tenants have short requests under way, slices
 * are shorter and far between.
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
  readonly #tenant: string;
  readonly #length: number;
  #begun = performance.now();

  /** `length` is in milliseconds. */
  constructor(length = defaultSlice) {
    const work = currentWork();
    this.#signal = work?.signal;
    this.#tenant = work?.tenant ?? '';
    this.#length = length;
    ageOfTurn();
  }

  /** Whether the slice is used up. Check it every few thousand steps. */
  get isDue(): boolean {
    const length = othersHaveShortWork(this.#tenant) ? Math.min(this.#length, sliceBesideOthers) : this.#length;
    return ageOfTurn() >= length && performance.now() - this.#begun >= Math.min(minSlice, this.#length);
  }

  /** Lets other work run, then starts the next slice. Throws the reason if the current work was aborted. */
  async rest(): Promise<void> {
    await nextTurn(this.#tenant);
    this.#signal?.throwIfAborted();
    this.#begun = performance.now();
  }
}
