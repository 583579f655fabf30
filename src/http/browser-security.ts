import type { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import cors, { type FastifyCorsOptions } from '@fastify/cors';
import type { FastifyRequest } from 'fastify';
import helmet from 'helmet';
import type { HstsScope } from '../core/config/values.ts';
import { AnnalsError } from '../core/errors.ts';
import { nodeHttp } from '../core/node-http.ts';
import type { ConsoleAccess } from './credentials.ts';
import type { HttpServer } from './http-server-type.ts';

/** Under this path a session replaces the access token (contract 13). */
export const consoleApiPath = '/console/api';
const belowConsoleApi = /^\/console\/api(?=[/?]|$)/;
const session =
  /^\/console\/api\/(?:session(?:\/(?:keys|grants)(?:\/[0-9A-Za-z]+)?|\/sign-in)?|authorizations)(?=\?|$)/;

/** What a request under the console's path addresses. */
type ConsoleTarget = 'session' | 'operation';

const targets = new WeakMap<IncomingMessage, ConsoleTarget>();

/**
 * Maps a target under the console's path to its operation, and remembers that it was one. Paths of the session (its keys
 * and grants, its sign-in, and what it allows programs) and all other targets are returned as they are.
 */
export function operationOfConsole(message: IncomingMessage, target: string): string {
  if (!belowConsoleApi.test(target)) return target;
  if (session.test(target)) {
    targets.set(message, 'session');
    return target;
  }
  targets.set(message, 'operation');
  const operation = target.slice(consoleApiPath.length);
  return operation.startsWith('/') ? operation : `/${operation}`;
}

/** Undefined for a request that is not under the console's path. */
export function consoleTargetOf(message: IncomingMessage): ConsoleTarget | undefined {
  return targets.get(message);
}

/**
 * Checks the origin of requests under the console's path before anything else, and that their bodies are JSON: other
 * sites' pages can send other bodies without a preflight. Call it before the hook that checks the session.
 */
export function guardConsole(app: HttpServer, consoleAccess: ConsoleAccess): void {
  app.addHook('onRequest', (request, reply, done) => {
    if (consoleTargetOf(request.raw) === undefined) {
      done();
      return;
    }
    // Without an `Authorization` header caches cannot tell that an answer is private.
    reply.headers({ ...consoleAccess.headers(), 'cache-control': 'no-store' });
    done(consoleAccess.faultOfOrigin(request));
  });

  app.addHook('preParsing', (request, _reply, _payload, done) => {
    const { 'content-type': type } = request.headers;
    const isOther = consoleTargetOf(request.raw) !== undefined && type !== undefined && !jsonType.test(type);
    done(isOther ? new AnnalsError('unsupported_media_type', 'The content type must be application/json.') : null);
  });
}

const jsonType = /^\s*application\/json\s*(?:;|$)/i;

/** Response headers that scripts of other origins can read (contract 10). */
const exposedHeaders = [
  'X-Total-Count',
  'X-Next-Cursor',
  'X-Prev-Cursor',
  'X-Request-Id',
  'Location',
  'Retry-After',
  'WWW-Authenticate',
  'Session-Id',
  'Server-Timing',
  'Annals-Left-Out',
  // Of providers, and for their clients.
  'Request-Id',
  'X-Should-Retry',
  'Retry-After-Ms',
  'OpenAI-Processing-Ms',
  // The name of an export's file.
  'Content-Disposition',
];

const common: FastifyCorsOptions = {
  exposedHeaders: exposedHeaders.join(', '),
  // Seconds that a browser may cache a preflight.
  maxAge: 7200,
};
const none: FastifyCorsOptions = { origin: false };
/** Its tokens are for pages of any origin. */
const ofViewer: FastifyCorsOptions = { ...common, origin: '*', methods: ['GET', 'HEAD'] };
/** Programs in pages of any origin sign in, and use their tokens. */
const ofPrograms: FastifyCorsOptions = { ...common, origin: '*', methods: ['GET', 'HEAD', 'POST'] };
const forPrograms = /^\/(?:mcp\/|oauth\/(?:token|register|revoke)(?:\?|$)|\.well-known\/oauth-)/;

/**
 * Lets pages of these origins call the service: `*` is any origin, an empty list none. Credentials are bearer tokens,
 * which no browser sends by itself, so no cookies are allowed. The console, which has a cookie, is for its own page
 * only; the viewer, and signing in to `/mcp` with its use, are for pages of every origin.
 */
export async function allowOrigins(app: HttpServer, origins: readonly string[]): Promise<void> {
  const ofService: FastifyCorsOptions = {
    ...common,
    origin: origins.includes('*') ? '*' : [...origins],
    methods: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'],
  };
  const ofOrigins = origins.length === 0 ? none : ofService;
  await app.register(cors, {
    delegator: (request, callback) => {
      const { url = '' } = request.raw;
      const ofPath = /^\/viewer[./]/.test(url) ? ofViewer : forPrograms.test(url) ? ofPrograms : ofOrigins;
      callback(null, isForBrowsers(request) ? ofPath : none);
    },
  });
}

/** No path has the method OPTIONS; only preflights are answered. */
function isForBrowsers({ method, headers, raw }: FastifyRequest): boolean {
  if (consoleTargetOf(raw) !== undefined || /^\/console(?=[/?]|$)/.test(raw.url ?? '')) return false;
  const preflight = headers.origin !== undefined && headers['access-control-request-method'] !== undefined;
  return method !== 'OPTIONS' || preflight;
}

/**
 * Security headers by name in lower case. Answers are data, so no page may run or frame them; pages set a wider policy
 * of their own. The headers are made once, since making them took an eighth of the program's time of a small request.
 */
export function securityHeaders(hsts: HstsScope): Record<string, string> {
  const message = new nodeHttp.IncomingMessage(new Socket());
  const response = new nodeHttp.ServerResponse(message);
  const setHeaders = helmet({
    contentSecurityPolicy: { useDefaults: false, directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] } },
    strictTransportSecurity: hsts === 'off' ? false : { includeSubDomains: hsts === 'subdomains' },
    xFrameOptions: { action: 'deny' },
    // For obsolete browsers, and for documents that open windows: useless for data.
    crossOriginOpenerPolicy: false,
    originAgentCluster: false,
    xDnsPrefetchControl: false,
    xDownloadOptions: false,
    xPermittedCrossDomainPolicies: false,
    xXssProtection: false,
  });
  setHeaders(message, response, (error) => {
    if (error !== undefined) throw error;
  });
  return Object.fromEntries(Object.entries(response.getHeaders()).map(([name, value]) => [name, String(value)]));
}
