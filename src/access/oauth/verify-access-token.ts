import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { AccessTokenFault, type Credentials, type VerifyAccessToken } from '../../http/credentials.ts';
import { type AccessTokenClaims, readAccessToken } from './access-token.ts';
import type { ClientState, FindClientState } from './client-states.ts';
import type { SigningKeys } from './signing-keys.ts';

const maxTokens = 10_000;

interface VerifiedToken {
  claims: AccessTokenClaims;
  credentials: Credentials | undefined;
}

/**
 * Verifies access tokens. A signature is verified once, and the token then cached by its hash. A call costs that hash
 * and three lookups in memory: token not expired, key valid, client not revoked.
 */
export function createAccessTokenVerifier(options: {
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
    return state instanceof Promise ? state.then((found) => credentialsOf(token, found)) : credentialsOf(token, state);
  }

  async function verify(text: string, digest: string): Promise<Credentials> {
    const claims = await readAccessToken(text, { issuer, now: now(), findKey: (kid) => keys.toVerify(kid) });
    const token = { claims, credentials: undefined };
    verified.set(digest, token);
    return await admit(token);
  }

  return (text) => {
    const digest = hash('sha256', text, 'base64url');
    const token = verified.get(digest);
    return token === undefined ? verify(text, digest) : admit(token);
  };
}

function credentialsOf(token: VerifiedToken, state: ClientState | undefined): Credentials {
  if (state === undefined || state.revoked) throw new AccessTokenFault('invalid');
  const { tenant, clientId, scopes } = token.claims;
  token.credentials ??= { tenant, clientId, clientName: state.name, scopes, restriction: state.restriction };
  return token.credentials;
}
