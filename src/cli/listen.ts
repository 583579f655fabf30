import { once } from 'node:events';
import { createServer, isIPv6, type Server } from 'node:net';
import type { Listener } from '../core/config/addresses.ts';
import { codeOf, hasCode, OperatorError } from '../core/errors.ts';
import type { HttpServer } from '../http/http-server-type.ts';

/** What listens on a port, by its setting. */
const servers = { PORT: 'service', ANNALS_RECORDER_PORT: 'recorder', ANNALS_METRICS_PORT: 'metrics' } as const;

type PortVariable = keyof typeof servers;

/**
 * Listens and returns the base URL. Logs which server it is, since port 0 does not say. Throws an OperatorError that
 * names the setting `variable` if it cannot listen.
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

/** Throws the error that `listen` would throw, so that a command can fail before long work. */
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

/** The error, worded for operators if the port or the host is to blame. */
function faultOfPort(error: unknown, { host, port }: Listener, variable: PortVariable): unknown {
  if (hasCode(error, 'EADDRINUSE')) {
    return new OperatorError(
      `port ${port} of ${host} is in use; set ${variable} to another one, or to 0 for any free one`,
    );
  }
  if (hasCode(error, 'EACCES', 'EADDRNOTAVAIL', 'ENOTFOUND', 'EAI_AGAIN')) {
    const code = codeOf(error) ?? '';
    const see = variable === 'PORT' ? 'HOST and PORT' : variable;
    return new OperatorError(`cannot listen on port ${port} of ${host} (${code}); see ${see}`);
  }
  return error;
}

function portOf(address: ReturnType<Server['address']>): number {
  return address !== null && typeof address === 'object' ? address.port : 0;
}

/** The URL at which this machine reaches a server that listens on the host and the port. */
export function urlOf(host: string, port: number): string {
  const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  return `http://${isIPv6(reachable) ? `[${reachable}]` : reachable}:${port}`;
}
