import type { Scope } from './scopes.ts';

/** Who is calling, as the access token tells and the client's record confirms. */
export interface Credentials {
  readonly tenant: string;
  readonly clientId: string;
  /** What change entries show as actor (contract: how changes are recorded). */
  readonly clientName: string;
  readonly scopes: readonly Scope[];
}

/**
 * Answers at once where the token was seen before, so that the hot path of a call has no turn of the event loop.
 * Throws, or rejects with, an AccessTokenFault; any other error means that the token could not be checked.
 */
export type VerifyAccessToken = (token: string) => Credentials | Promise<Credentials>;

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Any one of these suffices. A route under `/:tenant` that declares none fails at boot. */
    scopes?: readonly Scope[];
    /** The message of this operation's 500, where clients match a certain one. */
    internalErrorMessage?: string;
  }

  interface FastifyRequest {
    /** Reading it on a route without scopes is a fault of the program and throws. */
    readonly credentials: Credentials;
    verifiedCredentials: Credentials | null;
  }
}
