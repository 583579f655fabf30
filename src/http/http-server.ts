import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import { type FastifyBaseLogger, fastify, LogController } from 'fastify';
import type { HstsScope } from '../core/config/values.ts';
import type { Sealer } from '../core/sealing.ts';
import type { Tracer } from '../core/trace.ts';
import { locateUnder } from './base-path.ts';
import { limitBodies } from './body-shares.ts';
import { allowOrigins, guardConsole, securityHeaders } from './browser-security.ts';
import { ClientGone } from './client-gone.ts';
import { compressAnswers } from './compression.ts';
import { answerMalformedRequest, closeGracefully, cutOffSlowClients } from './connections.ts';
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
import { compileValidator } from './validation.ts';

export const maxBodyBytes = 1024 * 1024;

/**
 * Milliseconds in which a client must send its request: enough for the largest body on a slow line, short enough to
 * keep stalled clients from piling up.
 */
export const maxRequestTime = 120_000;
/** Milliseconds in which a client must send the request line and the header fields. */
export const maxHeadTime = 60_000;
/** Milliseconds that a connection stays open between two requests, as announced in `Keep-Alive`. */
export const keepAliveTime = 65_000;
/** Additional milliseconds, so that a late client does not write into a closing connection. */
const keepAliveMargin = 10_000;
/** Milliseconds between checks for requests that are late. */
export const lookForLateRequests = 30_000;

function notUsed(): never {
  throw new Error('a route has no compiler');
}

/** A server with the hooks of all modules, and no route yet. */
export async function createHttpServer(options: {
  logger: FastifyBaseLogger;
  verifyAccessToken: VerifyAccessToken;
  /** Default: no HTTP Basic. */
  verifyBasic?: VerifyBasic | undefined;
  /** Default: no keys. */
  verifyKey?: VerifyKey | undefined;
  /** Access tokens of grants. Default: none. */
  verifyGrant?: VerifyKey | undefined;
  /** Default: no viewer. */
  verifyViewerToken?: VerifyViewerToken | undefined;
  /** Seals the correlation ids that restricted readers see; default: they see none. */
  sealer?: Sealer | undefined;
  /** Default: no console. */
  consoleAccess?: ConsoleAccess | undefined;
  /** Origins whose pages may call the service; default: none. */
  corsOrigins?: readonly string[];
  /** Default: `off`. */
  hsts?: HstsScope;
  /** Addresses and ranges of proxies, or `loopback`; default: none. */
  trustedProxies?: readonly string[];
  /** The path of the public address, under which it answers too; default: none. */
  basePath?: string;
  /** Milliseconds until the headers of an answer are sent; default: 30,000. */
  requestLimit?: number | undefined;
  /** Milliseconds in which a client must send its request; default: 120,000. */
  requestTimeout?: number | undefined;
  /** Milliseconds in which a client must read at least a byte of its answer; default: 60,000. */
  maxClientSilence?: number | undefined;
  /** Default: no limit. */
  requestRates?: RequestRates | undefined;
  /** Resolves when this worker is to do the upkeep; default: from the start. */
  upkeepTurn?: Promise<void> | undefined;
  /** Makes a span of each request; default: none. A client's trace is propagated in either case. */
  tracer?: Tracer | undefined;
  /** Adds hooks that measure every request; default: none. */
  measure?: ((app: HttpServer) => void) | undefined;
}): Promise<HttpServer> {
  const {
    logger,
    verifyAccessToken,
    verifyBasic,
    verifyKey,
    verifyGrant,
    verifyViewerToken,
    consoleAccess,
    sealer,
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
    // `faultOfHead` measures the request line and the header fields, which the parser counts together, and checks Host,
    // which Node would refuse without a body.
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
    // Anyone can send an address in a header, so only that of a known proxy is trusted.
    trustProxy: trustedProxies.length === 0 ? false : [...trustedProxies],
    rewriteUrl: (message) => routableTarget(message, { basePath, hasSessions: consoleAccess !== undefined }),
    // Keeps Fastify from loading its own compilers; ours are set below.
    schemaController: { compilersFactory: { buildValidator: notUsed, buildSerializer: notUsed } },
    routerOptions: { maxParamLength: maxRequestLine, querystringParser: parseQueryString },
    clientErrorHandler: (error, socket) => answerMalformedRequest(error, socket, logger),
  }).withTypeProvider<TypeBoxTypeProvider>();

  app.decorate('upkeepTurn', options.upkeepTurn);
  app.setValidatorCompiler(compileValidator);
  // Response schemas are documentation: answers are sent as handlers made them.
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
  // Before the token is checked: a preflight has none, and pages may read why a request was refused.
  await allowOrigins(app, corsOrigins);
  if (consoleAccess !== undefined) guardConsole(app, consoleAccess);
  checkInOrder(app, {
    verifyAccessToken,
    verifyBasic,
    verifyKey,
    verifyGrant,
    verifyViewerToken,
    consoleAccess,
    sealer,
  });
  if (requestRates !== undefined) limitRates(app, requestRates);
  compressAnswers(app);
  awaitFirstPieces(app);
  // After these two: the limit lasts until the headers are sent.
  limitRequests(app, requestLimit);
  cutOffSlowClients(app, options.maxClientSilence);
  // Unknown expectations are ignored; Node would refuse them without a body.
  app.server.on('checkExpectation', (message, response) => app.server.emit('request', message, response));
  return app;
}

/** Ids that are safe in a log line and in a header. */
const safeId = /^[A-Za-z0-9._:-]{1,128}$/;

/** The caller's `x-request-id` if it is safe, otherwise a UUID. */
function requestIdOf(message: IncomingMessage): string {
  const id = message.headers['x-request-id'];
  return typeof id === 'string' && safeId.test(id) ? id : randomUUID();
}

const maxLoggedPath = 1_000;

/** Logs a line for each request: path without query, status, milliseconds, tenant and client. */
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
 * Delays a streamed answer until its first piece, so that an earlier failure is answered like every error. Fastify
 * would send the error with the headers of the stream, and without our body if these are not JSON's.
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
    // The request may have timed out and been answered.
    const finish = (error?: Error) => {
      settle();
      if (reply.raw.headersSent) payload.destroy();
      else if (error === undefined) done();
      else done(error);
    };
    const begin = () => finish();
    const fail = (error: Error) => finish(error);
    const leave = () => void payload.destroy(new ClientGone());
    // An empty stream becomes readable at its end.
    payload.on('readable', begin).on('close', begin).on('error', fail);
    reply.raw.on('close', leave);
    if (reply.raw.closed) leave();
  });
}
