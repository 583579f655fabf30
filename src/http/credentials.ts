import type { FastifyRequest } from 'fastify';
import type { AnnalsError } from '../core/errors.ts';
import type { PathPattern } from '../core/path-pattern.ts';
import type { WrittenRestriction } from '../core/written-restriction.ts';
import type { Query } from '../query/ast.ts';
import type { Scope } from './scopes.ts';

/** Where a request came from. */
export interface Caller {
  /** The address: that of the client where the proxy before Annals is trusted. */
  readonly address: string;
  /** The program, as it names itself; undefined where it does not. */
  readonly program: string | undefined;
}

const maxProgram = 200;

/** The address and the program of a request. Anybody can write what a program says of itself, so no character of it hides others. */
export function callerOf({ ip: address, headers }: Pick<FastifyRequest, 'ip' | 'headers'>): Caller {
  const program = (headers['user-agent'] ?? '').replaceAll(/[\p{Cc}\p{Cf}]+/gu, ' ').trim();
  return { address, program: program === '' ? undefined : program.slice(0, maxProgram) };
}

/** The caller, as the access token names it and the client's record confirms. */
export interface Credentials {
  readonly tenant: string;
  readonly clientId: string;
  /** Of a key: the client whose person made it. */
  readonly makerId?: string | undefined;
  /** What change entries show as actor (contract: how changes are recorded). */
  readonly clientName: string;
  readonly scopes: readonly Scope[];
  /** Of a person who signed in with a company's account: what the OpenID provider knows them by. */
  readonly person?: { readonly issuer: string; readonly subject: string } | undefined;
  /** Of a key: the models that it may call, as `provider/model`. Undefined: those of the tenant. */
  readonly models?: readonly string[] | undefined;
  /** Of a key: the requests that it may send a second. Undefined: as many as its tenant. */
  readonly rate?: number | undefined;
  /** Undefined: all that the scopes permit. */
  readonly restriction?: Restriction | undefined;
  /** Of a viewer token: who looks, and whether they get files. */
  readonly viewer?: { readonly subject: string; readonly mayExport: boolean } | undefined;
}

/** Who writes documents of which tenant. */
export interface Author extends Pick<Credentials, 'tenant' | 'person'> {
  /** What change entries show. */
  readonly actor: string;
}

export function authorOf({ tenant, clientName: actor, person }: Credentials): Author {
  return { tenant, actor, person };
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

/** Checks a key of a tenant, from an address. Rejects as `VerifyBasic` does. */
export type VerifyKey = (tenant: string, key: string, address: string) => Promise<Credentials>;

/** Checks a viewer token. Throws, or rejects with, an AccessTokenFault. */
export type VerifyViewerToken = (token: string) => Credentials | Promise<Credentials>;

/** Who calls the operations of the console: there a session stands for the access token (contract 13). */
export interface ConsoleAccess {
  /** What is wrong with the page that the request comes from, if anything is. */
  faultOfOrigin(request: FastifyRequest): AnnalsError | undefined;
  /** The caller, by the request's cookie. Rejects with an AccessTokenFault. */
  verify(request: FastifyRequest): Promise<Credentials>;
  /** What every answer has. */
  headers(): Readonly<Record<string, string>>;
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The route is that of the console's session: it is reached by that path, as it is written, and by no other. */
    isOfSession?: boolean;
    /** Any one of these suffices. A route under `/:tenant` that declares none fails at boot. */
    scopes?: readonly Scope[];
    /**
     * The route answers a credential that has a restriction with what the restriction shows. A route that does not say so refuses
     * such a credential: what tells of the whole tenant cannot be forgotten.
     */
    appliesRestriction?: true;
    /** The route takes keys beside access tokens: a program that cannot renew tokens calls it. */
    takesKeys?: true;
    /** The route takes viewer tokens, and nothing else. */
    isOfViewer?: true;
    /** The message of this operation's 500, where clients match a certain one. */
    internalErrorMessage?: string;
    /** Answers 500 with that message while the database is away, where every other operation is 503 (contract 3). */
    hidesOutages?: true;
  }

  interface FastifyRequest {
    /** Throws on a route without scopes: to read it there is a bug. */
    readonly credentials: Credentials;
    verifiedCredentials: Credentials | null;
    /** For an answer that goes on: rejects with an AccessTokenFault once the token or the session has ended. */
    verifyAgain(): Promise<void>;
  }
}

/** The two faults a token can have, in the words that clients match (contract: authentication). */
const faults = {
  invalid: { faultstring: 'Invalid access token', errorcode: 'oauth.v2.InvalidAccessToken' },
  expired: { faultstring: 'Access Token expired', errorcode: 'keymanagement.service.access_token_expired' },
} as const;

/** A request has no valid access token. Its answer is 401 with the fault object. */
export class AccessTokenFault extends Error {
  readonly body: { fault: { faultstring: string; detail: { errorcode: string } } };

  constructor(reason: keyof typeof faults) {
    const { faultstring, errorcode } = faults[reason];
    super(faultstring);
    this.name = 'AccessTokenFault';
    this.body = { fault: { faultstring, detail: { errorcode } } };
  }
}

/**
 * What a credential may see of its tenant's change history. Whoever uses it gets, from each read, what a tenant would answer
 * into which only the entries of `query` had been imported, masked (docs/access.md).
 */
export interface Restriction {
  /** As it was written, the outer one first. A credential that is made with a restricted one has a restriction more. */
  readonly written: readonly WrittenRestriction[];
  /** It has no regular expression, and is joined to the caller's query as a tree. */
  readonly query: Query;
  readonly hide: readonly PathPattern[];
  /** Whether entries show their actors. */
  readonly actors: boolean;
}

/** Throws validation_violation for a query or a path that may not be in a restriction. */
export type ReadRestriction = (written: readonly WrittenRestriction[]) => Restriction;
