import { setTimeout as sleep } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import { SharedReading } from '../../core/fairness/shared-work.ts';

/**
 * Milliseconds for which a tenant's keys and budgets are cached. A change of them is answered after that time, so that
 * a call that begins later never uses old ones, in any process.
 */
export const keyCacheTime = 50;

/** Covers early timers and clock drift between machines. */
const margin = 10;

const maxTenants = 10_000;

/** Resolves when every new call uses the current keys and budgets. Await it after committing a change of them. */
export async function keyCachesExpired(): Promise<void> {
  await sleep(keyCacheTime + margin);
}

/** Shares one read among all calls of a tenant that begin within the cache time. */
export function readForAll<Keys>(read: (tenant: string) => Promise<Keys>): (tenant: string) => Promise<Keys> {
  const cache = new LRUCache<string, SharedReading<Keys>>({ max: maxTenants, ttl: keyCacheTime, ttlResolution: 0 });

  function begin(tenant: string): SharedReading<Keys> {
    const reading = new SharedReading({ tenant, writes: true }, () => read(tenant));
    cache.set(tenant, reading);
    return reading;
  }

  return async (tenant) => {
    const cached = cache.get(tenant);
    const reading = cached === undefined || cached.isLost ? begin(tenant) : cached;
    return await reading.result();
  };
}
