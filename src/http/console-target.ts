import type { IncomingMessage } from 'node:http';

/** Below this path a session stands for the access token (contract 13). */
export const consoleApiPath = '/console/api';
const belowConsoleApi = /^\/console\/api(?=[/?]|$)/;
const session = /^\/console\/api\/session(?:\/keys(?:\/[0-9A-Za-z]+)?)?(?=\?|$)/;

/** What a request below the path of the console is for. */
export type ConsoleTarget = 'session' | 'operation';

const targets = new WeakMap<IncomingMessage, ConsoleTarget>();

/**
 * The operation that a target below the path of the console means. Notes what the target was, as the client wrote it. The
 * path of the session itself and of its keys, and any other target, are returned as they are.
 */
export function operationOfConsole(message: IncomingMessage, target: string): string {
  if (!belowConsoleApi.test(target)) return target;
  if (session.test(target)) {
    targets.set(message, 'session');
    return target;
  }
  targets.set(message, 'operation');
  const operation = target.slice(consoleApiPath.length);
  return operation.startsWith('/') ? operation : `/${operation}`;
}

/** Undefined for a request that is not below the path of the console. */
export function consoleTargetOf(message: IncomingMessage): ConsoleTarget | undefined {
  return targets.get(message);
}
