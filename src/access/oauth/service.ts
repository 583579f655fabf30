import type { JWK } from 'jose';
import type { Sealer } from '../../core/sealing.ts';
import type { VerifyAccessToken, VerifyBasic } from '../../http/credentials.ts';
import type { ReadRestriction } from '../../http/restriction.ts';
import type { Database } from '../../postgres/database.ts';
import { type CheckOnce, type CheckSecret, createSecretChecker } from './check-secret.ts';
import { createClientStates, type FindClientState } from './client-states.ts';
import { createGrant, type GrantToken } from './grant.ts';
import { createGuessLimiter, type GuessLimiter } from './guess-limiter.ts';
import { createSigningKeys, type SigningKeys } from './signing-keys.ts';
import { createAccessTokenVerifier } from './verify-access-token.ts';
import { createBasicVerifier } from './verify-basic.ts';
import './tables.ts';
import { readAccessToken, signAccessToken } from './access-token.ts';
import { TokenError } from './token-error.ts';

export interface OAuthService {
  issuer: string;
  /** A UUID, the same for all processes on one database. */
  installation: string;
  grantToken: GrantToken;
  /** Counts wrong secrets of every kind. */
  guesses: GuessLimiter;
  checkSecret: CheckSecret;
  checkOnce: CheckOnce;
  findClientState: FindClientState;
  verifyAccessToken: VerifyAccessToken;
  verifyBasic: VerifyBasic;
  publishedKeys: () => Promise<JWK[]>;
  /** Does in advance the work that would delay the first token and the first authenticated call. */
  warmUp: () => Promise<void>;
}

/** Builds the token services of a process. `baseUrl`, if set, names the issuer. */
export async function createOAuthService(options: {
  db: Database;
  sealer: Sealer;
  baseUrl: string | undefined;
  /** Milliseconds since 1970. */
  now: () => number;
  /** Milliseconds of a monotonic clock. */
  elapsed: () => number;
  onUnreadableKey: (kid: string) => void;
  readRestriction: ReadRestriction;
}): Promise<OAuthService> {
  const { db, sealer, baseUrl, now, elapsed, onUnreadableKey, readRestriction } = options;
  const installation = await readInstallationId(db);
  const issuer = baseUrl ?? `urn:uuid:${installation}`;
  const keys = createSigningKeys({ db, sealer, now, elapsed, onUnreadableKey });
  const grantToken = createGrant({ db, keys, issuer, now });
  const findClientState = createClientStates(db, elapsed, readRestriction);
  const guesses = createGuessLimiter(elapsed);
  return {
    issuer,
    installation,
    grantToken,
    guesses,
    ...createSecretChecker(db, guesses),
    findClientState,
    verifyAccessToken: createAccessTokenVerifier({
      issuer,
      keys,
      findClientState,
      now,
    }),
    verifyBasic: createBasicVerifier({ db, elapsed, findClientState }),
    publishedKeys: () => keys.published(),
    warmUp: () => warmUpTokens({ keys, issuer, now, grantToken }),
  };
}

/**
 * The UUID of the installation, the same for all processes on one database. Names the token issuer if no public address
 * is set (contract: settings).
 */
export async function readInstallationId(db: Database): Promise<string> {
  const { id } = await db.selectFrom('installation').select('id').executeTakeFirstOrThrow();
  return id;
}

/**
 * Makes the first token request and authenticated call as fast as later ones: creates or reads the signing key, signs
 * and verifies a token that is discarded, and runs the grant for a nonexistent client.
 */
async function warmUpTokens(options: {
  keys: SigningKeys;
  issuer: string;
  /** Milliseconds since 1970. */
  now: () => number;
  grantToken: GrantToken;
}): Promise<void> {
  const { keys, issuer, now, grantToken } = options;
  const client = { tenant: '', clientId: '' };
  const token = await signAccessToken(await keys.toSign(), { issuer, now: now(), client, scopes: [] });
  await readAccessToken(token, { issuer, now: now(), findKey: (kid) => keys.toVerify(kid) });
  try {
    await grantToken({ grantType: 'client_credentials', clientId: '-', clientSecret: '-', scope: undefined });
  } catch (error) {
    if (!(error instanceof TokenError)) throw error;
  }
}
