import { LRUCache } from 'lru-cache';
import { within } from '../core/fairness/deadline.ts';
import { readAgainIfLost } from '../postgres/connections/unreachable.ts';

/** The cached state of a credential, at most 5 seconds old. undefined: there is none. */
export type FindState<State> = (tenant: string, id: string) => State | undefined | Promise<State | undefined>;

interface Entry<State> {
  state: State | undefined;
  /** The start of the query in milliseconds, so that the state is never older. */
  asOf: number;
}

// Ages in milliseconds. A revocation takes effect within 5 seconds in every process (contract 1), so no older state is
// used. Up to `maxFresh` a state is used directly, up to `maxStale` while it is refreshed. An older one waits for the
// database. If that does not answer within `maxWait`, a state up to `maxTrusted` is used; without one the call keeps
// waiting, up to the connection and statement timeouts.
const maxFresh = 1_000;
const maxStale = 3_000;
const maxTrusted = 5_000;
const maxWait = 1_500;

const maxEntries = 10_000;

/**
 * Caches the states of credentials: a busy one costs one indexed lookup a second instead of one per call. `read` gets
 * the previous state.
 */
export function createStateCache<State extends object>(
  read: (tenant: string, id: string, cached: State | undefined) => Promise<State | undefined>,
  /** Milliseconds of a monotonic clock. */
  elapsed: () => number,
): FindState<State> {
  const entries = new LRUCache<string, Entry<State>>({ maxSize: maxEntries, sizeCalculation: () => 1 });
  const loading = new Map<string, Promise<Entry<State>>>();

  async function load(key: string, tenant: string, id: string): Promise<Entry<State>> {
    const asOf = elapsed();
    const state = await readAgainIfLost(() => read(tenant, id, entries.peek(key)?.state));
    const entry = { state, asOf };
    entries.set(key, entry);
    return entry;
  }

  function loadOnce(key: string, tenant: string, id: string): Promise<Entry<State>> {
    return loading.getOrInsertComputed(key, () => load(key, tenant, id).finally(() => loading.delete(key)));
  }

  async function withFallback(
    cached: Entry<State> | undefined,
    answer: Promise<Entry<State>>,
  ): Promise<State | undefined> {
    if (cached === undefined) return (await answer).state;
    try {
      return (await within(maxWait, answer)).state;
    } catch {
      if (elapsed() - cached.asOf <= maxTrusted) return cached.state;
      return (await answer).state;
    }
  }

  return (tenant, id) => {
    const key = `${tenant} ${id}`;
    const cached = entries.get(key);
    const age = cached === undefined ? Number.POSITIVE_INFINITY : elapsed() - cached.asOf;
    if (cached !== undefined && age <= maxFresh) return cached.state;
    if (cached !== undefined && age <= maxStale) {
      loadOnce(key, tenant, id).catch(() => {});
      return cached.state;
    }
    return withFallback(cached, loadOnce(key, tenant, id));
  };
}
