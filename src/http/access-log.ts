import type { HttpServer } from './http-server-type.ts';
import { pathOf } from './request-target.ts';

const maxLoggedPath = 1_000;

/** Logs one line for each request: path without query, status, milliseconds, tenant and client. */
export function logRequests(app: HttpServer): void {
  app.addHook('onResponse', (request, reply, done) => {
    request.log.info(
      {
        method: request.method,
        path: pathOf(request.originalUrl).slice(0, maxLoggedPath),
        status: reply.statusCode,
        milliseconds: Math.round(reply.elapsedTime * 100) / 100,
        tenant: request.verifiedCredentials?.tenant,
        clientId: request.verifiedCredentials?.clientId,
      },
      'request',
    );
    done();
  });
}
