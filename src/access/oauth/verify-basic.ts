import { AccessTokenFault, type Credentials, type VerifyBasic } from '../../http/credentials.ts';
import type { Database } from '../../postgres/database.ts';
import { createBoundedCache } from './bounded-cache.ts';
import { hashClientSecret, secretMatches, tenantOfClientId } from './client-identity.ts';
import type { FindClientState } from './client-states.ts';
import { findClient } from './clients.ts';
import { createGuessLimiter } from './guess-limiter.ts';
import { TokenError } from './token-error.ts';
import { readBasic } from './token-request.ts';

const maxClients = 10_000;

interface KnownClient {
  secretHash: Uint8Array;
  credentials: Omit<Credentials, 'clientName'>;
}

/**
 * Checks clients by HTTP Basic, for senders that cannot get a token. For a client whose secret was right before, a
 * check costs a hash and a look-up in memory. A revocation takes effect as for tokens.
 */
export function createBasicVerifier(options: {
  db: Database;
  findClientState: FindClientState;
  /** Milliseconds of a clock that never steps back. */
  elapsed: () => number;
}): VerifyBasic {
  const { db, findClientState, elapsed } = options;
  const limiter = createGuessLimiter(elapsed);
  const known = createBoundedCache<KnownClient>(maxClients);

  async function check(clientId: string, clientSecret: string): Promise<KnownClient> {
    const tenant = tenantOfClientId(clientId);
    const client = tenant === undefined ? undefined : await findClient(db, tenant, clientId);
    if (client === undefined || client.revoked || !secretMatches(clientSecret, client.secretHash)) {
      throw new TokenError('invalid_client', 'Invalid client');
    }
    const { tenant: of, scopes } = client;
    return { secretHash: hashClientSecret(clientSecret), credentials: { tenant: of, clientId, scopes } };
  }

  return async (authorization, address) => {
    try {
      const { clientId, clientSecret } = readBasic(authorization);
      const seen = known.get(clientId);
      const isKnown = seen !== undefined && secretMatches(clientSecret, seen.secretHash);
      const client = isKnown
        ? seen
        : await limiter.limit({ clientId, clientSecret, address }, () => check(clientId, clientSecret));
      if (!isKnown) known.set(clientId, client);
      const state = await findClientState(client.credentials.tenant, clientId);
      if (state === undefined || state.revoked) throw new AccessTokenFault('invalid');
      return { ...client.credentials, clientName: state.name };
    } catch (error) {
      throw error instanceof TokenError ? new AccessTokenFault('invalid') : error;
    }
  };
}
