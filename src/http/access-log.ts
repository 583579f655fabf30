import type { HttpServer } from './http-server-type.ts';
import { pathOf } from './request-target.ts';

const longestLoggedPath = 1_000;

/** One line a request: path without query, who asked, the answer's status and how long it took (milliseconds). */
export function logRequests(app: HttpServer): void {
  app.addHook('onResponse', (request, reply, done) => {
    request.log.info(
      {
        method: request.method,
        path: pathOf(request.originalUrl).slice(0, longestLoggedPath),
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
