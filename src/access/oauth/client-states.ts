import { LRUCache } from 'lru-cache';
import { within } from '../../core/concurrency/deadline.ts';
import type { WrittenRestriction } from '../../core/written-restriction.ts';
import type { ReadRestriction, Restriction } from '../../http/restriction.ts';
import { readAgainIfLost } from '../../postgres/connections/unreachable.ts';
import type { Database } from '../../postgres/database.ts';
import { findClient } from './clients.ts';

/** What a call needs to know about its client that its token does not say. */
export interface ClientState {
  name: string;
  revoked: boolean;
  restriction: Restriction | undefined;
}

/** undefined: no such client. */
export type FindClientState = (
  tenant: string,
  clientId: string,
) => ClientState | undefined | Promise<ClientState | undefined>;

interface Entry {
  state: ClientState | undefined;
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

const maxClients = 10_000;

/** Caches the states of clients: a busy client costs one indexed look-up a second instead of one for each call. */
export function createClientStates(
  db: Database,
  elapsed: () => number,
  readRestriction: ReadRestriction,
): FindClientState {
  const entries = new LRUCache<string, Entry>({ maxSize: maxClients, sizeCalculation: () => 1 });
  const asking = new Map<string, Promise<Entry>>();

  async function ask(key: string, tenant: string, clientId: string): Promise<Entry> {
    const asOf = elapsed();
    const client = await readAgainIfLost(() => findClient(db, tenant, clientId));
    const state = client && {
      name: client.name,
      revoked: client.revoked,
      restriction: client.restriction === null ? undefined : restrictionOf(key, client.restriction),
    };
    const entry = { state, asOf };
    entries.set(key, entry);
    return entry;
  }

  /** The restriction of a client never changes, so it is parsed once. */
  function restrictionOf(key: string, written: readonly WrittenRestriction[]): Restriction {
    const known = entries.peek(key)?.state?.restriction;
    if (known !== undefined) return known;
    try {
      return readRestriction(written);
    } catch (error) {
      // It was checked when the client was made. The fault is none of the caller's query.
      throw new Error('The restriction of a client cannot be read.', { cause: error });
    }
  }

  function askOnce(key: string, tenant: string, clientId: string): Promise<Entry> {
    const running = asking.get(key);
    if (running !== undefined) return running;
    const started = ask(key, tenant, clientId).finally(() => asking.delete(key));
    asking.set(key, started);
    return started;
  }

  async function orElse(known: Entry | undefined, answer: Promise<Entry>): Promise<ClientState | undefined> {
    if (known === undefined) return (await answer).state;
    try {
      return (await within(maxWait, answer)).state;
    } catch {
      if (elapsed() - known.asOf <= maxTrusted) return known.state;
      return (await answer).state;
    }
  }

  return (tenant, clientId) => {
    const key = `${tenant} ${clientId}`;
    const known = entries.get(key);
    const age = known === undefined ? Number.POSITIVE_INFINITY : elapsed() - known.asOf;
    if (known !== undefined && age <= maxFresh) return known.state;
    if (known !== undefined && age <= maxStale) {
      askOnce(key, tenant, clientId).catch(() => {});
      return known.state;
    }
    return orElse(known, askOnce(key, tenant, clientId));
  };
}
