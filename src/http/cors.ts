import cors, { type FastifyCorsOptions } from '@fastify/cors';
import type { FastifyRequest } from 'fastify';
import { consoleTargetOf } from './console-target.ts';
import type { HttpServer } from './http-server-type.ts';

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
