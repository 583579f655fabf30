import { AsyncLocalStorage } from 'node:async_hooks';
import { createLocalJWKSet, type JSONWebKeySet } from 'jose';
import * as oidc from 'openid-client';
import { isStorable } from '../../core/storable-text.ts';
import { type LogoutKeys, type ProviderLogout, readLogoutToken } from './logout-token.ts';
import type { Claims } from './rules.ts';

/** A person as the provider identifies them. */
export interface Person {
  readonly issuer: string;
  readonly subject: string;
  readonly claims: Claims;
  /** Requests the claims again; undefined if the provider issues none. */
  readonly refreshToken: string | undefined;
  /** The signed token, as a hint when the person signs out at the provider. */
  readonly idToken: string | undefined;
  /** The session at the provider (OpenID Connect Back-Channel Logout 1.0); undefined if the ID token names none. */
  readonly sid: string | undefined;
  /** When the provider's statement expires, in milliseconds since 1970. */
  readonly expiresAt: number;
}

/** What the provider's response is checked against. The browser keeps it, sealed. */
export interface Checks {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
}

/** The company's OpenID provider. Every method rejects if the provider is unreachable or its response is invalid. */
export interface IdentityProvider {
  readonly issuer: string;
  /** The URL of the sign-in page. With `keepsNothing` for a sign-in that is not renewed. */
  begin(options?: { keepsNothing?: boolean }): Promise<{ url: URL; checks: Checks }>;
  /** The person of a callback URL; undefined if its code is not the provider's or was used before. */
  finish(callback: URL, checks: Checks): Promise<Person | 'declined' | undefined>;
  /**
   * The person with current claims; undefined if the provider ended the sign-in. `onReplaced` gets the replacing
   * refresh token before the renewal settles, even if it rejects: the provider may no longer accept the old one.
   */
  renew(
    refreshToken: string,
    subject: string,
    onReplaced?: (refreshToken: string) => void,
  ): Promise<Person | undefined>;
  /** The provider's sign-out URL; undefined if it has none. */
  signOutUrl(idToken: string | undefined): Promise<URL | undefined>;
  /** What a logout token ends. Rejects with a LogoutTokenFault for a token that does not count. */
  readLogout(token: string): Promise<ProviderLogout>;
}

interface ProviderSettings {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** Scopes requested in addition to the default ones. */
  readonly scopes: readonly string[];
  /** Whether these lack a claim that a rule requires, so that the userinfo endpoint must provide it. */
  readonly lacksClaims: (claims: Claims) => boolean;
  /** The URL of our callback, and of the page after signing out. */
  readonly callback: string;
  readonly afterSignOut: string;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/** Seconds. */
const providerLimits = { answer: 10, clockTolerance: 30 };

/** Milliseconds until the provider's metadata is read again. */
const descriptionLifetime = 60 * 60_000;
/** The same before a signature is checked, because keys may be replaced without notice. */
export const keysLifetime = 10_000;
/** The same after a failure. Anybody can begin a sign-in and send a token, which must not cost a request each. */
const failureLifetime = 1_000;

const defaultScopes = ['openid', 'profile', 'email'];

/** Longer hints are left out when signing out: servers refuse request lines of more than 8 KiB. */
const maxHint = 6_000;

export function createIdentityProvider(settings: ProviderSettings): IdentityProvider {
  const { issuer, clientId, clientSecret, scopes, lacksClaims, callback, afterSignOut, now } = settings;
  let cached: { reading: Promise<oidc.Configuration>; at: number; hasFailed: boolean } | undefined;
  let logoutKeys: { reading: Promise<LogoutKeys>; until: number } | undefined;

  async function discover(): Promise<oidc.Configuration> {
    const server = new URL(issuer);
    const metadata = { client_secret: clientSecret, [oidc.clockTolerance]: providerLimits.clockTolerance };
    return await oidc.discovery(server, clientId, metadata, oidc.ClientSecretPost(clientSecret), {
      timeout: providerLimits.answer,
      [oidc.customFetch]: fetchAndNoteReplacement,
      // Plain HTTP is allowed for this machine only. Signatures are checked over any transport.
      execute: [oidc.enableNonRepudiationChecks, ...(server.protocol === 'http:' ? [oidc.allowInsecureRequests] : [])],
    });
  }

  /** The keys are read on first use, and are then as old as the metadata. */
  async function configuration(lifetime: number): Promise<oidc.Configuration> {
    const age = cached === undefined ? Number.POSITIVE_INFINITY : now() - cached.at;
    if (cached === undefined || age >= (cached.hasFailed ? failureLifetime : lifetime)) {
      const begun = { reading: discover(), at: now(), hasFailed: false };
      cached = begun;
      begun.reading.catch(() => {
        begun.hasFailed = true;
      });
    }
    return await cached.reading.catch((error: unknown) => {
      throw withAdvice(error);
    });
  }

  /** The keys for logout tokens. One reading serves all of them until they are due again, also if it failed. */
  async function readLogoutKeys(): Promise<LogoutKeys> {
    if (logoutKeys === undefined || now() >= logoutKeys.until) {
      const begun = { reading: fetchKeys(), until: now() + keysLifetime };
      logoutKeys = begun;
      begun.reading.catch(() => {
        begun.until = now() + failureLifetime;
      });
    }
    return await logoutKeys.reading;
  }

  async function fetchKeys(): Promise<LogoutKeys> {
    const metadata = (await configuration(keysLifetime)).serverMetadata();
    const { jwks_uri: address = '', id_token_signing_alg_values_supported: algorithms } = metadata;
    if (new URL(address).protocol !== new URL(issuer).protocol) throw new Error('The jwks_uri has another protocol.');
    const response = await fetch(address, {
      headers: { accept: 'application/json, application/jwk-set+json' },
      redirect: 'error',
      signal: AbortSignal.timeout(providerLimits.answer * 1_000),
    });
    if (response.status !== 200)
      throw new Error(`The keys of the OpenID provider were answered with ${response.status}.`);
    const keys = (await response.json()) as JSONWebKeySet;
    return { issuer: metadata.issuer, algorithms, find: createLocalJWKSet(keys) };
  }

  function scopeFor({ scopes_supported: supported }: oidc.ServerMetadata, keepsNothing: boolean): string {
    const offline = supported?.includes('offline_access') === false ? [] : ['offline_access'];
    const all = [...new Set([...defaultScopes, ...offline, ...scopes])];
    return all.filter((scope) => !(keepsNothing && scope === 'offline_access')).join(' ');
  }

  /** The claims of the ID token, completed from the userinfo endpoint. If that fails, only the name may be missing. */
  async function claimsOf(
    config: oidc.Configuration,
    { access_token: token }: oidc.TokenEndpointResponse,
    { claims, subject }: { claims: oidc.IDToken | undefined; subject: string },
  ): Promise<Claims> {
    const hasMore = config.serverMetadata().userinfo_endpoint !== undefined;
    if (claims !== undefined && !hasMore) return claims;
    const required = claims === undefined || lacksClaims(claims);
    if (!required && claims.name !== undefined) return claims;
    try {
      return filledClaims(claims ?? {}, await oidc.fetchUserInfo(config, token, subject));
    } catch (error) {
      if (required) throw error;
      return claims;
    }
  }

  return {
    issuer,

    async begin({ keepsNothing = false } = {}) {
      const config = await configuration(descriptionLifetime);
      const checks = { state: oidc.randomState(), nonce: oidc.randomNonce(), verifier: oidc.randomPKCECodeVerifier() };
      const url = oidc.buildAuthorizationUrl(config, {
        redirect_uri: callback,
        scope: scopeFor(config.serverMetadata(), keepsNothing),
        state: checks.state,
        nonce: checks.nonce,
        code_challenge: await oidc.calculatePKCECodeChallenge(checks.verifier),
        code_challenge_method: 'S256',
      });
      return { url, checks };
    },

    async finish(address, { state, nonce, verifier }) {
      try {
        const config = await configuration(keysLifetime);
        const tokens = await oidc.authorizationCodeGrant(config, address, {
          expectedState: state,
          expectedNonce: nonce,
          pkceCodeVerifier: verifier,
          idTokenExpected: true,
        });
        return await personOf(config, tokens);
      } catch (error) {
        if (error instanceof oidc.AuthorizationResponseError && error.error === 'access_denied') return 'declined';
        if (isInvalidGrant(error)) return undefined;
        throw error;
      }
    },

    async renew(refreshToken, subject, onReplaced) {
      let next: string | undefined;
      const note = (token: string) => {
        next = token;
      };
      try {
        const config = await configuration(keysLifetime);
        const tokens = await replacementNote.run(note, () => oidc.refreshTokenGrant(config, refreshToken));
        const signed = tokens.claims();
        if (signed !== undefined && signed.sub !== subject) {
          next = undefined;
          throw new Error('The provider renewed the sign-in of another person.');
        }
        // Rejects userinfo about another person.
        const claims = await claimsOf(config, tokens, { claims: signed, subject });
        const { id_token: idToken } = tokens;
        return {
          issuer,
          subject,
          claims,
          refreshToken: next ?? refreshToken,
          idToken,
          sid: sidOf(signed),
          expiresAt: now(),
        };
      } catch (error) {
        if (isInvalidGrant(error)) return undefined;
        throw error;
      } finally {
        if (next !== undefined) onReplaced?.(next);
      }
    },

    async signOutUrl(idToken) {
      const config = await configuration(descriptionLifetime);
      if (config.serverMetadata().end_session_endpoint === undefined) return undefined;
      return oidc.buildEndSessionUrl(config, {
        post_logout_redirect_uri: afterSignOut,
        ...(idToken !== undefined && idToken.length <= maxHint && { id_token_hint: idToken }),
      });
    },

    readLogout: (token) => readLogoutToken(token, { clientId, now: now(), keys: readLogoutKeys }),
  };

  async function personOf(
    config: oidc.Configuration,
    tokens: Awaited<ReturnType<typeof oidc.authorizationCodeGrant>>,
  ): Promise<Person> {
    const signed = tokens.claims();
    if (signed === undefined) throw new Error('The provider gave no ID token.');
    const { iss, sub: subject, exp } = signed;
    const claims = await claimsOf(config, tokens, { claims: signed, subject });
    const { refresh_token: refreshToken, id_token: idToken } = tokens;
    return { issuer: iss, subject, claims, refreshToken, idToken, sid: sidOf(signed), expiresAt: exp * 1_000 };
  }
}

/** Called with the refresh token that the token endpoint returns on renewal. */
const replacementNote = new AsyncLocalStorage<(refreshToken: string) => void>();

/**
 * Notes the replacement on arrival: refreshTokenGrant() returns it only after verifying the ID token, for which it may
 * fetch the provider's keys. If that fails, the replacement would be lost, with the old token already spent.
 */
async function fetchAndNoteReplacement(url: string, options: oidc.CustomFetchOptions): Promise<Response> {
  const response = await fetch(url, options as RequestInit);
  const note = replacementNote.getStore();
  if (note !== undefined && options.method === 'POST' && response.status === 200) {
    // The library rejects an answer that is not JSON.
    const answer = await response
      .clone()
      .json()
      .catch(() => undefined);
    if (typeof answer?.refresh_token === 'string') note(answer.refresh_token);
  }
  return response;
}

function sidOf(signed: Claims | undefined): string | undefined {
  const { sid } = signed ?? {};
  return typeof sid === 'string' && sid !== '' && isStorable(sid) ? sid : undefined;
}

function isInvalidGrant(error: unknown): boolean {
  return error instanceof oidc.ResponseBodyError && error.error === 'invalid_grant';
}

/**
 * The claims of an ID token, completed by others. An address and its verification come from one source: what one says
 * of its address proves nothing about another's.
 */
export function filledClaims(signed: Claims, more: Claims): Claims {
  const { email, email_verified: _, ...filled } = { ...more, ...signed };
  if (email === undefined) return filled;
  const emailSource = signed.email === undefined ? more : signed;
  const verified = emailSource.email_verified ?? (more.email === email ? more.email_verified : undefined);
  return { ...filled, email, ...(verified !== undefined && { email_verified: verified }) };
}

const unknownAuthority = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);

/** Adds advice if the certificate's authority is unknown to Node, such as a company's own. */
function withAdvice(error: unknown): unknown {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code !== undefined && unknownAuthority.has(code))
      return new Error(
        `The certificate of the OpenID provider is from an authority that Node does not know (${code}). Start Annals with the authority's certificate in NODE_EXTRA_CA_CERTS.`,
        { cause: error },
      );
  }
  return error;
}
