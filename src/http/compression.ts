import { pipeline, Readable } from 'node:stream';
import { constants, createGzip, gzip } from 'node:zlib';
import type { FastifyContextConfig, FastifyReply } from 'fastify';
import type { HttpServer } from './http-server-type.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /**
     * Why the answers of a route that reads stay plain. The length of a compressed answer tells something of what is in it, so those that
     * can have a secret are never compressed. What does not read (a token, a key that is shown once) never is.
     */
    neverCompressed?: string;
  }
}

/** Bytes of a body from which it is worth the work. */
const minCompressed = 1024;
/** A page is made once and sent once, so speed counts for more than the last percent. */
const quick = { level: constants.Z_BEST_SPEED };
/** Each piece of a stream leaves when it is there, the first one above all: the headers wait for it. */
const inPieces = { ...quick, flush: constants.Z_SYNC_FLUSH };

/** Media types whose bodies get shorter; never an event stream, whose events would wait. */
const compressibleTypes =
  /^(?:text\/(?!event-stream)|application\/(?:json|x-ndjson|javascript)\b|[a-z]+\/[a-z.-]+\+(?:json|xml)\b)/;

/** Whether the answers of a route are compressed. */
export function isCompressed({ work, neverCompressed }: FastifyContextConfig): boolean {
  return (work === 'reads' || work === 'follows') && neverCompressed === undefined;
}

/** Compresses the answers of reads. The work is done in the threads of zlib. */
export function compressAnswers(app: HttpServer): void {
  app.addHook('onSend', (request, reply, payload, done) => {
    if (!isCompressed(request.routeOptions.config) || reply.statusCode !== 200) return done();
    if (!compressibleTypes.test(String(reply.getHeader('content-type')))) return done();
    // A file that was compressed when it was built has its encoding.
    if (reply.hasHeader('set-cookie') || reply.hasHeader('content-encoding')) return done();
    varyByEncoding(reply);
    if (!takesGzip(request.headers['accept-encoding'])) return done();
    if (payload instanceof Readable) {
      if (Number(reply.getHeader('content-length') ?? minCompressed) < minCompressed) return done();
      asGzip(reply);
      // Either side's end ends the other: an error cuts the answer, and a client that goes ends the reading.
      return done(
        null,
        pipeline(payload, createGzip(inPieces), () => {}),
      );
    }
    if (!(typeof payload === 'string' || payload instanceof Uint8Array)) return done();
    if (Buffer.byteLength(payload) < minCompressed) return done();
    gzip(payload, quick, (error, compressed) => {
      // The request's time was over, and it was answered.
      if (reply.raw.headersSent) return;
      if (error !== null) return done(error);
      asGzip(reply);
      done(null, compressed);
    });
  });
}

/** Length and ranges are those of the plain body. */
function asGzip(reply: FastifyReply): void {
  reply.removeHeader('content-length').removeHeader('accept-ranges').header('content-encoding', 'gzip');
}

function varyByEncoding(reply: FastifyReply): void {
  const vary = reply.getHeader('vary');
  if (vary === undefined) reply.header('vary', 'Accept-Encoding');
  else if (!/accept-encoding/i.test(String(vary))) reply.header('vary', `${vary}, Accept-Encoding`);
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
