import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import type { FastifyBaseLogger } from 'fastify';
import { AnnalsError } from '../core/errors.ts';
import { nodeHttp } from '../core/node-http.ts';
import { errorMessageBody } from './error-bodies.ts';
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
