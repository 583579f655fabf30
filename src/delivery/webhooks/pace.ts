import type { Health } from '../dispatch/held-store.ts';
import type { DeliveryResult } from '../targets/target.ts';
import { probePause, slowPause } from './schedule.ts';

/**
 * How much a run sends at once, and when it has to leave the target alone. After a target was away or too busy it begins with one call,
 * and each success allows one more.
 */
export class Pace {
  readonly #concurrency: number;
  readonly #unreachable: number;
  readonly #slowed: number;
  readonly #waiting: (() => void)[] = [];
  #allowed: number;
  #taken = 0;
  #health: Health | undefined;
  #isOver = false;
  #isCareful: boolean;

  constructor(options: { concurrency: number; isCareful: boolean; unreachable: number; slowed: number }) {
    this.#concurrency = options.concurrency;
    this.#unreachable = options.unreachable;
    this.#slowed = options.slowed;
    this.#isCareful = options.isCareful;
    this.#allowed = options.isCareful ? 1 : options.concurrency;
  }

  /** Whether it is still to be seen how the target fares. */
  get isCareful(): boolean {
    return this.#isCareful;
  }

  /** Whether nothing more may be sent in this run. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Does an attempt when its turn comes; `unsettled` if the run is over before that. */
  async inTurn<Result>(work: () => Promise<Result>): Promise<Result | 'unsettled'> {
    while (this.#taken >= this.#allowed && !this.#isOver) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    if (this.#isOver) return 'unsettled';
    this.#taken += 1;
    try {
      return await work();
    } finally {
      this.#taken -= 1;
      this.#wake();
    }
  }

  /** Learns from the result of an attempt. */
  hear({ outcome, isBusy, retryAfter }: DeliveryResult): void {
    if (outcome === 'delivered') {
      this.#isCareful = false;
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

  /** The health since the last call. What ends the run is told once. */
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
