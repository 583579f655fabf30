import type { IncomingMessage } from 'node:http';
import { AnnalsError } from '../core/errors.ts';
import { withoutBasePath } from './base-path.ts';
import { operationOfConsole } from './browser-security.ts';

const malformedPaths = new WeakSet<IncomingMessage>();

/**
 * Makes every target routable. The router would refuse a malformed path before the token is checked, but the contract
 * requires 401 first. So this replaces the percent signs of such a path, which `pathIsMalformed` reports later. A path
 * with U+0000 is malformed too, since PostgreSQL cannot store it. The path of the public address is removed, and with
 * `hasSessions` the console's path before an operation.
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

/** The path without the query, which must not be logged. */
export function pathOf(target: string): string {
  const queryStart = target.indexOf('?');
  return queryStart === -1 ? target : target.slice(0, queryStart);
}

/** Whether the path decodes to text that PostgreSQL can store. */
function decodes(path: string): boolean {
  try {
    return !decodeURIComponent(path).includes('\u0000');
  } catch {
    return false;
  }
}

/** Bytes without the line's end: enough for a long `q` of emoji (contract: errors). */
export const maxRequestLine = 64 * 1024;

/** Bytes, including each field's colon, blank and line's end. */
export const maxHeaderFields = 32 * 1024;

/** Bytes of both that the parser reads: more than allowed, so that most errors name the right limit. */
export const maxParsedHead = 256 * 1024;

/** What is wrong with the request line or the header fields, regardless of path and token. */
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
  // Node uses the first one, a proxy may use another.
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

/** Bytes as sent: the parser refuses targets that are not ASCII. */
function requestLineLength({ method = '', originalUrl, url = '' }: IncomingMessage & { originalUrl?: string }): number {
  return method.length + 1 + (originalUrl ?? url).length + 1 + 'HTTP/1.1'.length;
}
