import type { Metrics } from '../../metrics/metrics.ts';
import type { HttpServer } from '../http-server-type.ts';

/** Anything else is `other`: clients choose methods. */
const methods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

/** The route of a request to a path that the service does not have. */
const noRoute = 'none';

/**
 * Counts the requests of a server by route, method and status, and measures their time. The route is its template, so that
 * no label has what a client wrote. To be called before routes are added.
 */
export function measureRequests(app: HttpServer, metrics: Metrics): void {
  metrics.count('annals_http_answers_cut_total', {}, 0);
  metrics.add('annals_http_requests_in_flight', {}, 0);

  app.addHook('onRequest', (request, reply, done) => {
    const begun = performance.now();
    metrics.add('annals_http_requests_in_flight', {}, 1);
    // Unlike onResponse, this comes for clients that go away as well.
    reply.raw.once('close', () => {
      metrics.add('annals_http_requests_in_flight', {}, -1);
      const route = request.routeOptions.url ?? noRoute;
      const method = methods.has(request.method) ? request.method : 'other';
      metrics.count('annals_http_requests_total', { route, method, status: String(reply.raw.statusCode) });
      const seconds = (performance.now() - begun) / 1000;
      metrics.observe('annals_http_request_duration_seconds', { route, method }, seconds);
      if (!reply.raw.writableFinished) metrics.count('annals_http_answers_cut_total', {});
    });
    done();
  });
}
