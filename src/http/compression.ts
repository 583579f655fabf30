import { pipeline, Readable } from 'node:stream';
import { constants, createGzip, gzip } from 'node:zlib';
import type { FastifyContextConfig, FastifyReply } from 'fastify';
import type { HttpServer } from './http-server-type.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /**
     * Why a read's answers are not compressed. The length of a compressed answer leaks something of its content, so
     * answers that may contain a secret are not. Those of other operations (tokens, keys) never are.
     */
    neverCompressed?: string;
  }
}

/** Bytes. Smaller bodies are not worth compressing. */
const minCompressed = 1024;
/** A page is compressed for one response, so speed matters more than size. */
const quick = { level: constants.Z_BEST_SPEED };
/** Flushes each piece of a stream, above all the first, for which the headers wait. */
const inPieces = { ...quick, flush: constants.Z_SYNC_FLUSH };

/** Compressible media types; not event streams, whose events would be delayed. */
const compressibleTypes =
  /^(?:text\/(?!event-stream)|application\/(?:json|x-ndjson|javascript)\b|[a-z]+\/[a-z.-]+\+(?:json|xml)\b)/;

/** Whether the answers of a route are compressed. */
export function isCompressed({ work, neverCompressed }: FastifyContextConfig): boolean {
  return (work === 'reads' || work === 'follows') && neverCompressed === undefined;
}

/** Compresses the answers of reads, in zlib's threads. */
export function compressAnswers(app: HttpServer): void {
  app.addHook('onSend', (request, reply, payload, done) => {
    if (!isCompressed(request.routeOptions.config) || reply.statusCode !== 200) return done();
    if (!compressibleTypes.test(String(reply.getHeader('content-type')))) return done();
    // Files that were compressed at build time have an encoding.
    if (reply.hasHeader('set-cookie') || reply.hasHeader('content-encoding')) return done();
    varyByEncoding(reply);
    if (!takesGzip(request.headers['accept-encoding'])) return done();
    if (payload instanceof Readable) {
      if (Number(reply.getHeader('content-length') ?? minCompressed) < minCompressed) return done();
      asGzip(reply);
      // Either side ends the other: an error cuts the answer, and a client that leaves ends the read.
      return done(
        null,
        pipeline(payload, createGzip(inPieces), () => {}),
      );
    }
    if (!(typeof payload === 'string' || payload instanceof Uint8Array)) return done();
    if (Buffer.byteLength(payload) < minCompressed) return done();
    gzip(payload, quick, (error, compressed) => {
      // The request may have timed out and been answered.
      if (reply.raw.headersSent) return;
      if (error !== null) return done(error);
      asGzip(reply);
      done(null, compressed);
    });
  });
}

/** Length and ranges applied to the plain body. */
function asGzip(reply: FastifyReply): void {
  reply.removeHeader('content-length').removeHeader('accept-ranges').header('content-encoding', 'gzip');
}

function varyByEncoding(reply: FastifyReply): void {
  const vary = reply.getHeader('vary');
  if (vary === undefined) reply.header('vary', 'Accept-Encoding');
  else if (!/accept-encoding/i.test(String(vary))) reply.header('vary', `${vary}, Accept-Encoding`);
}

/**
 * Whether a client with this `Accept-Encoding` accepts gzip and does not prefer plain answers (RFC 9110, 12.5.3).
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
