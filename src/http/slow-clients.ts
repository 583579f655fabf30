import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyBaseLogger } from 'fastify';
import { AnnalsError } from '../core/errors.ts';
import { nodeHttp } from '../core/node-http.ts';
import { errorMessageBody } from './error-answers.ts';
import type { HttpServer } from './http-server-type.ts';
import { headerFieldsTooLarge, requestLineTooLong } from './request-head.ts';

/** How long Annals reads and drops what the client still sends, so that the client can read the answer (milliseconds). */
const lingerTime = 2_000;

type ParseError = Error & { code?: string; bytesParsed?: number; rawPacket?: unknown };

/** Answers a request that Node's parser refuses. Fastify never sees it. */
export function answerMalformedRequest(error: ParseError, socket: Socket, logger: FastifyBaseLogger): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const answer = describe(error);
  const requestId = randomUUID();
  const body = JSON.stringify(errorMessageBody(answer));
  logger.info({ requestId, status: answer.status, code: error.code }, 'malformed request');
  socket.end(
    [
      `HTTP/1.1 ${answer.status} ${nodeHttp.STATUS_CODES[answer.status]}`,
      'content-type: application/json; charset=utf-8',
      `content-length: ${Buffer.byteLength(body)}`,
      `x-request-id: ${requestId}`,
      'x-content-type-options: nosniff',
      'cache-control: no-store',
      'connection: close',
      '',
      body,
    ].join('\r\n'),
  );
  // To close with bytes unread resets the connection, and the client would lose the answer.
  socket.resume();
  setTimeout(() => socket.destroy(), lingerTime).unref();
}

function describe({ code, bytesParsed, rawPacket }: ParseError): AnnalsError {
  if (code === 'HPE_HEADER_OVERFLOW') {
    // Only the last packet is known. Where a line ends in what was parsed of it, that is the request line or a later one.
    const parsed = Buffer.isBuffer(rawPacket) ? rawPacket.subarray(0, bytesParsed) : Buffer.alloc(0);
    return parsed.includes('\r\n') ? headerFieldsTooLarge() : requestLineTooLong();
  }
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return new AnnalsError('validation_violation', 'The request did not arrive in time.');
  }
  return new AnnalsError('validation_violation', 'The request is not valid HTTP.');
}

/** Milliseconds in which a client takes at least a byte of its answer (contract 11). */
export const maxClientSilence = 60_000;

/** Looks at a silent client within that time: Node knows only whether something has moved since its last look. */
export const looks = 6;

/**
 * Cuts off clients that take no byte of an answer for so many milliseconds, and connections without a request that
 * have been kept long enough. A client that waits for its answer, or sends its body, is limited elsewhere.
 */
export function cutOffSlowClients(app: HttpServer, silence = maxClientSilence): void {
  const lookEvery = silence / looks;
  const underWay = new WeakMap<Socket, number>();
  /** When a client was seen silent for the last time, since when it has been, and the bytes in both directions until then. */
  const silent = new WeakMap<Socket, { seen: number; since: number; bytes: number }>();

  function count(socket: Socket, change: 1 | -1): void {
    underWay.set(socket, (underWay.get(socket) ?? 0) + change);
  }

  app.server.on('request', ({ socket }, response: ServerResponse) => {
    count(socket, 1);
    response.once('close', () => count(socket, -1));
  });
  // Node tells when nothing has moved on a socket, be it a part of what is written. Because somebody listens, it
  // leaves to us what follows from it, for connections that it keeps for a next request as well.
  app.server.setTimeout(lookEvery, (socket: Socket) => {
    const waitsForUs = (underWay.get(socket) ?? 0) > 0 && socket.writableLength === 0;
    if (waitsForUs) return;
    const now = performance.now();
    const before = silent.get(socket);
    const bytes = socket.bytesRead + socket.bytesWritten;
    // After a look at which something had moved, Node looks again and says nothing.
    const goesOn = before?.bytes === bytes && now - before.seen < 1.5 * lookEvery;
    const since = goesOn ? before.since : now - (socket.timeout ?? 0);
    if (now - since >= silence) {
      socket.destroy();
      return;
    }
    silent.set(socket, { seen: now, since, bytes });
    socket.setTimeout(lookEvery);
  });
}

/**
 * Lets a server that closes finish the requests in flight. Each answer from then on is the last one of its connection:
 * without that, connections would stay open for another minute.
 */
export function closeGracefully(app: HttpServer): void {
  let closing = false;
  app.addHook('preClose', async () => {
    closing = true;
  });
  app.addHook('onSend', (_request, reply, _payload, done) => {
    if (closing) reply.header('connection', 'close');
    done();
  });
  app.addHook('onResponse', (_request, _reply, done) => {
    // For an answer whose head had already been sent. Its connection is idle only after this turn.
    if (closing) setImmediate(() => app.server.closeIdleConnections());
    done();
  });
}
