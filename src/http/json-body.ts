import type { FastifyRequest } from 'fastify';
import { AnnalsError } from '../errors.ts';
import type { HttpServer } from './http-server-type.ts';

/** Levels of arrays and objects in a body (contract: how changes are recorded, limits). */
const deepestBody = 100;

declare module 'fastify' {
  interface FastifyRequest {
    /** The JSON body as it was written, for rooms that keep numbers as they came (contract: how changes are recorded). */
    bodyText: string;
  }
}

const strictUtf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * JSON is the only body there is, unless a room adds its own. Keys such as `__proto__` are data: JSON.parse makes them
 * own properties, which harm nobody as long as no code copies by assignment.
 */
export function acceptJsonBodies(app: HttpServer): void {
  app.decorateRequest('bodyText', '');
  app.removeAllContentTypeParsers();
  acceptJsonOf(app, 'application/json');
}

/** Reads bodies of one more content type as JSON, for the routes of a plugin and no others. */
export function acceptJsonOf(app: HttpServer, contentType: string): void {
  app.addContentTypeParser<Buffer>(contentType, { parseAs: 'buffer' }, (request, body, done) => {
    try {
      refuseEncodedBody(request);
      request.bodyText = textOf(body);
      done(null, body.length === 0 ? undefined : parseJson(request.bodyText));
    } catch (error) {
      done(error instanceof Error ? error : new Error('The body could not be read.', { cause: error }));
    }
  });
}

function refuseEncodedBody(request: FastifyRequest): void {
  const encoding = request.headers['content-encoding'] ?? 'identity';
  if (encoding.toLowerCase() === 'identity') return;
  throw new AnnalsError('unsupported_media_type', 'The request body must not be compressed.');
}

function textOf(body: Buffer): string {
  try {
    return strictUtf8.decode(body);
  } catch {
    throw new AnnalsError('validation_violation', 'The request body is not UTF-8.');
  }
}

function parseJson(text: string): unknown {
  if (isDeeperThan(text, deepestBody)) {
    throw new AnnalsError('validation_violation', `The request body is nested deeper than ${deepestBody} levels.`);
  }
  try {
    return JSON.parse(text);
  } catch {
    // The parser's own message quotes the body, which may hold a secret.
    throw new AnnalsError('validation_violation', 'The request body is not valid JSON.');
  }
}

/** Counts brackets outside of strings, so that a deep body is refused before anything recursive meets it. */
function isDeeperThan(text: string, limit: number): boolean {
  let depth = 0;
  let inString = false;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (inString) {
      if (code === backslash) index += 1;
      else if (code === quote) inString = false;
    } else if (code === quote) {
      inString = true;
    } else if (code === openBracket || code === openBrace) {
      depth += 1;
      if (depth > limit) return true;
    } else if (code === closeBracket || code === closeBrace) {
      depth -= 1;
    }
  }
  return false;
}

const quote = '"'.charCodeAt(0);
const backslash = '\\'.charCodeAt(0);
const openBracket = '['.charCodeAt(0);
const closeBracket = ']'.charCodeAt(0);
const openBrace = '{'.charCodeAt(0);
const closeBrace = '}'.charCodeAt(0);
