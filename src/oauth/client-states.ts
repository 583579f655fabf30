import { within } from '../concurrency/deadline.ts';
import type { Database } from '../db/database.ts';
import { createBoundedCache } from './bounded-cache.ts';
import { findClient } from './clients.ts';

/** What a call needs to know of its client beyond its token. */
export interface ClientState {
  name: string;
  revoked: boolean;
}

/** undefined: no such client. */
export type FindClientState = (
  tenant: string,
  clientId: string,
) => ClientState | undefined | Promise<ClientState | undefined>;

interface Entry {
  state: ClientState | undefined;
  /** Taken before the database was asked, so that it can only be too old (milliseconds). */
  asOf: number;
}

// Ages in milliseconds. A revocation acts within 5 seconds in every process (contract 1), so nothing older is ever
// used. Up to `fresh` nobody asks; up to `stale` the call goes on while somebody does; then it waits for the answer,
// and where the database gives none in time, what is known serves until `distrusted`.
const fresh = 1_000;
const stale = 3_000;
const distrusted = 5_000;
const patience = 1_500;

const mostClients = 10_000;

/** Keeps clients' states at hand: one indexed look-up a second for a client that is busy, none for each call. */
export function createClientStates(db: Database, elapsed: () => number): FindClientState {
  const entries = createBoundedCache<Entry>(mostClients);
  const asking = new Map<string, Promise<Entry>>();

  async function ask(key: string, tenant: string, clientId: string): Promise<Entry> {
    const asOf = elapsed();
    const client = await findClient(db, tenant, clientId);
    const entry = { state: client && { name: client.name, revoked: client.revoked }, asOf };
    entries.set(key, entry);
    return entry;
  }

  function askOnce(key: string, tenant: string, clientId: string): Promise<Entry> {
    const running = asking.get(key);
    if (running !== undefined) return running;
    const started = ask(key, tenant, clientId).finally(() => asking.delete(key));
    asking.set(key, started);
    return started;
  }

  async function orElse(known: Entry | undefined, answer: Promise<Entry>): Promise<ClientState | undefined> {
    try {
      return (await within(patience, answer)).state;
    } catch (error) {
      if (known !== undefined && elapsed() - known.asOf <= distrusted) return known.state;
      throw error;
    }
  }

  return (tenant, clientId) => {
    const key = `${tenant} ${clientId}`;
    const known = entries.get(key);
    const age = known === undefined ? Number.POSITIVE_INFINITY : elapsed() - known.asOf;
    if (known !== undefined && age <= fresh) return known.state;
    if (known !== undefined && age <= stale) {
      askOnce(key, tenant, clientId).catch(() => {});
      return known.state;
    }
    return orElse(known, askOnce(key, tenant, clientId));
  };
}
