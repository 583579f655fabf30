import { hash } from 'node:crypto';
import { Semaphore } from '../../core/fairness/semaphore.ts';
import type { StopSignal } from '../../core/stop-signal.ts';

/** Milliseconds from which a read is slow. */
export const slowFrom = 250;

/** Concurrent slow statements of a process; one tenant has at most half. A tenant without one may exceed this. */
export const maxSlowStatements = 4;

/** Cheap statements that a transaction needs. */
const controlsTransaction = /^(begin|start|set|commit)\b/i;

/** Milliseconds for which a tenant is watched after a slow statement. */
export const watchFor = 10_000;

/** Remembered statements of a tenant, and watched tenants. */
const maxRemembered = 200;
const maxWatched = 1_000;

interface Watched {
  until: number;
  /** Whether a statement was slow the last time, by the hash of its text, newest last. */
  readonly slow: Map<string, boolean>;
}

/**
 * Limits concurrent slow statements: a database divides its processors evenly among running statements, so that quick
 * statements are delayed by each slow one of other tenants.
 *
 * Only its duration shows that a statement is slow. So for 10 seconds after a slow one, a tenant's statements need a
 * place, unless they were quick the last time.
 */
export class SlowStatements {
  readonly #places: Semaphore;
  readonly #watched = new Map<string, Watched>();

  constructor(places = maxSlowStatements) {
    // A tenant without one need not wait for others.
    this.#places = new Semaphore({ places, reserve: places, name: 'slow statements' });
  }

  /** Sends the statement when it may run. Rejects with the signal's reason, or as `send` does. */
  async run<Result>(tenant: string, text: string, signal: StopSignal, send: () => Promise<Result>): Promise<Result> {
    const watched = this.#watchedNow(tenant);
    const isQuick = watched === undefined || controlsTransaction.test(text) || watched.slow.get(hashOf(text)) === false;
    const release = isQuick ? undefined : await this.#places.acquire(tenant, signal);
    const begun = performance.now();
    try {
      return await send();
    } finally {
      release?.();
      const isSlow = performance.now() - begun >= slowFrom;
      if (isSlow || watched !== undefined) this.#remember(tenant, text, isSlow);
    }
  }

  #watchedNow(tenant: string): Watched | undefined {
    const watched = this.#watched.get(tenant);
    if (watched === undefined || watched.until > performance.now()) return watched;
    this.#watched.delete(tenant);
    return undefined;
  }

  #remember(tenant: string, text: string, isSlow: boolean): void {
    const watched = this.#watched.get(tenant) ?? { until: 0, slow: new Map<string, boolean>() };
    if (isSlow) watched.until = performance.now() + watchFor;
    const key = hashOf(text);
    watched.slow.delete(key);
    watched.slow.set(key, isSlow);
    dropOldest(watched.slow, maxRemembered);
    if (watched.until > 0) this.#watched.set(tenant, watched);
    dropOldest(this.#watched, maxWatched);
  }
}

function dropOldest(map: Map<string, unknown>, max: number): void {
  const [oldest] = map.keys();
  if (map.size > max && oldest !== undefined) map.delete(oldest);
}

function hashOf(text: string): string {
  return hash('sha1', text);
}
