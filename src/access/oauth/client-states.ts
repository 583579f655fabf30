import { isDeepStrictEqual } from 'node:util';
import type { WrittenRestriction } from '../../core/written-restriction.ts';
import type { ReadRestriction, Restriction } from '../../http/restriction.ts';
import type { Scope } from '../../http/scopes.ts';
import type { Database } from '../../postgres/database.ts';
import { createKnownStates, type FindState } from '../known-states.ts';
import { findClient } from './clients.ts';

/** What a call needs to know about its client that its token does not say. */
export interface ClientState {
  name: string;
  revoked: boolean;
  scopes: readonly Scope[];
  restriction: Restriction | undefined;
}

export type FindClientState = FindState<ClientState>;

export function createClientStates(
  db: Database,
  elapsed: () => number,
  readRestriction: ReadRestriction,
): FindClientState {
  return createKnownStates<ClientState>(async (tenant, clientId, known) => {
    const client = await findClient(db, tenant, clientId);
    if (client === undefined) return undefined;
    const { name, revoked, scopes } = client;
    return {
      name,
      revoked,
      scopes,
      restriction: storedRestriction(client.restriction, known?.restriction, readRestriction),
    };
  }, elapsed);
}

/** A restriction from the database. It is parsed once, as long as it stays the same. */
export function storedRestriction(
  written: readonly WrittenRestriction[] | null,
  known: Restriction | undefined,
  readRestriction: ReadRestriction,
): Restriction | undefined {
  if (written === null) return undefined;
  if (known !== undefined && isDeepStrictEqual(known.written, written)) return known;
  try {
    return readRestriction(written);
  } catch (error) {
    // It was checked when it was stored. The fault is none of the caller's query.
    throw new Error('A stored restriction cannot be read.', { cause: error });
  }
}
