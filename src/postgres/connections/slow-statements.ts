import { hash } from 'node:crypto';
import { Semaphore } from '../../core/fairness/semaphore.ts';
import type { StopSignal } from '../../core/stop-signal.ts';

/** Milliseconds. A statement that reads and takes this long or longer is slow. */
export const slowFrom = 250;

/** Slow statements of a process at once; of one tenant at most half. A tenant without one may have one besides. */
export const maxSlowStatements = 4;

/** These take no processor time, and a transaction needs them. */
const controlsTransaction = /^(begin|start|set|commit)\b/i;

/** Milliseconds after a slow statement for which its tenant is one that may send more. */
export const watchFor = 10_000;

/** Statements that are remembered of a tenant, by their texts, and tenants that are watched. */
const maxRemembered = 200;
const maxWatched = 1_000;

interface Watched {
  until: number;
  /** Whether the statement with this hash of its text was slow the last time. The newest ones are last. */
  readonly wasSlow: Map<string, boolean>;
}

/**
 * Lets few slow statements run at once. A database divides its processors evenly among the statements that run, so a quick
 * statement of one tenant waits behind each slow one of the others.
 *
 * Only the time that a statement takes tells that it is slow. So a tenant is watched for 10 seconds after a slow one.
 * Meanwhile a statement needs one of the places for slow ones, unless it was quick the last time.
 */
export class SlowStatements {
  readonly #places: Semaphore;
  readonly #watched = new Map<string, Watched>();

  constructor(places = maxSlowStatements) {
    // A tenant that has none need not wait, however many of others run.
    this.#places = new Semaphore({ places, reserve: places, name: 'slow statements' });
  }

  /** Sends the statement when it may run. Rejects with the signal's reason, or as `send` does. */
  async run<Result>(tenant: string, text: string, signal: StopSignal, send: () => Promise<Result>): Promise<Result> {
    const watched = this.#watchedNow(tenant);
    const isQuick =
      watched === undefined || controlsTransaction.test(text) || watched.wasSlow.get(hashOf(text)) === false;
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
    const watched = this.#watched.get(tenant) ?? { until: 0, wasSlow: new Map<string, boolean>() };
    if (isSlow) watched.until = performance.now() + watchFor;
    const key = hashOf(text);
    watched.wasSlow.delete(key);
    watched.wasSlow.set(key, isSlow);
    dropOldest(watched.wasSlow, maxRemembered);
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
