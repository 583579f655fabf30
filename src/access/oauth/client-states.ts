import { isDeepStrictEqual } from 'node:util';
import { AnnalsError } from '../../core/errors.ts';
import type { WrittenRestriction } from '../../core/written-restriction.ts';
import type { ReadRestriction, Restriction } from '../../http/credentials.ts';
import type { Scope } from '../../http/scopes.ts';
import type { Database } from '../../postgres/database.ts';
import { createStateCache, type FindState } from '../state-cache.ts';
import { findClient } from './clients.ts';

/** What a call must know about its client that is not in its token. */
export interface ClientState {
  name: string;
  revoked: boolean;
  scopes: readonly Scope[];
  restriction: Restriction | undefined;
  /** How often its secret was replaced. */
  rotations: number;
  /** The clients through which it was made, the outermost first. */
  makers: readonly string[];
}

export type FindClientState = FindState<ClientState>;

export function createClientStates(
  db: Database,
  elapsed: () => number,
  readRestriction: ReadRestriction,
): FindClientState {
  return createStateCache<ClientState>(async (tenant, clientId, previous) => {
    const client = await findClient(db, tenant, clientId);
    if (client === undefined) return undefined;
    const { name, revoked, scopes, rotations, makers } = client;
    const stored = storedRestriction(client.restriction, previous?.restriction, readRestriction);
    const isRefused = revoked || stored === 'refused';
    const restriction = stored === 'refused' ? undefined : stored;
    return { name, revoked: isRefused, scopes, rotations, makers, restriction };
  }, elapsed);
}

/**
 * A restriction from the database, parsed again only after it changes. `refused`: a maker was narrowed since, so that
 * its query has a term on what its makers no longer show.
 */
export function storedRestriction(
  written: readonly WrittenRestriction[] | null,
  previous: Restriction | undefined,
  readRestriction: ReadRestriction,
): Restriction | 'refused' | undefined {
  if (written === null) return undefined;
  if (previous !== undefined && isDeepStrictEqual(previous.written, written)) return previous;
  try {
    return readRestriction(written);
  } catch (error) {
    if (written.length > 1 && error instanceof AnnalsError) return 'refused';
    // It was valid when stored, so the caller's query is not at fault.
    throw new Error('A stored restriction cannot be read.', { cause: error });
  }
}
