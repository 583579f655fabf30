import { AnnalsError } from '../errors.ts';
import type { StopSignal } from '../stop-signal.ts';

interface SemaphoreLimits {
  /** Number of places; default: no limit. */
  readonly places?: number;
  /** Maximum number of places of one tenant; default: half of all places, and at least one. */
  readonly maxOfTenant?: number;
  /** Additional places, for callers of a tenant that has none; default: none. */
  readonly reserve?: number;
  /** Maximum number of callers of one tenant that wait; default: no limit. */
  readonly maxWaitingOfTenant?: number;
  /** Whose share it is, for the message of a refusal; default: `tenant`. */
  readonly of?: string;
  /** What the places are for, for refusals and metrics: `calls to providers`. */
  readonly name?: string;
}

/** The use of a semaphore, over all tenants. */
interface ShareFigures {
  readonly name: string;
  /** Infinity: there is no limit over all tenants. */
  readonly places: number;
  readonly taken: number;
  readonly waiting: number;
}

/** Semaphores with a name, by weak reference, so that a semaphore ends with its owner. */
const named = new Set<WeakRef<Semaphore>>();

/** The figures of the process's named semaphores; those of one name are added up. */
export function shareFigures(): ShareFigures[] {
  const figures = new Map<string, ShareFigures>();
  for (const reference of named) {
    const semaphore = reference.deref();
    if (semaphore === undefined) {
      named.delete(reference);
      continue;
    }
    const { name, places } = semaphore;
    const others = figures.get(name) ?? { name, places: 0, taken: 0, waiting: 0 };
    figures.set(name, {
      name,
      places: others.places + places,
      taken: others.taken + semaphore.taken(),
      waiting: others.waiting + semaphore.waiting(),
    });
  }
  return [...figures.values()];
}

/** Releases the place; idempotent. */
export type Release = () => void;

interface Waiting {
  readonly places: number;
  begin(): void;
}

/**
 * Shares places among tenants. A tenant gets another place only if at least as many places stay free as it then has. So
 * one tenant never has more than half, and several tenants that take their maximum leave places free for the next one.
 * Waiting tenants take turns; the callers of one tenant get places in the order of their calls.
 *
 * @example
 * const calls = new Semaphore({ places: 64, maxOfTenant: 32 });
 * const answer = await calls.use('acme', signal, () => callProvider());
 */
export class Semaphore {
  readonly name: string;
  readonly places: number;
  readonly #maxOfTenant: number;
  readonly #reserve: number;
  readonly #of: string;
  readonly #maxWaitingOfTenant: number;
  readonly #taken = new Map<string, number>();
  /** In the order of their last turns, oldest first. */
  readonly #waiting = new Map<string, Waiting[]>();
  /** Below 0 while places of the reserve are taken. */
  #free: number;

  constructor(limits: SemaphoreLimits) {
    const { places = Number.POSITIVE_INFINITY, maxWaitingOfTenant = Number.POSITIVE_INFINITY, name = 'work' } = limits;
    this.#maxOfTenant = limits.maxOfTenant ?? Math.max(1, Math.floor(places / 2));
    this.#reserve = limits.reserve ?? 0;
    this.#of = limits.of ?? 'tenant';
    this.#maxWaitingOfTenant = maxWaitingOfTenant;
    this.name = name;
    this.places = places;
    this.#free = places;
    if (limits.name !== undefined) named.add(new WeakRef(this));
  }

  /** The number of callers that have a place, of one tenant or of all. */
  taken(tenant?: string): number {
    if (tenant !== undefined) return this.#taken.get(tenant) ?? 0;
    return this.#taken.values().reduce((sum, taken) => sum + taken, 0);
  }

  /** The number of callers that wait, of one tenant or of all. */
  waiting(tenant?: string): number {
    if (tenant !== undefined) return this.#waiting.get(tenant)?.length ?? 0;
    return this.#waiting.values().reduce((sum, { length }) => sum + length, 0);
  }

  /** Whether a caller of another tenant waits. */
  othersWait(tenant: string): boolean {
    return this.#waiting.size > (this.#waiting.has(tenant) ? 1 : 0);
  }

  /** Takes one or more places; undefined if the caller would have to wait. */
  tryAcquire(tenant: string, places = 1): Release | undefined {
    if (this.#waiting.has(tenant) || !this.#hasPlaces(tenant, places)) return undefined;
    return this.#take(tenant, places);
  }

  /**
   * Waits for one or more places at once. Rejects with the signal's reason when it is aborted. Rejects with
   * rate_limit_exceeded (429) if too many callers of the tenant wait already.
   */
  async acquire(tenant: string, signal?: StopSignal, places = 1): Promise<Release> {
    signal?.throwIfAborted();
    return this.tryAcquire(tenant, places) ?? (await this.#wait(tenant, signal, places));
  }

  /** Runs the work in a place. Rejects as `acquire` does, or with the error of the work. */
  async use<Result>(tenant: string, signal: StopSignal | undefined, work: () => Promise<Result>): Promise<Result> {
    const release = await this.acquire(tenant, signal);
    try {
      return await work();
    } finally {
      release();
    }
  }

  async #wait(tenant: string, signal: StopSignal | undefined, places: number): Promise<Release> {
    const queue = this.#waiting.get(tenant) ?? [];
    if (queue.length >= this.#maxWaitingOfTenant) throw this.#refusal(tenant, places);
    const { promise, resolve, reject } = Promise.withResolvers<Release>();
    const waiting: Waiting = { places, begin: () => resolve(this.#take(tenant, places)) };
    const onAbort = () => {
      const index = queue.indexOf(waiting);
      if (index === -1) return;
      queue.splice(index, 1);
      if (queue.length === 0) this.#waiting.delete(tenant);
      reject(signal?.reason);
    };
    queue.push(waiting);
    this.#waiting.set(tenant, queue);
    signal?.addEventListener('abort', onAbort, { once: true });
    try {
      return await promise;
    } finally {
      signal?.removeEventListener('abort', onAbort);
    }
  }

  #hasPlaces(tenant: string, places: number): boolean {
    const taken = this.taken(tenant);
    if (taken + places > this.#maxOfTenant) return false;
    return taken === 0 ? places <= this.#free + this.#reserve : taken + places <= this.#free - places;
  }

  #take(tenant: string, places: number): Release {
    this.#taken.set(tenant, this.taken(tenant) + places);
    this.#free -= places;
    let isReleased = false;
    return () => {
      if (isReleased) return;
      isReleased = true;
      this.#release(tenant, places);
    };
  }

  #release(tenant: string, places: number): void {
    const taken = this.taken(tenant) - places;
    if (taken === 0) this.#taken.delete(tenant);
    else this.#taken.set(tenant, taken);
    this.#free += places;
    if (this.#waiting.size === 0) return;
    // The tenant has just had a turn.
    this.#moveLast(tenant);
    // The places may suffice for the next callers of several tenants, in turn.
    let served = true;
    while (served) {
      served = false;
      for (const [waitingTenant, queue] of [...this.#waiting]) served = this.#serve(waitingTenant, queue) || served;
    }
  }

  /** Whether the next caller of the tenant got its places. */
  #serve(tenant: string, queue: Waiting[]): boolean {
    const [waiting] = queue;
    if (waiting === undefined || !this.#hasPlaces(tenant, waiting.places)) return false;
    queue.shift();
    if (queue.length === 0) this.#waiting.delete(tenant);
    else this.#moveLast(tenant);
    waiting.begin();
    return true;
  }

  /** Moves the tenant behind all others that wait. */
  #moveLast(tenant: string): void {
    const queue = this.#waiting.get(tenant);
    // Each reordering makes long-lived garbage.
    if (queue === undefined || this.#waiting.size === 1) return;
    this.#waiting.delete(tenant);
    this.#waiting.set(tenant, queue);
  }

  #refusal(tenant: string, places: number): AnnalsError {
    return new AnnalsError('rate_limit_exceeded', `${this.#reason(tenant, places)} Try again shortly.`, {
      headers: { 'Retry-After': '1' },
    });
  }

  #reason(tenant: string, places: number): string {
    const isWaiting = this.#maxWaitingOfTenant > 0;
    if (!isWaiting && this.taken(tenant) + places <= this.#maxOfTenant) {
      return `Others have the places that this process has for ${this.name}.`;
    }
    const waiting = isWaiting ? `, and at most ${this.#maxWaitingOfTenant} that wait` : '';
    return `The ${this.#of} has used its share of ${this.name}: at most ${this.#maxOfTenant} at once${waiting}.`;
  }
}
