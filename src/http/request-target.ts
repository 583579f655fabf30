import type { IncomingMessage } from 'node:http';
import { withoutBasePath } from './base-path.ts';

const malformedPaths = new WeakSet<IncomingMessage>();

/**
 * Makes every target routable. The router would refuse a path that does not decode before the token is checked, but the
 * contract wants 401 first. So this replaces the percent signs of such a path, and `pathIsMalformed` says so later. The
 * target is returned without the path of the public address.
 */
export function routableTarget(message: IncomingMessage, basePath: string): string {
  const target = withoutBasePath(message.url ?? '/', basePath);
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

function decodes(path: string): boolean {
  try {
    decodeURIComponent(path);
    return true;
  } catch {
    return false;
  }
}
