import { once } from 'node:events';
import { createServer, isIPv6, type Server } from 'node:net';
import type { Listener } from '../core/config/addresses.ts';
import { OperatorError } from '../core/errors.ts';
import type { HttpServer } from '../http/http-server-type.ts';
import { hasCode } from '../postgres/write-once.ts';

/** What a port is for, by the setting that names it. */
const servers = { PORT: 'service', ANNALS_RECORDER_PORT: 'recorder', ANNALS_METRICS_PORT: 'metrics' } as const;

type PortVariable = keyof typeof servers;

/**
 * Listens, and returns the base URL. The log says what is there: with port 0 nobody could tell otherwise. Throws an OperatorError that names
 * the setting `variable` where it cannot listen.
 */
export async function listen(
  app: HttpServer,
  { host, port }: Listener,
  variable: PortVariable,
  name: string = servers[variable],
): Promise<string> {
  try {
    await app.listen({ host, port, listenTextResolver: (address) => `${name} listening at ${address}` });
  } catch (error) {
    throw faultOfPort(error, { host, port }, variable);
  }
  return urlOf(host, portOf(app.server.address()));
}

/** Throws the error that `listen` would throw now. For what should not begin where it cannot be served. */
export async function requirePort({ host, port }: Listener, variable: PortVariable): Promise<void> {
  const server = createServer();
  try {
    server.listen({ host, port });
    await once(server, 'listening');
  } catch (error) {
    throw faultOfPort(error, { host, port }, variable);
  }
  server.close();
  await once(server, 'close');
}

/** The error in words for the operator, where the port or the host is to blame. */
function faultOfPort(error: unknown, { host, port }: Listener, variable: PortVariable): unknown {
  if (hasCode(error, 'EADDRINUSE')) {
    return new OperatorError(
      `port ${port} of ${host} is in use; set ${variable} to another one, or to 0 for any free one`,
    );
  }
  if (hasCode(error, 'EACCES', 'EADDRNOTAVAIL', 'ENOTFOUND', 'EAI_AGAIN')) {
    const code = error instanceof Error && 'code' in error ? error.code : '';
    const see = variable === 'PORT' ? 'HOST and PORT' : variable;
    return new OperatorError(`cannot listen on port ${port} of ${host} (${code}); see ${see}`);
  }
  return error;
}

function portOf(address: ReturnType<Server['address']>): number {
  return address !== null && typeof address === 'object' ? address.port : 0;
}

/** The URL of a server on this machine that listens on the host and the port. */
export function urlOf(host: string, port: number): string {
  const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  return `http://${isIPv6(reachable) ? `[${reachable}]` : reachable}:${port}`;
}
