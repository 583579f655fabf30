import type { FastifyRequest } from 'fastify';
import type { CorrelationSeal } from '../core/correlation-seal.ts';
import type { AnnalsError } from '../core/errors.ts';
import type { PathPattern } from '../core/path-pattern.ts';
import type { ShownActors, WrittenRestriction } from '../core/written-restriction.ts';
import type { Query } from '../query/ast.ts';
import type { Scope } from './scopes.ts';

/** Where a request came from. */
export interface Caller {
  /** The network address: the client's, if the proxy is trusted. */
  readonly address: string;
  /** The `User-Agent`; undefined without one. */
  readonly program: string | undefined;
}

const maxProgram = 200;

/** The address and the program of a request. Replaces invisible characters of the program's untrusted name. */
export function callerOf({ ip: address, headers }: Pick<FastifyRequest, 'ip' | 'headers'>): Caller {
  const program = (headers['user-agent'] ?? '').replaceAll(/[\p{Cc}\p{Cf}]+/gu, ' ').trim();
  return { address, program: program === '' ? undefined : program.slice(0, maxProgram) };
}

/** The caller, as the access token says and the client's record confirms. */
export interface Credentials {
  readonly tenant: string;
  readonly clientId: string;
  /** Of a key: the client whose person made it. */
  readonly makerId?: string | undefined;
  /** The actor of its change entries (contract: how changes are recorded). */
  readonly clientName: string;
  /** Of a program that a person allowed: the name of the person or the client. */
  readonly onBehalfOf?: string | undefined;
  readonly scopes: readonly Scope[];
  /** Of a person who signed in with a company's account: the OpenID provider's id. */
  readonly person?: { readonly issuer: string; readonly subject: string } | undefined;
  /** Of a key: the models that it may call, as `provider/model`. Undefined: those of the tenant. */
  readonly models?: readonly string[] | undefined;
  /** Of a key: its requests a second. Undefined: those of its tenant. */
  readonly rate?: number | undefined;
  /** Of a key: the end user of all its calls of models. Undefined: whom they name. */
  readonly user?: string | undefined;
  /** Undefined: all that the scopes permit. */
  readonly restriction?: Restriction | undefined;
  /** Of a session of the console: its id in lists and accesses. It grants nothing. */
  readonly session?: string | undefined;
  /** Of a viewer token: the viewer, and whether they may export. */
  readonly viewer?: { readonly subject: string; readonly mayExport: boolean } | undefined;
}

/** The author of a write. */
export interface Author extends Pick<Credentials, 'tenant' | 'person'> {
  /** As in change entries. */
  readonly actor: string;
  /** The id of the person, the key or the client. */
  readonly actorId?: string | undefined;
  /** The id of the request. */
  readonly correlationId?: string | undefined;
}

/** The author of a request. */
export function authorOf({ credentials, id }: Pick<FastifyRequest, 'credentials' | 'id'>): Author {
  const { tenant, clientId, clientName: actor, person } = credentials;
  return { tenant, actor, actorId: person?.subject ?? clientId, correlationId: id, person };
}

/**
 * Checks an access token; synchronously for a known one, so that most calls do not wait for the event loop. Throws, or
 * rejects with, an AccessTokenFault. Any other error means that the token could not be checked.
 */
export type VerifyAccessToken = (token: string) => Credentials | Promise<Credentials>;

/**
 * Checks a client's id and secret in an `Authorization: Basic` header from an address. Rejects with an
 * AccessTokenFault, and with rate_limit_exceeded (429) after too many failures.
 */
export type VerifyBasic = (authorization: string, address: string) => Promise<Credentials>;

/** Checks a key of a tenant, from an address. Rejects as `VerifyBasic` does. */
export type VerifyKey = (tenant: string, key: string, address: string) => Promise<Credentials>;

/** Checks a viewer token. Throws, or rejects with, an AccessTokenFault. */
export type VerifyViewerToken = (token: string) => Credentials | Promise<Credentials>;

/** Authentication of the console's operations by a session (contract 13). */
export interface ConsoleAccess {
  /** What is wrong with the origin of the request; undefined if it is valid. */
  faultOfOrigin(request: FastifyRequest): AnnalsError | undefined;
  /** The caller, by the request's cookie. Rejects with an AccessTokenFault. */
  verify(request: FastifyRequest): Promise<Credentials>;
  /** Headers of every answer. */
  headers(): Readonly<Record<string, string>>;
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The route is the console's session, which no other path reaches. */
    isOfSession?: boolean;
    /** Any one suffices. A route under `/:tenant` without scopes fails at boot. */
    scopes?: readonly Scope[];
    /**
     * The route applies a credential's restriction. Other routes refuse restricted credentials, so that forgetting to
     * apply one leaks nothing.
     */
    appliesRestriction?: true;
    /** The route accepts keys as well as access tokens, for programs that cannot renew tokens. */
    takesKeys?: true;
    /** The route accepts the credential in the header `x-api-key` too, which clients of its protocol send. */
    takesApiKeyHeader?: true;
    /** The route accepts access tokens of grants as well, which programs with a person behind them have. */
    takesGrants?: true;
    /** The route accepts only viewer tokens. */
    isOfViewer?: true;
    /** The message of this operation's 500, if clients match a certain one. */
    internalErrorMessage?: string;
    /** Answers 500 with that message while the database is away; other operations answer 503 (contract 3). */
    hidesOutages?: true;
  }

  interface FastifyRequest {
    /** Throws on a route without scopes. */
    readonly credentials: Credentials;
    verifiedCredentials: Credentials | null;
    /** For streams: rejects with an AccessTokenFault once the token or the session has ended, or was narrowed. */
    verifyAgain(): Promise<void>;
  }
}

/** The faults of a token, in the words that clients match (contract: authentication). */
const faults = {
  invalid: { faultstring: 'Invalid access token', errorcode: 'oauth.v2.InvalidAccessToken' },
  expired: { faultstring: 'Access Token expired', errorcode: 'keymanagement.service.access_token_expired' },
} as const;

/** A request without a valid access token: 401 with the fault object. */
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
 * The part of the tenant's change history that a credential can see: reads answer as if only the entries of `query`,
 * masked, had been imported (docs/access.md).
 */
export interface Restriction {
  /** As written, outermost first: each credential that a restricted one creates adds a restriction. */
  readonly written: readonly WrittenRestriction[];
  /** Without regular expressions. Joined to the caller's query as a tree. */
  readonly query: Query;
  readonly hide: readonly PathPattern[];
  /** What entries show of who made them. */
  readonly actors: ShownActors;
  /** Of the reader who makes a request. Left out: correlation ids are neither shown nor found. */
  readonly correlations?: CorrelationSeal | undefined;
}

/**
 * Throws validation_violation for a query or a path that a restriction cannot have. With the `author` of the last part,
 * throws insufficient_permissions for a query on contexts that the author may not read. The query of a restricted
 * author has correlation ids as that author sees them.
 */
export type ReadRestriction = (
  written: readonly WrittenRestriction[],
  author?: Pick<Credentials, 'scopes' | 'restriction'>,
) => Restriction;
