import type { FastifyRequest } from 'fastify';
import { beginShortWork } from '../core/fairness/time-slice.ts';
import type { HttpServer } from './http-server-type.ts';
import { maxBytesReadAtOnce } from './json-body.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Ends the time in which long computations of other tenants leave the request room. */
    endShortWork: (() => void) | undefined;
  }
}

/**
 * Lets long computations of other tenants leave room for requests without a long body, until their answer begins. A request that calls a
 * provider, which may take minutes, has room until its body is checked.
 */
export function countShortRequests(app: HttpServer): void {
  app.decorateRequest('endShortWork');
  app.addHook('onRequest', (request, reply, done) => {
    if (!hasLongBody(request)) {
      // Nobody knows the tenant yet.
      request.endShortWork = beginShortWork('');
      reply.raw.once('close', () => request.endShortWork?.());
    }
    done();
  });
  app.addHook('preParsing', (request, _reply, _payload, done) => {
    if (request.endShortWork !== undefined && request.verifiedCredentials !== null) {
      request.endShortWork();
      request.endShortWork = beginShortWork(request.verifiedCredentials.tenant);
    }
    done();
  });
  app.addHook('preHandler', (request, _reply, done) => {
    if (request.routeOptions.config.work === 'calls') request.endShortWork?.();
    done();
  });
  app.addHook('onSend', (request, _reply, payload, done) => {
    request.endShortWork?.();
    done(null, payload);
  });
}

function hasLongBody({ headers }: FastifyRequest): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > maxBytesReadAtOnce;
}
