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

/** Below this path a session stands for the access token (contract 13). */
export const consoleApiPath = '/console/api';
const belowConsoleApi = /^\/console\/api(?=[/?]|$)/;
const session = /^\/console\/api\/session(?:\/keys(?:\/[0-9A-Za-z]+)?)?(?=\?|$)/;

/** What a request below the path of the console is for. */
type ConsoleTarget = 'session' | 'operation';

const targets = new WeakMap<IncomingMessage, ConsoleTarget>();

/**
 * The operation that a target below the path of the console means. Notes what the target was, as the client wrote it. The
 * path of the session itself and of its keys, and any other target, are returned as they are.
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

/** Undefined for a request that is not below the path of the console. */
export function consoleTargetOf(message: IncomingMessage): ConsoleTarget | undefined {
  return targets.get(message);
}

/**
 * Checks where a request below the path of the console comes from, before anything else is checked, and that its body is
 * JSON: a page of another site can send other bodies without asking. To be called before the hook that checks the session.
 */
export function guardConsole(app: HttpServer, consoleAccess: ConsoleAccess): void {
  app.addHook('onRequest', (request, reply, done) => {
    if (consoleTargetOf(request.raw) === undefined) {
      done();
      return;
    }
    // No header says that an answer is for one person alone, as `Authorization` does, so no cache may keep it.
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

/** Headers of an answer that scripts of another origin can read (contract 10). */
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
  // The name of an export's file.
  'Content-Disposition',
];

const common: FastifyCorsOptions = {
  exposedHeaders: exposedHeaders.join(', '),
  // Seconds that a browser may remember the answer to its preflight.
  maxAge: 7200,
};
const none: FastifyCorsOptions = { origin: false };
/** Its tokens are made to be used by pages that are not known here. */
const ofViewer: FastifyCorsOptions = { ...common, origin: '*', methods: ['GET', 'HEAD'] };

/**
 * Lets pages of these origins call the service: `*` is any origin, an empty list none. Cookies are never needed: a bearer
 * token says who calls, and no browser sends one by itself. The console, which has a cookie, is for its own page alone. The
 * viewer is for the pages of every origin.
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
      callback(null, !isForBrowsers(request) ? none : /^\/viewer[./]/.test(url) ? ofViewer : ofOrigins);
    },
  });
}

/** No path has the method OPTIONS. Only a preflight gets an answer to it. */
function isForBrowsers({ method, headers, raw }: FastifyRequest): boolean {
  if (consoleTargetOf(raw) !== undefined || /^\/console(?=[/?]|$)/.test(raw.url ?? '')) return false;
  const preflight = headers.origin !== undefined && headers['access-control-request-method'] !== undefined;
  return method !== 'OPTIONS' || preflight;
}

/**
 * The headers that tell browsers what they may do with an answer, by their names in lower case. Answers are data: no page
 * may run or frame them. Pages bring their own, wider policy. They are the same for all answers, so they are made once: to
 * make them for each request took an eighth of the program's own time of a small one.
 */
export function securityHeaders(hsts: HstsScope): Record<string, string> {
  const message = new nodeHttp.IncomingMessage(new Socket());
  const response = new nodeHttp.ServerResponse(message);
  const setHeaders = helmet({
    contentSecurityPolicy: { useDefaults: false, directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] } },
    strictTransportSecurity: hsts === 'off' ? false : { includeSubDomains: hsts === 'subdomains' },
    xFrameOptions: { action: 'deny' },
    // For browsers long gone, and for documents that open windows: of no use to data.
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
