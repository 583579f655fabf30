import { AnnalsError } from '../errors.ts';
import type { StopSignal } from '../stop-signal.ts';

export interface SemaphoreLimits {
  /** How many places there are; left out: any number. */
  readonly places?: number;
  /** How many places one tenant can have; left out: half of them, and at least one. */
  readonly maxOfTenant?: number;
  /** How many callers of one tenant can wait; left out: any number. */
  readonly maxWaitingOfTenant?: number;
  /** What the places are for, in the message of a refusal: `calls to providers`. */
  readonly name?: string;
}

/** Gives the place back. A second call does nothing. */
export type Release = () => void;

interface Waiting {
  begin(): void;
}

/**
 * Shares places among tenants. A tenant gets a further place only where at least as many places stay free as it
 * has then, so one tenant never has more than half, and several that want all they can get leave places free for the
 * next one. Callers that wait get their turn tenant by tenant, those of one tenant in the order they came.
 *
 * @example
 * const calls = new Semaphore({ places: 64, maxOfTenant: 32 });
 * const answer = await calls.use('acme', signal, () => callProvider());
 */
export class Semaphore {
  readonly #maxOfTenant: number;
  readonly #maxWaitingOfTenant: number;
  readonly #name: string;
  readonly #taken = new Map<string, number>();
  /** The tenant that has waited longest for a turn comes first. */
  readonly #waiting = new Map<string, Set<Waiting>>();
  #free: number;

  constructor(limits: SemaphoreLimits) {
    const { places = Number.POSITIVE_INFINITY, maxWaitingOfTenant = Number.POSITIVE_INFINITY, name = 'work' } = limits;
    this.#maxOfTenant = limits.maxOfTenant ?? Math.max(1, Math.floor(places / 2));
    this.#maxWaitingOfTenant = maxWaitingOfTenant;
    this.#name = name;
    this.#free = places;
  }

  /** How many callers have a place, of one tenant or of all. */
  taken(tenant?: string): number {
    if (tenant !== undefined) return this.#taken.get(tenant) ?? 0;
    return this.#taken.values().reduce((sum, taken) => sum + taken, 0);
  }

  /** How many callers wait, of one tenant or of all. */
  waiting(tenant?: string): number {
    if (tenant !== undefined) return this.#waiting.get(tenant)?.size ?? 0;
    return this.#waiting.values().reduce((sum, { size }) => sum + size, 0);
  }

  /** A place, or undefined where the caller would have to wait for one. */
  tryAcquire(tenant: string): Release | undefined {
    if (this.#waiting.has(tenant) || !this.#hasPlace(tenant)) return undefined;
    return this.#take(tenant);
  }

  /**
   * Waits for a place. Rejects with the signal's reason once that is aborted, and with rate_limit_exceeded (429) where
   * too many callers of the tenant wait already.
   */
  async acquire(tenant: string, signal?: StopSignal): Promise<Release> {
    signal?.throwIfAborted();
    return this.tryAcquire(tenant) ?? (await this.#wait(tenant, signal));
  }

  /** Does the work as soon as there is a place for it; rejects as `acquire` does, or with what the work throws. */
  async use<Result>(tenant: string, signal: StopSignal | undefined, work: () => Promise<Result>): Promise<Result> {
    const release = await this.acquire(tenant, signal);
    try {
      return await work();
    } finally {
      release();
    }
  }

  async #wait(tenant: string, signal: StopSignal | undefined): Promise<Release> {
    const queue = this.#waiting.get(tenant) ?? new Set();
    if (queue.size >= this.#maxWaitingOfTenant) throw this.#refusal();
    const { promise, resolve, reject } = Promise.withResolvers<Release>();
    const waiting: Waiting = { begin: () => resolve(this.#take(tenant)) };
    const onAbort = () => {
      if (!queue.delete(waiting)) return;
      if (queue.size === 0) this.#waiting.delete(tenant);
      reject(signal?.reason);
    };
    queue.add(waiting);
    this.#waiting.set(tenant, queue);
    signal?.addEventListener('abort', onAbort, { once: true });
    try {
      return await promise;
    } finally {
      signal?.removeEventListener('abort', onAbort);
    }
  }

  #hasPlace(tenant: string): boolean {
    const taken = this.taken(tenant);
    return taken < this.#maxOfTenant && this.#free > 0 && (taken === 0 || taken + 1 < this.#free);
  }

  #take(tenant: string): Release {
    this.#taken.set(tenant, this.taken(tenant) + 1);
    this.#free -= 1;
    let given = true;
    return () => {
      if (!given) return;
      given = false;
      this.#giveBack(tenant);
    };
  }

  #giveBack(tenant: string): void {
    const taken = this.taken(tenant) - 1;
    if (taken === 0) this.#taken.delete(tenant);
    else this.#taken.set(tenant, taken);
    this.#free += 1;
    // One place more can make room for one caller of several tenants: of each the next one, in turn.
    for (const [waitingTenant, queue] of [...this.#waiting]) this.#serve(waitingTenant, queue);
  }

  #serve(tenant: string, queue: Set<Waiting>): void {
    if (!this.#hasPlace(tenant)) return;
    for (const waiting of queue) {
      queue.delete(waiting);
      // The tenant had its turn: all others that wait come before it.
      this.#waiting.delete(tenant);
      if (queue.size > 0) this.#waiting.set(tenant, queue);
      waiting.begin();
      return;
    }
  }

  #refusal(): AnnalsError {
    const most = `at most ${this.#maxOfTenant} at once`;
    const waiting = this.#maxWaitingOfTenant === 0 ? '' : `, and at most ${this.#maxWaitingOfTenant} that wait`;
    return new AnnalsError(
      'rate_limit_exceeded',
      `The tenant has used its share of ${this.#name}: ${most}${waiting}. Try again shortly.`,
      { headers: { 'Retry-After': '1' } },
    );
  }
}
