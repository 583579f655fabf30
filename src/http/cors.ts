import cors, { type FastifyCorsOptions } from '@fastify/cors';
import type { FastifyRequest } from 'fastify';
import type { HttpServer } from './http-server-type.ts';

/** What scripts of another origin may read of an answer besides its body (contract 10). */
const exposedHeaders = [
  'X-Total-Count',
  'X-Next-Cursor',
  'X-Prev-Cursor',
  'X-Request-Id',
  'Location',
  'Retry-After',
  'WWW-Authenticate',
  'Session-Id',
];

/**
 * Lets pages of these origins call the service; `*` is any of them, an empty list none. Credentials are never asked
 * for: who calls is told by a bearer token, which no browser sends by itself.
 */
export async function allowOrigins(app: HttpServer, origins: readonly string[]): Promise<void> {
  if (origins.length === 0) return;
  const options: FastifyCorsOptions = {
    origin: origins.includes('*') ? '*' : [...origins],
    methods: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'],
    exposedHeaders,
    // Seconds that a browser may remember the answer to its preflight.
    maxAge: 7200,
  };
  await app.register(cors, {
    delegator: (request, callback) => callback(null, isAskedByBrowser(request) ? options : { origin: false }),
  });
}

/** An OPTIONS that is no preflight is one of the methods that no path has. */
function isAskedByBrowser({ method, headers }: FastifyRequest): boolean {
  const preflight = headers.origin !== undefined && headers['access-control-request-method'] !== undefined;
  return method !== 'OPTIONS' || preflight;
}
