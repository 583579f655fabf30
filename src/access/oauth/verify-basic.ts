import { LRUCache } from 'lru-cache';
import { AccessTokenFault, type Credentials, type VerifyBasic } from '../../http/credentials.ts';
import type { Database } from '../../postgres/database.ts';
import { createSecretChecker } from './check-secret.ts';
import { hashClientSecret, secretMatches } from './client-identity.ts';
import type { FindClientState } from './client-states.ts';
import { createGuessLimiter } from './guess-limiter.ts';
import { TokenError } from './token-error.ts';
import { readBasic } from './token-request.ts';

const maxClients = 10_000;

interface VerifiedClient {
  secretHash: Uint8Array;
  credentials: Pick<Credentials, 'tenant' | 'clientId' | 'scopes'>;
}

/**
 * Verifies clients by HTTP Basic, for senders that cannot get a token. A client verified before costs a hash and a
 * lookup in memory. A revocation takes effect as for tokens.
 */
export function createBasicVerifier(options: {
  db: Database;
  findClientState: FindClientState;
  /** Milliseconds of a monotonic clock. */
  elapsed: () => number;
}): VerifyBasic {
  const { db, findClientState, elapsed } = options;
  const { checkSecret } = createSecretChecker(db, createGuessLimiter(elapsed));
  const verified = new LRUCache<string, VerifiedClient>({ maxSize: maxClients, sizeCalculation: () => 1 });

  async function check(clientId: string, clientSecret: string, address: string): Promise<VerifiedClient> {
    const cached = verified.get(clientId);
    if (cached !== undefined && secretMatches(clientSecret, cached.secretHash)) return cached;
    const { tenant, scopes } = await checkSecret({ clientId, clientSecret, address });
    const client = { secretHash: hashClientSecret(clientSecret), credentials: { tenant, clientId, scopes } };
    verified.set(clientId, client);
    return client;
  }

  return async (authorization, address) => {
    const { clientId, clientSecret } = readCredentials(authorization);
    const { credentials } = await check(clientId, clientSecret, address);
    const state = await findClientState(credentials.tenant, clientId);
    if (state === undefined || state.revoked) throw new AccessTokenFault('invalid');
    return { ...credentials, clientName: state.name, restriction: state.restriction };
  };
}

function readCredentials(authorization: string): { clientId: string; clientSecret: string } {
  try {
    return readBasic(authorization);
  } catch (error) {
    throw error instanceof TokenError ? new AccessTokenFault('invalid') : error;
  }
}
