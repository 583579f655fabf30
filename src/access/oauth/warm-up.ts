import { readAccessToken, signAccessToken } from './access-token.ts';
import type { GrantToken } from './grant.ts';
import type { SigningKeys } from './signing-keys.ts';
import { TokenError } from './token-error.ts';

/**
 * Makes the first token request and the first call with a token as quick as later ones: makes or reads the signing key,
 * signs a token that nobody gets, verifies it, and runs the grant for a client that cannot exist.
 */
export async function warmUpTokens(options: {
  keys: SigningKeys;
  issuer: string;
  /** Milliseconds since 1970. */
  now: () => number;
  grantToken: GrantToken;
}): Promise<void> {
  const { keys, issuer, now, grantToken } = options;
  const nobody = { tenant: '', clientId: '' };
  const token = await signAccessToken(await keys.toSign(), { issuer, now: now(), client: nobody, scopes: [] });
  await readAccessToken(token, { issuer, now: now(), findKey: (kid) => keys.toVerify(kid) });
  try {
    await grantToken({ grantType: 'client_credentials', clientId: '-', clientSecret: '-', scope: undefined });
  } catch (error) {
    if (!(error instanceof TokenError)) throw error;
  }
}
