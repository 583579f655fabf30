import { LRUCache } from 'lru-cache';
import { within } from '../core/concurrency/deadline.ts';
import { readAgainIfLost } from '../postgres/connections/unreachable.ts';

/** What is known of a credential's record, 5 seconds old at most. undefined: there is none. */
export type FindState<State> = (tenant: string, id: string) => State | undefined | Promise<State | undefined>;

interface Entry<State> {
  state: State | undefined;
  /** When the query began, so that the state is never older than this says (milliseconds). */
  asOf: number;
}

// Ages in milliseconds. A revocation takes effect within 5 seconds in every process (contract 1), so no older state is
// used. A state up to `maxFresh` is used as it is. One up to `maxStale` is used while it is read again. For an older one
// the call waits for the database. Where that does not answer within `maxWait`, a state up to `maxTrusted` is used; without
// such a state the call goes on waiting, as long as a connection and a statement may take.
const maxFresh = 1_000;
const maxStale = 3_000;
const maxTrusted = 5_000;
const maxWait = 1_500;

const maxKnown = 10_000;

/**
 * Caches the states of credentials: a busy one costs one indexed look-up a second instead of one for each call. `read` gets the state that
 * was known before.
 */
export function createKnownStates<State extends object>(
  read: (tenant: string, id: string, known: State | undefined) => Promise<State | undefined>,
  /** Milliseconds of a clock that never steps back. */
  elapsed: () => number,
): FindState<State> {
  const entries = new LRUCache<string, Entry<State>>({ maxSize: maxKnown, sizeCalculation: () => 1 });
  const asking = new Map<string, Promise<Entry<State>>>();

  async function ask(key: string, tenant: string, id: string): Promise<Entry<State>> {
    const asOf = elapsed();
    const state = await readAgainIfLost(() => read(tenant, id, entries.peek(key)?.state));
    const entry = { state, asOf };
    entries.set(key, entry);
    return entry;
  }

  function askOnce(key: string, tenant: string, id: string): Promise<Entry<State>> {
    return asking.getOrInsertComputed(key, () => ask(key, tenant, id).finally(() => asking.delete(key)));
  }

  async function orElse(known: Entry<State> | undefined, answer: Promise<Entry<State>>): Promise<State | undefined> {
    if (known === undefined) return (await answer).state;
    try {
      return (await within(maxWait, answer)).state;
    } catch {
      if (elapsed() - known.asOf <= maxTrusted) return known.state;
      return (await answer).state;
    }
  }

  return (tenant, id) => {
    const key = `${tenant} ${id}`;
    const known = entries.get(key);
    const age = known === undefined ? Number.POSITIVE_INFINITY : elapsed() - known.asOf;
    if (known !== undefined && age <= maxFresh) return known.state;
    if (known !== undefined && age <= maxStale) {
      askOnce(key, tenant, id).catch(() => {});
      return known.state;
    }
    return orElse(known, askOnce(key, tenant, id));
  };
}
