import * as oidc from 'openid-client';
import type { Claims } from './rules.ts';

/** A person, as the provider names them. */
export interface Person {
  readonly issuer: string;
  readonly subject: string;
  readonly claims: Claims;
  /** Asks for the claims again; undefined where the provider gives none. */
  readonly refreshToken: string | undefined;
  /** When what the provider said ends, in milliseconds since 1970. */
  readonly expiresAt: number;
}

/** What the answer of the provider is checked against. The browser keeps it, sealed. */
export interface Checks {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
}

/** The company's OpenID provider. All of it rejects where the provider cannot be reached or its answer is wrong. */
export interface IdentityProvider {
  /** Where the browser goes to sign in. */
  begin(): Promise<{ url: URL; checks: Checks }>;
  /** The person of a callback, whose address has the answer; undefined where the provider did not give this code, or gave it before. */
  finish(callback: URL, checks: Checks): Promise<Person | 'declined' | undefined>;
  /** The same person with the claims of today; undefined where the provider ended the sign-in. */
  renew(refreshToken: string, subject: string): Promise<Person | undefined>;
  /** Where the browser goes to sign out there too; undefined where the provider has no address for it. */
  signOutUrl(): Promise<URL | undefined>;
}

export interface ProviderSettings {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** The address of our callback, and of the page after signing out. */
  readonly callback: string;
  readonly afterSignOut: string;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/** Seconds. */
export const providerLimits = { answer: 10, clockTolerance: 30 };

/** Milliseconds after which the provider's description is read again. */
const descriptionLifetime = 60 * 60_000;

const scope = 'openid profile email offline_access';

export function createIdentityProvider(settings: ProviderSettings): IdentityProvider {
  const { issuer, clientId, clientSecret, callback, afterSignOut, now } = settings;
  let known: { reading: Promise<oidc.Configuration>; until: number } | undefined;

  async function discover(): Promise<oidc.Configuration> {
    const server = new URL(issuer);
    const metadata = { client_secret: clientSecret, [oidc.clockTolerance]: providerLimits.clockTolerance };
    return await oidc.discovery(server, clientId, metadata, oidc.ClientSecretPost(clientSecret), {
      timeout: providerLimits.answer,
      // The settings take plain HTTP for this machine alone. Signatures count, whatever carried them.
      execute: [oidc.enableNonRepudiationChecks, ...(server.protocol === 'http:' ? [oidc.allowInsecureRequests] : [])],
    });
  }

  async function configuration(): Promise<oidc.Configuration> {
    if (known === undefined || known.until <= now())
      known = { reading: discover(), until: now() + descriptionLifetime };
    const { reading } = known;
    try {
      return await reading;
    } catch (error) {
      if (known?.reading === reading) known = undefined;
      throw error;
    }
  }

  return {
    async begin() {
      const config = await configuration();
      const checks = { state: oidc.randomState(), nonce: oidc.randomNonce(), verifier: oidc.randomPKCECodeVerifier() };
      const { scopes_supported: scopes } = config.serverMetadata();
      const url = oidc.buildAuthorizationUrl(config, {
        redirect_uri: callback,
        scope: scopes?.includes('offline_access') === false ? scope.replace(' offline_access', '') : scope,
        state: checks.state,
        nonce: checks.nonce,
        code_challenge: await oidc.calculatePKCECodeChallenge(checks.verifier),
        code_challenge_method: 'S256',
      });
      return { url, checks };
    },

    async finish(address, { state, nonce, verifier }) {
      try {
        const tokens = await oidc.authorizationCodeGrant(await configuration(), address, {
          expectedState: state,
          expectedNonce: nonce,
          pkceCodeVerifier: verifier,
          idTokenExpected: true,
        });
        return personOf(tokens);
      } catch (error) {
        if (error instanceof oidc.AuthorizationResponseError && error.error === 'access_denied') return 'declined';
        if (isInvalidGrant(error)) return undefined;
        throw error;
      }
    },

    async renew(refreshToken, subject) {
      try {
        const config = await configuration();
        const tokens = await oidc.refreshTokenGrant(config, refreshToken);
        const claims = tokens.claims() ?? (await oidc.fetchUserInfo(config, tokens.access_token, subject));
        if (claims.sub !== subject) throw new Error('The provider renewed the sign-in of another person.');
        return { issuer, subject, claims, refreshToken: tokens.refresh_token ?? refreshToken, expiresAt: now() };
      } catch (error) {
        if (isInvalidGrant(error)) return undefined;
        throw error;
      }
    },

    async signOutUrl() {
      const config = await configuration();
      if (config.serverMetadata().end_session_endpoint === undefined) return undefined;
      return oidc.buildEndSessionUrl(config, { post_logout_redirect_uri: afterSignOut });
    },
  };

  function personOf(tokens: Awaited<ReturnType<typeof oidc.authorizationCodeGrant>>): Person {
    const claims = tokens.claims();
    if (claims === undefined) throw new Error('The provider gave no ID token.');
    const { refresh_token: refreshToken } = tokens;
    return { issuer: claims.iss, subject: claims.sub, claims, refreshToken, expiresAt: claims.exp * 1_000 };
  }
}

function isInvalidGrant(error: unknown): boolean {
  return error instanceof oidc.ResponseBodyError && error.error === 'invalid_grant';
}
