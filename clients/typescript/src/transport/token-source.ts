import { type AccessToken, AccessTokens, type TokenProvider } from './access-tokens.ts';
import { ApiError, isRecord } from './api-error.ts';
import type { ApiRequest } from './request.ts';

/** The OAuth client that the service issued. */
export interface ClientCredentials {
  readonly clientId: string;
  readonly clientSecret: string;
  /** Scopes with blanks between them; left out: all that the client has. */
  readonly scope?: string | undefined;
}

/** Tokens of the service's token endpoint. `fetchJson` sends the request and parses the answer. */
export function tokensOfClient(
  credentials: ClientCredentials,
  fetchJson: (request: ApiRequest) => Promise<unknown>,
): TokenProvider {
  return new AccessTokens(async () => {
    const sentAt = Date.now();
    return accessTokenOf(await fetchJson(tokenRequest(credentials)), sentAt);
  });
}

/** The request for an access token. It may always be repeated: at worst, the service makes another token. */
function tokenRequest({ clientId, clientSecret, scope }: ClientCredentials): ApiRequest {
  const form = new URLSearchParams({ grant_type: 'client_credentials', client_id: clientId });
  form.set('client_secret', clientSecret);
  if (scope !== undefined) form.set('scope', scope);
  return {
    method: 'POST',
    path: '/oauth/token',
    body: { type: 'application/x-www-form-urlencoded', content: form.toString() },
    repeat: 'always',
    anonymous: true,
  };
}

/** The token of an answer. Its life counts from `sentAt`, in milliseconds since 1970. */
function accessTokenOf(answer: unknown, sentAt: number): AccessToken {
  if (isRecord(answer) && typeof answer.access_token === 'string' && typeof answer.expires_in === 'number') {
    return { text: answer.access_token, expiresAt: sentAt + answer.expires_in * 1_000 };
  }
  throw new ApiError('invalid_answer', 'The token endpoint answered without an access token.');
}
