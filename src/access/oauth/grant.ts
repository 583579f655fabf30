import OAuth2Server from '@node-oauth/oauth2-server';
import { isScope, type Scope } from '../../http/scopes.ts';
import type { Database } from '../../postgres/database.ts';
import { accessTokenLifetime, signAccessToken } from './access-token.ts';
import { findClientBySecret } from './clients.ts';
import type { SigningKeys } from './signing-keys.ts';
import { TokenError, type TokenErrorCode } from './token-error.ts';
import type { TokenRequest } from './token-request.ts';

interface TokenResponse {
  access_token: string;
  token_type: 'Bearer';
  expires_in: number;
  scope: string;
}

/** Issues a token, or rejects with a TokenError and notes the refusal with the address of the request. */
export type GrantToken = (request: TokenRequest, address?: string) => Promise<TokenResponse>;

interface GrantedClient extends OAuth2Server.Client {
  tenant: string;
  clientId: string;
  scopes: Scope[];
  rotations: number;
}

/** The client credentials grant (RFC 6749, 4.4), run by the grant library; see docs/decisions/access.md. */
export function createGrant(options: {
  db: Database;
  keys: SigningKeys;
  issuer: string;
  /** Milliseconds since 1970. */
  now: () => number;
}): GrantToken {
  const { db, keys, issuer, now } = options;

  const modelFor = (address: string | undefined): OAuth2Server.ClientCredentialsModel => ({
    async getClient(clientId, clientSecret) {
      const client = await findClientBySecret(db, clientId, clientSecret, address);
      if (client === undefined) return undefined;
      const { tenant, scopes, rotations } = client;
      return {
        id: clientId,
        grants: ['client_credentials'],
        tenant,
        clientId,
        scopes,
        rotations,
      } satisfies GrantedClient;
    },

    // The library requires a user, even for a client that acts for itself.
    async getUserFromClient(client) {
      return { id: client.id };
    },

    async validateScope(_user, client, requested) {
      const { tenant, scopes } = client as GrantedClient;
      return grantedScopes(tenant, scopes, requested);
    },

    async generateAccessToken(client, _user, scopes) {
      const key = await keys.toSign();
      return await signAccessToken(key, {
        issuer,
        now: now(),
        client: client as GrantedClient,
        scopes: scopes.filter(isScope),
      });
    },

    // Not used: the verifier checks tokens without the library.
    async getAccessToken() {
      return undefined;
    },

    // Tokens are not stored. The library's hook completes the response.
    async saveToken(token, client, user) {
      const { tenant } = client as GrantedClient;
      const scope = [...(token.scope ?? []), `tenant=${tenant}`];
      return { accessToken: token.accessToken, scope, client, user, expires_in: accessTokenLifetime };
    },
  });

  return async ({ grantType, clientId, clientSecret, scope }, address) => {
    const server = new OAuth2Server({
      model: modelFor(address),
      accessTokenLifetime,
      allowExtendedTokenAttributes: true,
    });
    const body = {
      ...(grantType === undefined ? {} : { grant_type: grantType }),
      client_id: clientId,
      client_secret: clientSecret,
      ...(scope === undefined ? {} : { scope }),
    };
    const headers = { 'content-type': 'application/x-www-form-urlencoded', 'content-length': '1' };
    const response = new OAuth2Server.Response();
    try {
      await server.token(new OAuth2Server.Request({ headers, method: 'POST', query: {}, body }), response);
    } catch (error) {
      throw tokenErrorOf(error);
    }
    return response.body as TokenResponse;
  };
}

/** The requested scopes in their order, by default all of the client. Undefined if the client lacks one. */
function grantedScopes(tenant: string, scopes: Scope[], requested: string[] = []): Scope[] | undefined {
  // A client may send the `scope` of an earlier response, which ends with the tenant.
  const named = requested.filter((name) => name !== `tenant=${tenant}`);
  if (named.length === 0) return scopes;
  const granted = [...new Set(named)].filter(isScope).filter((scope) => scopes.includes(scope));
  return named.every((name) => granted.some((scope) => scope === name)) ? granted : undefined;
}

const codes: Readonly<Record<string, TokenErrorCode>> = {
  invalid_request: 'invalid_request',
  invalid_client: 'invalid_client',
  invalid_scope: 'invalid_scope',
  unsupported_grant_type: 'unsupported_grant_type',
  // The library reports it where a client may not use a grant. No client may use another one here.
  unauthorized_client: 'unsupported_grant_type',
};

function tokenErrorOf(error: unknown): unknown {
  if (!(error instanceof OAuth2Server.OAuthError)) return error;
  const code = codes[error.name];
  if (code !== undefined) return new TokenError(code, error.message);
  // The library wraps our own errors.
  return 'inner' in error ? error.inner : error;
}
