import { AccessTokenFault } from '../../http/credentials.ts';
import type { Database } from '../../postgres/database.ts';
import { type ClientRecord, findClientBySecret } from './clients.ts';
import type { Attempt, GuessLimiter } from './guess-limiter.ts';
import { TokenError } from './token-error.ts';

/**
 * The client with the id and secret. Rejects with an AccessTokenFault if there is none, and with rate_limit_exceeded
 * (429) after too many failures from the address.
 */
export type CheckSecret = (client: {
  clientId: string;
  clientSecret: string;
  address: string;
}) => Promise<ClientRecord>;

/** Returns what `find` finds for a one-time secret; undefined means a wrong secret. Rejects as `CheckSecret` does. */
export type CheckOnce = <Result>(address: string, find: () => Promise<Result | undefined>) => Promise<Result>;

/** Checks secrets at sign-in. Wrong ones count together with those of the token endpoint. */
export function createSecretChecker(
  db: Database,
  guesses: GuessLimiter,
): { checkSecret: CheckSecret; checkOnce: CheckOnce } {
  async function limit<Result>(attempt: Attempt, find: () => Promise<Result | undefined>): Promise<Result> {
    try {
      return await guesses.limit(attempt, async () => {
        const result = await find();
        if (result === undefined) throw new TokenError('invalid_client', 'Invalid client');
        return result;
      });
    } catch (error) {
      throw error instanceof TokenError ? new AccessTokenFault('invalid') : error;
    }
  }

  return {
    checkSecret: (client) =>
      limit(client, () => findClientBySecret(db, client.clientId, client.clientSecret, client.address)),
    checkOnce: (address, find) => limit({ address }, find),
  };
}
