import './tables.ts';
import { hash } from 'node:crypto';
import type { JWK } from 'jose';
import { LRUCache } from 'lru-cache';
import type { Sealer } from '../../core/sealing.ts';
import {
  AccessTokenFault,
  type Credentials,
  type ReadRestriction,
  type VerifyAccessToken,
  type VerifyBasic,
} from '../../http/credentials.ts';
import type { Database } from '../../postgres/database.ts';
import { type AccessTokenClaims, readAccessToken, signAccessToken } from './access-token.ts';
import { type CheckOnce, type CheckSecret, createSecretChecker } from './check-secret.ts';
import { hashClientSecret, secretMatches } from './client-identity.ts';
import { type ClientState, createClientStates, type FindClientState } from './client-states.ts';
import { createGrant, type GrantToken } from './grant.ts';
import { createGuessLimiter, type GuessLimiter } from './guess-limiter.ts';
import { createSigningKeys, type SigningKeys } from './signing-keys.ts';
import { TokenError } from './token-error.ts';
import { readBasic } from './token-request.ts';

const maxClients = 10_000;

interface VerifiedClient {
  secretHash: Uint8Array;
  client: VerifiedCredential;
}

/** A client with what its secret or token permits, as far as the client still has it. */
interface VerifiedCredential extends Pick<Credentials, 'tenant' | 'clientId' | 'scopes'> {
  readonly rotations: number;
}

/** Throws an AccessTokenFault if the client was revoked, or if its secret was replaced since. */
function credentialsOf(
  { tenant, clientId, scopes, rotations }: VerifiedCredential,
  state: ClientState | undefined,
): Credentials {
  if (state === undefined || state.revoked || rotations < state.rotations) throw new AccessTokenFault('invalid');
  const { name: clientName, restriction } = state;
  return { tenant, clientId, clientName, scopes: scopes.filter((scope) => state.scopes.includes(scope)), restriction };
}

/**
 * Verifies clients by HTTP Basic, for senders that cannot get a token. A client verified before costs a hash and a
 * lookup in memory. A revocation or a rotation takes effect as for tokens.
 */
function createBasicVerifier(options: {
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
    const client = await checkSecret({ clientId, clientSecret, address });
    const entry = { secretHash: hashClientSecret(clientSecret), client };
    verified.set(clientId, entry);
    return entry;
  }

  return async (authorization, address) => {
    const { clientId, clientSecret } = readCredentials(authorization);
    const { client } = await check(clientId, clientSecret, address);
    return credentialsOf(client, await findClientState(client.tenant, clientId));
  };
}

function readCredentials(authorization: string): { clientId: string; clientSecret: string } {
  try {
    return readBasic(authorization);
  } catch (error) {
    throw error instanceof TokenError ? new AccessTokenFault('invalid') : error;
  }
}

const maxTokens = 10_000;

interface VerifiedToken {
  claims: AccessTokenClaims;
  /** Of the client's state when it was last used. */
  known?: { readonly state: ClientState; readonly credentials: Credentials };
}

/**
 * Verifies access tokens. A signature is verified once, and the token then cached by its hash. A call costs that hash
 * and three lookups in memory: token not expired, key valid, client not revoked.
 */
function createAccessTokenVerifier(options: {
  issuer: string;
  keys: SigningKeys;
  findClientState: FindClientState;
  /** Milliseconds since 1970. */
  now: () => number;
}): VerifyAccessToken {
  const { issuer, keys, findClientState, now } = options;
  const verified = new LRUCache<string, VerifiedToken>({ maxSize: maxTokens, sizeCalculation: () => 1 });

  function admit(token: VerifiedToken): Credentials | Promise<Credentials> {
    const { claims } = token;
    if (claims.expiresAt <= now()) throw new AccessTokenFault('expired');
    if (!keys.holds(claims.kid)) throw new AccessTokenFault('invalid');
    const state = findClientState(claims.tenant, claims.clientId);
    return state instanceof Promise ? state.then((found) => confirm(token, found)) : confirm(token, state);
  }

  async function verify(text: string, digest: string): Promise<Credentials> {
    const claims = await readAccessToken(text, { issuer, now: now(), findKey: (kid) => keys.toVerify(kid) });
    const token = { claims };
    verified.set(digest, token);
    return await admit(token);
  }

  return (text) => {
    const digest = hash('sha256', text, 'base64url');
    const token = verified.get(digest);
    return token === undefined ? verify(text, digest) : admit(token);
  };
}

function confirm(token: VerifiedToken, state: ClientState | undefined): Credentials {
  if (token.known?.state === state && token.known !== undefined) return token.known.credentials;
  const credentials = credentialsOf(token.claims, state);
  if (state !== undefined) token.known = { state, credentials };
  return credentials;
}

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
