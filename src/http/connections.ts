import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyBaseLogger } from 'fastify';
import { AnnalsError } from '../core/errors.ts';
import { nodeHttp } from '../core/node-http.ts';
import { errorMessageBody } from './error-answers.ts';
import type { HttpServer } from './http-server-type.ts';
import { headerFieldsTooLarge, requestLineTooLong } from './request-head.ts';

/** Milliseconds in which input is drained, so that the client can read the answer. */
const lingerTime = 2_000;

type ParseError = Error & { code?: string; bytesParsed?: number; rawPacket?: unknown };

/** Answers a request that Node's parser refuses and Fastify never sees. */
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
  // Closing with unread bytes resets the connection, and the client loses the answer.
  socket.resume();
  setTimeout(() => socket.destroy(), lingerTime).unref();
}

function describe({ code, bytesParsed, rawPacket }: ParseError): AnnalsError {
  if (code === 'HPE_HEADER_OVERFLOW') {
    // Only the last packet is known. If a line ended in its parsed part, the request line was complete.
    const parsed = Buffer.isBuffer(rawPacket) ? rawPacket.subarray(0, bytesParsed) : Buffer.alloc(0);
    return parsed.includes('\r\n') ? headerFieldsTooLarge() : requestLineTooLong();
  }
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return new AnnalsError('validation_violation', 'The request did not arrive in time.');
  }
  return new AnnalsError('validation_violation', 'The request is not valid HTTP.');
}

/** Milliseconds in which a client must read at least a byte of its answer (contract 11). */
export const maxClientSilence = 60_000;

/** Checks of a silent client within that time: Node only knows whether bytes moved since its last check. */
export const checks = 6;

/**
 * Cuts off clients that read no byte of an answer for `silence` milliseconds, and idle connections. Clients that wait
 * for an answer, or send a body, are limited elsewhere.
 */
export function cutOffSlowClients(app: HttpServer, silence = maxClientSilence): void {
  const checkEvery = silence / checks;
  const inProgress = new WeakMap<Socket, number>();
  /** When a client was last seen silent, since when it has been, and the bytes in both directions by then. */
  const silent = new WeakMap<Socket, { seen: number; since: number; bytes: number }>();

  function count(socket: Socket, change: 1 | -1): void {
    inProgress.set(socket, (inProgress.get(socket) ?? 0) + change);
  }

  app.server.on('request', ({ socket }, response: ServerResponse) => {
    count(socket, 1);
    response.once('close', () => count(socket, -1));
  });
  // Called when no byte moved on a socket. With a listener, Node leaves the consequences to it, also for idle
  // connections that are kept open.
  app.server.setTimeout(checkEvery, (socket: Socket) => {
    const waitsForUs = (inProgress.get(socket) ?? 0) > 0 && socket.writableLength === 0;
    if (waitsForUs) return;
    const now = performance.now();
    const before = silent.get(socket);
    const bytes = socket.bytesRead + socket.bytesWritten;
    // A check at which bytes had moved does not call this.
    const isStill = before?.bytes === bytes && now - before.seen < 1.5 * checkEvery;
    const since = isStill ? before.since : now - (socket.timeout ?? 0);
    if (now - since >= silence) {
      socket.destroy();
      return;
    }
    silent.set(socket, { seen: now, since, bytes });
    socket.setTimeout(checkEvery);
  });
}

/**
 * Lets a closing server finish its requests. Each answer from then on closes its connection, which would otherwise stay
 * open for another minute.
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
    // For answers whose head was sent before. Their connections become idle after this turn.
    if (closing) setImmediate(() => app.server.closeIdleConnections());
    done();
  });
}
