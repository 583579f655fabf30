import { AccessTokenFault } from '../../http/credentials.ts';
import type { Database } from '../../postgres/database.ts';
import { secretMatches, tenantOfClientId } from './client-identity.ts';
import { type ClientRecord, findClient } from './clients.ts';
import type { GuessLimiter } from './guess-limiter.ts';
import { TokenError } from './token-error.ts';

/**
 * The client of the id and the secret. Rejects with an AccessTokenFault where there is none, and with rate_limit_exceeded
 * (429) where too many checks from the address have failed.
 */
export type CheckSecret = (client: {
  clientId: string;
  clientSecret: string;
  address: string;
}) => Promise<ClientRecord>;

/**
 * Gives what `find` gives for a secret that serves once. Rejects as `CheckSecret` does; undefined means that the secret is
 * wrong.
 */
export type TryOnce = <Result>(address: string, find: () => Promise<Result | undefined>) => Promise<Result>;

/** Checks secrets of people who sign in. Wrong ones count together with those of the token endpoint. */
export function createSecretChecker(
  db: Database,
  guesses: GuessLimiter,
): { checkSecret: CheckSecret; tryOnce: TryOnce } {
  async function findBySecret(clientId: string, clientSecret: string): Promise<ClientRecord> {
    const tenant = tenantOfClientId(clientId);
    const client = tenant === undefined ? undefined : await findClient(db, tenant, clientId);
    if (client === undefined || client.revoked || !secretMatches(clientSecret, client.secretHash)) throw wrongSecret();
    return client;
  }

  return {
    async checkSecret({ clientId, clientSecret, address }) {
      return await asFault(
        guesses.limit({ clientId, clientSecret, address }, () => findBySecret(clientId, clientSecret)),
      );
    },
    async tryOnce(address, find) {
      const findOrThrow = async () => {
        const result = await find();
        if (result === undefined) throw wrongSecret();
        return result;
      };
      return await asFault(guesses.limit({ address }, findOrThrow));
    },
  };
}

function wrongSecret(): TokenError {
  return new TokenError('invalid_client', 'Invalid client');
}

async function asFault<Result>(checked: Promise<Result>): Promise<Result> {
  return await checked.catch((error: unknown) => {
    throw error instanceof TokenError ? new AccessTokenFault('invalid') : error;
  });
}
