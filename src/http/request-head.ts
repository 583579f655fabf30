import type { IncomingMessage } from 'node:http';
import { AnnalsError } from '../core/errors.ts';
import { withoutBasePath } from './base-path.ts';
import { operationOfConsole } from './cors.ts';

const malformedPaths = new WeakSet<IncomingMessage>();

/**
 * Makes every target routable. The router would refuse a path that does not decode before the token is checked, but the
 * contract wants 401 first. So this replaces the percent signs of such a path, and `pathIsMalformed` says so later. A path
 * with U+0000 is malformed too: no id has that character, and PostgreSQL would fail at it. The target is returned without
 * the path of the public address, and, with `hasSessions`, without the path that stands before an operation of the console.
 */
export function routableTarget(
  message: IncomingMessage,
  { basePath, hasSessions }: { basePath: string; hasSessions: boolean },
): string {
  const publicTarget = withoutBasePath(message.url ?? '/', basePath);
  const target = hasSessions ? operationOfConsole(message, publicTarget) : publicTarget;
  const queryStart = target.indexOf('?');
  const path = queryStart === -1 ? target : target.slice(0, queryStart);
  if (!path.includes('%') || decodes(path)) return target;
  malformedPaths.add(message);
  return path.replaceAll('%', '-') + target.slice(path.length);
}

export function pathIsMalformed(message: IncomingMessage): boolean {
  return malformedPaths.has(message);
}

/** The path without its query, which no log line may show. */
export function pathOf(target: string): string {
  const queryStart = target.indexOf('?');
  return queryStart === -1 ? target : target.slice(0, queryStart);
}

/** Whether the path decodes to text that PostgreSQL can hold. */
function decodes(path: string): boolean {
  try {
    return !decodeURIComponent(path).includes('\u0000');
  } catch {
    return false;
  }
}

/** In bytes, without the line's end: a long `q` of emoji fits (contract: errors). */
export const maxRequestLine = 64 * 1024;

/** In bytes, each field with its colon, its blank and its line's end. */
export const maxHeaderFields = 32 * 1024;

/** What the parser reads at most of both together, more than both may have, so that most answers name the right one. */
export const maxParsedHead = 256 * 1024;

/** What is wrong with the request line or the header fields, whatever the path and the token. */
export function faultOfHead(message: IncomingMessage & { originalUrl?: string }): AnnalsError | undefined {
  if (requestLineLength(message) > maxRequestLine) return requestLineTooLong();
  let length = 0;
  let hosts = 0;
  let authorizations = 0;
  const { rawHeaders } = message;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? '';
    length += name.length + (rawHeaders[index + 1]?.length ?? 0) + ': \r\n'.length;
    if (name.length === 'host'.length && name.toLowerCase() === 'host') hosts += 1;
    else if (name.length === 'authorization'.length && name.toLowerCase() === 'authorization') authorizations += 1;
  }
  if (length > maxHeaderFields) return headerFieldsTooLarge();
  if (hosts === 0 && message.httpVersion === '1.1') return malformed('The request has no Host header.');
  // Node takes the first one, a proxy may take another one.
  if (hosts > 1) return malformed('The request has more than one Host header.');
  if (authorizations > 1) return malformed('The request has more than one Authorization header.');
  return undefined;
}

export function requestLineTooLong(): AnnalsError {
  return new AnnalsError(
    'request_header_fields_too_large',
    `The request line must have at most ${maxRequestLine} bytes.`,
  );
}

export function headerFieldsTooLarge(): AnnalsError {
  return new AnnalsError(
    'request_header_fields_too_large',
    `The header fields must have at most ${maxHeaderFields} bytes together.`,
  );
}

function malformed(message: string): AnnalsError {
  return new AnnalsError('validation_violation', message);
}

/** Bytes of the request line as sent: the parser refuses a target that is not ASCII. */
function requestLineLength({ method = '', originalUrl, url = '' }: IncomingMessage & { originalUrl?: string }): number {
  return method.length + 1 + (originalUrl ?? url).length + 1 + 'HTTP/1.1'.length;
}
