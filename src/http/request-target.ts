import type { IncomingMessage } from 'node:http';
import { withoutBasePath } from './base-path.ts';
import { operationOfConsole } from './console-target.ts';

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
