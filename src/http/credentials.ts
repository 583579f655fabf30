import type { Scope } from './scopes.ts';

/** The caller, as the access token names it and the client's record confirms. */
export interface Credentials {
  readonly tenant: string;
  readonly clientId: string;
  /** What change entries show as actor (contract: how changes are recorded). */
  readonly clientName: string;
  readonly scopes: readonly Scope[];
}

/**
 * Checks an access token. Returns without a promise where the token was seen before, so that most calls do not wait for
 * the event loop. Throws, or rejects with, an AccessTokenFault. Any other error means that the token could not be checked.
 */
export type VerifyAccessToken = (token: string) => Credentials | Promise<Credentials>;

/**
 * Checks a client's id and secret in an `Authorization: Basic` header, which comes from the address. Rejects with an AccessTokenFault,
 * and with rate_limit_exceeded (429) where too many checks have failed.
 */
export type VerifyBasic = (authorization: string, address: string) => Promise<Credentials>;

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Any one of these suffices. A route under `/:tenant` that declares none fails at boot. */
    scopes?: readonly Scope[];
    /** The message of this operation's 500, where clients match a certain one. */
    internalErrorMessage?: string;
  }

  interface FastifyRequest {
    /** Throws on a route without scopes: to read it there is a bug. */
    readonly credentials: Credentials;
    verifiedCredentials: Credentials | null;
  }
}
