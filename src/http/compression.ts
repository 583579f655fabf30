import { pipeline, Readable } from 'node:stream';
import { constants, createGzip, gzip } from 'node:zlib';
import type { FastifyReply } from 'fastify';
import type { HttpServer } from './http-server-type.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /**
     * The route's answers are compressed for clients that take it. Only for reads without secrets: the length of a compressed
     * answer tells something of what is in it.
     */
    compressible?: true;
  }
}

/** Bytes of a body from which it is worth the work. */
const minCompressed = 1024;
/** A page is made once and sent once, so speed counts for more than the last percent. */
const quick = { level: constants.Z_BEST_SPEED };

/** Compresses what routes with `compressible` answer. The work is done in the threads of zlib. */
export function compressAnswers(app: HttpServer): void {
  app.addHook('onSend', (request, reply, payload, done) => {
    if (request.routeOptions.config.compressible !== true) return done();
    if (reply.statusCode !== 200 || isEventStream(reply) || reply.hasHeader('set-cookie')) return done();
    varyByEncoding(reply);
    if (!takesGzip(request.headers['accept-encoding'])) return done();
    if (payload instanceof Readable) {
      reply.removeHeader('content-length').header('content-encoding', 'gzip');
      // Either side's end ends the other: an error cuts the answer, and a client that goes ends the reading.
      return done(
        null,
        pipeline(payload, createGzip(quick), () => {}),
      );
    }
    if (typeof payload !== 'string' || Buffer.byteLength(payload) < minCompressed) return done();
    gzip(payload, quick, (error, compressed) => {
      // The request's time was over, and it was answered.
      if (reply.raw.headersSent) return;
      if (error !== null) return done(error);
      reply.removeHeader('content-length').header('content-encoding', 'gzip');
      done(null, compressed);
    });
  });
}

function isEventStream(reply: FastifyReply): boolean {
  return String(reply.getHeader('content-type')).startsWith('text/event-stream');
}

function varyByEncoding(reply: FastifyReply): void {
  const vary = reply.getHeader('vary');
  reply.header('vary', vary === undefined ? 'Accept-Encoding' : `${vary}, Accept-Encoding`);
}

/**
 * Whether a client with this `Accept-Encoding` takes gzip, and does not like plain answers better (RFC 9110, 12.5.3).
 *
 * @example
 * takesGzip('br, gzip;q=0.5'); // true
 * takesGzip('gzip;q=0, *'); // false
 */
export function takesGzip(accepted: string | undefined): boolean {
  if (accepted === undefined) return false;
  const weights = new Map<string, number>();
  for (const part of accepted.toLowerCase().split(',')) {
    const [coding = '', ...parameters] = part.split(';').map((text) => text.trim());
    const weight = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2);
    weights.set(coding, weight === undefined ? 1 : Number(weight) || 0);
  }
  const ofGzip = weights.get('gzip') ?? weights.get('*') ?? 0;
  return ofGzip > 0 && ofGzip >= (weights.get('identity') ?? 0);
}
