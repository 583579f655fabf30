import type { IncomingMessage } from 'node:http';

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

function decodes(path: string): boolean {
  try {
    decodeURIComponent(path);
    return true;
  } catch {
    return false;
  }
}
