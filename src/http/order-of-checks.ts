import { isDeepStrictEqual } from 'node:util';
import type { FastifyRequest, RouteOptions } from 'fastify';
import { correlationSeal } from '../core/correlation-seal.ts';
import { AnnalsError } from '../core/errors.ts';
import type { Sealer } from '../core/sealing.ts';
import { noSuchOperation, nothingAtThisPath } from './allowed-methods.ts';
import { consoleTargetOf } from './browser-security.ts';
import { isTenantName } from './chosen-id.ts';
import {
  AccessTokenFault,
  type ConsoleAccess,
  type Credentials,
  type VerifyAccessToken,
  type VerifyBasic,
  type VerifyKey,
  type VerifyViewerToken,
} from './credentials.ts';
import type { HttpServer } from './http-server-type.ts';
import { pathIsMalformed } from './request-head.ts';
import { insufficientScopes, type Scope } from './scopes.ts';

/**
 * The order of checks on every call (contract: authentication): token (401), path syntax (400), the token's tenant
 * (403), scope and restriction (403), then the rest. Runs before Fastify checks content type, body and query.
 */
export function checkInOrder(
  app: HttpServer,
  {
    verifyAccessToken,
    verifyBasic,
    verifyKey,
    verifyGrant,
    verifyViewerToken,
    consoleAccess,
    sealer,
  }: {
    verifyAccessToken: VerifyAccessToken;
    verifyBasic?: VerifyBasic | undefined;
    verifyKey?: VerifyKey | undefined;
    verifyGrant?: VerifyKey | undefined;
    verifyViewerToken?: VerifyViewerToken | undefined;
    consoleAccess?: ConsoleAccess | undefined;
    /** Left out: restricted readers see no correlation ids. */
    sealer?: Sealer | undefined;
  },
): void {
  /** Only by the session under the console's path, a viewer token for the viewer, and the header elsewhere. */
  function verify(request: FastifyRequest): Credentials | Promise<Credentials> {
    if (request.routeOptions.config.isOfViewer === true) return verifyOfViewer(request);
    if (consoleAccess !== undefined && consoleTargetOf(request.raw) !== undefined) return consoleAccess.verify(request);
    const { authorization } = request.headers;
    if (verifyBasic !== undefined && authorization !== undefined && /^Basic /i.test(authorization)) {
      return verifyBasic(authorization, request.ip);
    }
    const { takesKeys, takesGrants, takesApiKeyHeader } = request.routeOptions.config;
    const apiKey = takesApiKeyHeader === true ? request.headers['x-api-key']?.toString() : undefined;
    const token = authorization === undefined && apiKey !== undefined ? apiKey : bearerToken(authorization);
    const { tenant } = request.params as { tenant: string };
    if (verifyGrant !== undefined && takesGrants === true && token.startsWith('annals_at_')) {
      return verifyGrant(tenant, token, request.ip);
    }
    if (verifyKey !== undefined && takesKeys === true && token.startsWith('annals_')) {
      return verifyKey(tenant, token, request.ip);
    }
    return verifyAccessToken(token);
  }

  function verifyOfViewer(request: FastifyRequest): Credentials | Promise<Credentials> {
    // Sessions use the operations themselves.
    if (consoleTargetOf(request.raw) !== undefined) throw nothingAtThisPath();
    const token = bearerToken(request.headers.authorization);
    if (verifyViewerToken === undefined) throw new AccessTokenFault('invalid');
    return verifyViewerToken(token);
  }

  async function verifyAgain(this: FastifyRequest): Promise<void> {
    const { scopes, restriction } = await verify(this);
    const isSufficient = this.routeOptions.config.scopes?.some((scope) => scopes.includes(scope));
    const isAsBefore = isDeepStrictEqual(restriction?.written, this.verifiedCredentials?.restriction?.written);
    if (isSufficient !== true || !isAsBefore) throw new AccessTokenFault('invalid');
  }

  app.decorateRequest('verifiedCredentials', null);
  app.decorateRequest('credentials', {
    getter(this: FastifyRequest): Credentials {
      if (this.verifiedCredentials === null)
        throw new Error('This route declares no scopes, so it has no credentials.');
      return this.verifiedCredentials;
    },
  });

  app.decorateRequest('verifyAgain', verifyAgain);

  app.addHook('onRoute', refuseUnguardedRoute);

  app.addHook('onRequest', (request, _reply, done) => {
    const { scopes } = request.routeOptions.config;
    if (scopes === undefined) {
      done(admitAnybody(request));
      return;
    }
    try {
      const credentials = verify(request);
      if (credentials instanceof Promise) {
        credentials.then((verified) => done(admit(request, withSeal(verified, sealer), scopes)), done);
      } else {
        done(admit(request, withSeal(credentials, sealer), scopes));
      }
    } catch (error) {
      done(error instanceof Error ? error : new Error('The access token could not be checked.', { cause: error }));
    }
  });
}

/** Fails at boot: a forgotten declaration would expose a tenant's data. */
function refuseUnguardedRoute(route: RouteOptions): void {
  const underTenant = route.url.split('/').includes(':tenant');
  const guarded = (route.config?.scopes ?? []).length > 0;
  if (underTenant && !guarded) throw new Error(`The route ${route.url} is under a tenant and declares no scopes.`);
  if (guarded && !underTenant) throw new Error(`The route ${route.url} declares scopes and is under no tenant.`);
}

/** The token of `Authorization: Bearer …`, the scheme in any case (RFC 9110, 11.1); never one in the query. */
function bearerToken(authorization: string | undefined): string {
  const token = authorization === undefined ? undefined : /^Bearer +([^\s]+) *$/i.exec(authorization)?.[1];
  if (token === undefined) throw new AccessTokenFault('invalid');
  return token;
}

function admitAnybody(request: FastifyRequest): AnnalsError | undefined {
  if (pathIsMalformed(request.raw)) return malformedPath();
  // Under the console's path are its session and the operations, but no pages or documents.
  const target = request.routeOptions.config.isOfSession === true ? 'session' : undefined;
  const isReachable = consoleTargetOf(request.raw) === target;
  // Before the body is read, whose faults would be reported instead.
  if (request.is404) return noSuchOperation(request);
  return isReachable ? undefined : nothingAtThisPath();
}

function admit(request: FastifyRequest, credentials: Credentials, scopes: readonly Scope[]): Error | undefined {
  if (pathIsMalformed(request.raw)) return malformedPath();
  const { tenant } = request.params as { tenant: string };
  if (!isTenantName(tenant)) {
    return new AnnalsError('validation_violation', 'The tenant in the path is not a tenant name.', {
      details: [{ field: 'tenant', message: 'must match ^[a-z][a-z0-9]+$ and have at most 63 characters' }],
    });
  }
  const sufficient = scopes.some((scope) => credentials.scopes.includes(scope));
  const isApplied = credentials.restriction === undefined || request.routeOptions.config.appliesRestriction === true;
  if (credentials.tenant !== tenant || !sufficient || !isApplied) return insufficientScopes();
  request.verifiedCredentials = credentials;
  return undefined;
}

/** The credentials of a restricted reader with their seal of correlation ids. */
function withSeal(credentials: Credentials, sealer: Sealer | undefined): Credentials {
  const { tenant, clientId, viewer, restriction } = credentials;
  if (restriction?.actors !== 'all' || sealer === undefined) return credentials;
  const correlations = correlationSeal(sealer, { tenant, maker: clientId, subject: viewer?.subject ?? '' });
  return { ...credentials, restriction: { ...restriction, correlations } };
}

function malformedPath(): AnnalsError {
  return new AnnalsError('validation_violation', 'The path is not valid percent-encoded UTF-8 without NUL.');
}
