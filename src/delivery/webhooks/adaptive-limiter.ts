import type { Health } from '../dispatch/run-store.ts';
import type { DeliveryResult } from '../targets/target.ts';
import { probePause, slowPause } from './retry-schedule.ts';

/**
 * Limits the concurrent calls of a run to its target. After an outage or overload it starts with one call, and each
 * success allows one more.
 */
export class AdaptiveLimiter {
  readonly #concurrency: number;
  readonly #unreachable: number;
  readonly #slowed: number;
  readonly #waiting: (() => void)[] = [];
  #allowed: number;
  #active = 0;
  #health: Health | undefined;
  #isOver = false;
  #isProbing: boolean;

  constructor(options: { concurrency: number; isProbing: boolean; unreachable: number; slowed: number }) {
    this.#concurrency = options.concurrency;
    this.#unreachable = options.unreachable;
    this.#slowed = options.slowed;
    this.#isProbing = options.isProbing;
    this.#allowed = options.isProbing ? 1 : options.concurrency;
  }

  /** Whether no call has succeeded yet since the target was unreachable or overloaded. */
  get isProbing(): boolean {
    return this.#isProbing;
  }

  /** Whether the run may send nothing more. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Runs an attempt when the limit allows; `unsettled` if the run ends first. */
  async run<Result>(work: () => Promise<Result>): Promise<Result | 'unsettled'> {
    while (this.#active >= this.#allowed && !this.#isOver) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    if (this.#isOver) return 'unsettled';
    this.#active += 1;
    try {
      return await work();
    } finally {
      this.#active -= 1;
      this.#wake();
    }
  }

  /** Adjusts the limit to the result of an attempt. */
  observe({ outcome, isBusy, retryAfter }: DeliveryResult): void {
    if (outcome === 'delivered') {
      this.#isProbing = false;
      this.#allowed = Math.min(this.#concurrency, this.#allowed + 1);
      if (!this.#isOver) this.#health = { is: 'well' };
      return;
    }
    if (this.#isOver) return;
    if (outcome === 'refused') this.#end({ is: 'away', rest: probePause(this.#unreachable + 1) });
    else if (outcome === 'suspended') this.#end({ is: 'gone' });
    else if (isBusy) this.#end({ is: 'busy', rest: slowPause(this.#slowed + 1, retryAfter) });
    else if (this.#health === undefined) this.#health = { is: 'failing' };
  }

  /** Returns the health observed since the last call. */
  takeHealth(): Health | undefined {
    const health = this.#health;
    this.#health = undefined;
    return health;
  }

  #end(health: Health): void {
    this.#health = health;
    this.#isOver = true;
    this.#wake();
  }

  #wake(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}
