import type { IncomingMessage } from 'node:http';
import { AnnalsError } from '../errors.ts';

/** 64 KiB, without the line's end: a long `q` of emoji fits (contract: errors). */
export const longestRequestLine = 64 * 1024;

const malformedPaths = new WeakSet<IncomingMessage>();

/**
 * Makes every target routable. A path that does not decode would be refused by the router before the token is even
 * looked at; the contract wants 401 first. So its escapes are blunted, and the fault is remembered for its turn.
 */
export function routableTarget(message: IncomingMessage): string {
  const target = message.url ?? '/';
  const queryStart = target.indexOf('?');
  const path = queryStart === -1 ? target : target.slice(0, queryStart);
  if (!path.includes('%') || decodes(path)) return target;
  malformedPaths.add(message);
  return path.replaceAll('%', '-') + target.slice(path.length);
}

export function pathIsMalformed(message: IncomingMessage): boolean {
  return malformedPaths.has(message);
}

/** The path alone: a query may hold what no log line shows. */
export function pathOf(target: string): string {
  const queryStart = target.indexOf('?');
  return queryStart === -1 ? target : target.slice(0, queryStart);
}

export function requestLineTooLong(): AnnalsError {
  return new AnnalsError(
    'request_header_fields_too_large',
    `The request line may have ${longestRequestLine} bytes and the header fields 32768 together.`,
  );
}

/** Bytes of the request line as sent: the parser refuses a target that is not ASCII. */
export function requestLineLength(message: IncomingMessage & { originalUrl?: string }): number {
  const target = message.originalUrl ?? message.url ?? '';
  return (message.method ?? '').length + 1 + target.length + 1 + 'HTTP/1.1'.length;
}

function decodes(path: string): boolean {
  try {
    decodeURIComponent(path);
    return true;
  } catch {
    return false;
  }
}
