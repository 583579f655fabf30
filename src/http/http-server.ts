import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import { type FastifyBaseLogger, fastify, LogController } from 'fastify';
import type { HstsScope } from '../core/config/values.ts';
import type { Tracer } from '../core/trace.ts';
import { locateUnder } from './base-path.ts';
import { limitBodies } from './body-shares.ts';
import { ClientGone } from './client-gone.ts';
import { compressAnswers } from './compression.ts';
import { allowOrigins, guardConsole, securityHeaders } from './cors.ts';
import type { ConsoleAccess, VerifyAccessToken, VerifyBasic, VerifyKey, VerifyViewerToken } from './credentials.ts';
import { answerErrors } from './error-answers.ts';
import type { HttpServer } from './http-server-type.ts';
import { acceptJsonBodies } from './json-body.ts';
import { checkInOrder } from './order-of-checks.ts';
import { parseQueryString } from './query-parameters.ts';
import { faultOfHead, maxParsedHead, maxRequestLine, pathOf, routableTarget } from './request-head.ts';
import { limitRates, type RequestRates } from './request-rates.ts';
import { requestLoggers, traceRequests } from './request-trace.ts';
import { beginRequestsInTurns, countShortRequests } from './request-turns.ts';
import { limitRequests } from './request-work.ts';
import { answerMalformedRequest, closeGracefully, cutOffSlowClients } from './slow-clients.ts';
import { compileValidator } from './validation.ts';

export const maxBodyBytes = 1024 * 1024;

/**
 * Milliseconds in which a client sends its request: long enough for the largest body on a slow line, short enough that idle senders do not
 * pile up.
 */
export const maxRequestTime = 120_000;
/** Milliseconds in which a client sends the request line and the header fields. */
export const maxHeadTime = 60_000;
/** Milliseconds that a connection stays open between two requests, as `Keep-Alive` tells the client. */
export const keepAliveTime = 65_000;
/** It stays open for so many milliseconds longer: a client that is late would write into a connection that closes. */
const keepAliveMargin = 10_000;
/** Milliseconds between two looks at requests that have not arrived yet. */
export const lookForLateRequests = 30_000;

function notUsed(): never {
  throw new Error('a route has no compiler');
}

/** A server with everything that holds for every module, and no route yet. */
export async function createHttpServer(options: {
  logger: FastifyBaseLogger;
  verifyAccessToken: VerifyAccessToken;
  /** Left out: clients cannot authenticate by HTTP Basic. */
  verifyBasic?: VerifyBasic | undefined;
  /** Left out: no route takes keys. */
  verifyKey?: VerifyKey | undefined;
  /** Left out: no route is of the viewer. */
  verifyViewerToken?: VerifyViewerToken | undefined;
  /** Left out: there is no console. */
  consoleAccess?: ConsoleAccess | undefined;
  /** Origins whose pages may call the service; left out: none. */
  corsOrigins?: readonly string[];
  /** For which names browsers use HTTPS alone from now on; left out: none. */
  hsts?: HstsScope;
  /** Addresses and ranges of proxies, or `loopback`; left out: none. */
  trustedProxies?: readonly string[];
  /** The path of the public address, under which it answers too; left out: none. */
  basePath?: string;
  /** Milliseconds until the headers of an answer are sent; left out: 30,000. */
  requestLimit?: number | undefined;
  /** Milliseconds in which a client sends its request; left out: 120,000. */
  requestTimeout?: number | undefined;
  /** Milliseconds in which a client takes at least a byte of its answer; left out: 60,000. */
  maxClientSilence?: number | undefined;
  /** Left out: nobody has a rate. */
  requestRates?: RequestRates | undefined;
  /** Resolves when this process does the upkeep for all on its port; left out: it does from the start. */
  upkeepTurn?: Promise<void> | undefined;
  /** Makes a span of each request; left out: none. A trace that a client sends is handed on all the same. */
  tracer?: Tracer | undefined;
  /** Adds hooks that measure every request; left out: none. */
  measure?: ((app: HttpServer) => void) | undefined;
}): Promise<HttpServer> {
  const {
    logger,
    verifyAccessToken,
    verifyBasic,
    verifyKey,
    verifyViewerToken,
    consoleAccess,
    corsOrigins = [],
    trustedProxies = [],
    basePath = '',
    requestRates,
    requestLimit,
    requestTimeout = maxRequestTime,
  } = options;
  const app: HttpServer = fastify({
    loggerInstance: logger,
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'requestId' }),
    childLoggerFactory: requestLoggers(options.tracer),
    genReqId: requestIdOf,
    // `faultOfHead` measures the request line and the header fields, which the parser counts together. It also answers
    // a missing Host, because Node would do it without a body.
    http: {
      maxHeaderSize: maxParsedHead,
      requireHostHeader: false,
      headersTimeout: Math.min(maxHeadTime, requestTimeout),
      connectionsCheckingInterval: Math.min(lookForLateRequests, requestTimeout),
      keepAliveTimeoutBuffer: keepAliveMargin,
    },
    bodyLimit: maxBodyBytes,
    requestTimeout,
    keepAliveTimeout: keepAliveTime,
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    // Anybody can write an address into a header, so only that of a known proxy is believed.
    trustProxy: trustedProxies.length === 0 ? false : [...trustedProxies],
    rewriteUrl: (message) => routableTarget(message, { basePath, hasSessions: consoleAccess !== undefined }),
    // Without these Fastify would load compilers of its own. Ours are set below.
    schemaController: { compilersFactory: { buildValidator: notUsed, buildSerializer: notUsed } },
    routerOptions: { maxParamLength: maxRequestLine, querystringParser: parseQueryString },
    clientErrorHandler: (error, socket) => answerMalformedRequest(error, socket, logger),
  }).withTypeProvider<TypeBoxTypeProvider>();

  app.decorate('upkeepTurn', options.upkeepTurn);
  app.setValidatorCompiler(compileValidator);
  // Response schemas are documentation: an answer goes out as its handler made it.
  app.setSerializerCompiler(() => JSON.stringify);
  options.measure?.(app);
  traceRequests(app);
  beginRequestsInTurns(app);
  countShortRequests(app);
  answerErrors(app);
  locateUnder(app, basePath);
  limitBodies(app);
  acceptJsonBodies(app);
  logRequests(app);
  closeGracefully(app);

  const sameForAll = securityHeaders(options.hsts ?? 'off');
  app.addHook('onRequest', (request, reply, done) => {
    reply.header('x-request-id', request.id);
    reply.headers(sameForAll);
    done(faultOfHead(request.raw));
  });
  // Before the token is looked at: a preflight has none, and a page may read why it was refused.
  await allowOrigins(app, corsOrigins);
  if (consoleAccess !== undefined) guardConsole(app, consoleAccess);
  checkInOrder(app, { verifyAccessToken, verifyBasic, verifyKey, verifyViewerToken, consoleAccess });
  if (requestRates !== undefined) limitRates(app, requestRates);
  compressAnswers(app);
  awaitFirstPieces(app);
  // Behind these two: the limit lasts until the headers go out.
  limitRequests(app, requestLimit);
  cutOffSlowClients(app, options.maxClientSilence);
  // An expectation that nobody knows is let be; Node would refuse it without a body.
  app.server.on('checkExpectation', (message, response) => app.server.emit('request', message, response));
  return app;
}

/** An id that is safe in a log line and in a header. Any other id is replaced. */
const safeId = /^[A-Za-z0-9._:-]{1,128}$/;

/** The caller's `x-request-id` where it is safe, otherwise a UUID. */
function requestIdOf(message: IncomingMessage): string {
  const given = message.headers['x-request-id'];
  return typeof given === 'string' && safeId.test(given) ? given : randomUUID();
}

const maxLoggedPath = 1_000;

/** Logs one line for each request: path without query, status, milliseconds, tenant and client. */
function logRequests(app: HttpServer): void {
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

/**
 * Begins an answer that is read while it is sent only when its first piece is there: a failure before it is answered as every error is.
 * Fastify would send the error with the headers of the stream, and no body of ours where these are not of JSON.
 */
function awaitFirstPieces(app: HttpServer): void {
  app.addHook('onSend', (_request, reply, payload, done) => {
    if (!(payload instanceof Readable)) return done();
    if (payload.closed && payload.errored !== null) return done(payload.errored);
    if (payload.closed || (payload.readableLength > 0 && payload.errored === null)) return done();
    const settle = () => {
      payload.off('readable', begin).off('close', begin).off('error', fail);
      reply.raw.off('close', leave);
    };
    // The request's time may be over, and its answer sent.
    const finish = (error?: Error) => {
      settle();
      if (reply.raw.headersSent) payload.destroy();
      else if (error === undefined) done();
      else done(error);
    };
    const begin = () => finish();
    const fail = (error: Error) => finish(error);
    const leave = () => void payload.destroy(new ClientGone());
    // An empty stream is readable too, at its end.
    payload.on('readable', begin).on('close', begin).on('error', fail);
    reply.raw.on('close', leave);
    if (reply.raw.closed) leave();
  });
}
