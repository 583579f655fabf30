import { setTimeout as sleep } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import { SharedReading } from '../../core/concurrency/shared-reading.ts';

/**
 * Milliseconds that what was read of a tenant is used. Whoever changes it waits a little longer before it answers, so a call that begins
 * after that answer never has what was there before, whichever process makes it.
 */
export const keysKnownFor = 50;

/** A timer may come a moment early, and the clocks of two machines do not run alike. */
const margin = 10;

const maxTenants = 10_000;

/** Resolves when no call that begins has keys or budgets of before. To be awaited after a change of them is committed, before it is answered. */
export async function keysReadAnew(): Promise<void> {
  await sleep(keysKnownFor + margin);
}

/** Reads for all calls of a tenant that begin in these milliseconds together. */
export function readForAll<Keys>(read: (tenant: string) => Promise<Keys>): (tenant: string) => Promise<Keys> {
  const known = new LRUCache<string, SharedReading<Keys>>({ max: maxTenants, ttl: keysKnownFor, ttlResolution: 0 });

  function begin(tenant: string): SharedReading<Keys> {
    const reading = new SharedReading({ tenant, writes: true }, () => read(tenant));
    known.set(tenant, reading);
    return reading;
  }

  return async (tenant) => {
    const kept = known.get(tenant);
    const reading = kept === undefined || kept.isLost ? begin(tenant) : kept;
    return await reading.result();
  };
}
