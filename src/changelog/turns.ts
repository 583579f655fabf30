import type { StopSignal } from '../stop-signal.ts';

interface Waiting {
  tenant: string;
  begin: () => void;
}

/** How much of a kind of work goes on at once; what is too much waits for its turn, whoever came first goes first. */
export class Turns {
  readonly #most: { inAll: number; ofOneTenant: number };
  readonly #underWay = new Map<string, number>();
  readonly #waiting = new Set<Waiting>();
  #inAll = 0;

  constructor(most: { inAll: number; ofOneTenant: number }) {
    this.#most = most;
  }

  /** Rejects with the signal's reason where that is given while the work waits. */
  async take<Result>(tenant: string, signal: StopSignal, work: () => Promise<Result>): Promise<Result> {
    await this.#turn(tenant, signal);
    try {
      return await work();
    } finally {
      this.#count(tenant, -1);
      this.#beginWaiting();
    }
  }

  async #turn(tenant: string, signal: StopSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#hasRoom(tenant)) {
      this.#count(tenant, 1);
      return;
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiting = { tenant, begin: resolve };
    const onAbort = () => {
      if (this.#waiting.delete(waiting)) reject(signal.reason);
    };
    this.#waiting.add(waiting);
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      await promise;
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }

  #beginWaiting(): void {
    for (const waiting of this.#waiting) {
      if (!this.#hasRoom(waiting.tenant)) continue;
      this.#waiting.delete(waiting);
      this.#count(waiting.tenant, 1);
      waiting.begin();
    }
  }

  #hasRoom(tenant: string): boolean {
    return this.#inAll < this.#most.inAll && (this.#underWay.get(tenant) ?? 0) < this.#most.ofOneTenant;
  }

  #count(tenant: string, change: 1 | -1): void {
    this.#inAll += change;
    const underWay = (this.#underWay.get(tenant) ?? 0) + change;
    if (underWay === 0) this.#underWay.delete(tenant);
    else this.#underWay.set(tenant, underWay);
  }
}
