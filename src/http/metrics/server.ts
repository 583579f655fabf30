import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import { type FastifyBaseLogger, fastify, LogController } from 'fastify';
import { AnnalsError } from '../../core/errors.ts';
import { within } from '../../core/fairness/deadline.ts';
import { contentType, type Metrics } from '../../metrics/metrics.ts';
import { answerMalformedRequest, closeGracefully, cutOffSlowClients } from '../connections.ts';
import { answerErrors } from '../error-answers.ts';
import type { HttpServer } from '../http-server-type.ts';

/** Others count as `other`, since clients choose the method. */
const methods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

/** The label of requests without a route. */
const noRoute = 'none';

/**
 * Counts the requests of a server by route, method and status, and measures their time. The route is its template, so
 * that no label contains input. Call it before routes are added.
 */
export function measureRequests(app: HttpServer, metrics: Metrics): void {
  metrics.count('annals_http_answers_cut_total', {}, 0);
  metrics.add('annals_http_requests_in_flight', {}, 0);

  app.addHook('onRequest', (request, reply, done) => {
    const begun = performance.now();
    metrics.add('annals_http_requests_in_flight', {}, 1);
    // Unlike onResponse, this fires for clients that leave, too.
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

const path = '/metrics';
/** Open connections. Node closes further ones. */
const maxConnections = 1_024;
/** Milliseconds in which a client must read at least a byte of its answer. */
const maxClientSilence = 10_000;
/** Milliseconds for which figures serve further scrapes. */
const maxAge = 500;
/** Milliseconds that a scrape waits for figures. Prometheus gives up after 10 s. */
const maxWait = 8_000;

/**
 * A server with only `GET /metrics`, without authentication, for a port that clients of the service cannot reach. It
 * has no shares, so that scrapes take no places of tenants. `readText` reads the figures as text.
 */
export function createMetricsServer({
  logger,
  readText,
}: {
  logger: FastifyBaseLogger;
  readText: () => Promise<string>;
}): HttpServer {
  const app: HttpServer = fastify({
    loggerInstance: logger,
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: 1_024,
    requestTimeout: maxClientSilence,
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    clientErrorHandler: (error, socket) => answerMalformedRequest(error, socket, logger),
  }).withTypeProvider<TypeBoxTypeProvider>();
  app.server.maxConnections = maxConnections;
  answerErrors(app);
  closeGracefully(app);
  cutOffSlowClients(app, maxClientSilence);

  const read = shared(async () => Buffer.from(await readText()));
  app.get(path, async (_request, reply) => {
    const text = await within(maxWait, read()).catch((cause) => {
      throw new AnnalsError('service_unavailable', 'The metrics could not be read in time.', { cause });
    });
    return reply.headers({ 'content-type': contentType, 'cache-control': 'no-store' }).send(text);
  });
  return app;
}

/** Concurrent callers share one run and its result. */
function shared<Result>(run: () => Promise<Result>): () => Promise<Result> {
  let current: Promise<Result> | undefined;
  return () => {
    if (current !== undefined) return current;
    const mine = run();
    current = mine;
    const forget = () => {
      current = undefined;
    };
    mine.then(() => setTimeout(forget, maxAge).unref(), forget);
    return mine;
  };
}
