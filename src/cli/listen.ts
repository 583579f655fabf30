import { isIPv6, type Server } from 'node:net';
import type { Listener } from '../config/addresses.ts';
import { hasCode } from '../db/write-once.ts';
import type { HttpServer } from '../http/http-server-type.ts';
import { OperatorError } from './command.ts';

/** Listens, and returns the base URL. Throws an OperatorError that names the setting `variable` where it cannot. */
export async function listen(
  app: HttpServer,
  { host, port }: Listener,
  variable: 'PORT' | 'ANNALS_RECORDER_PORT' | 'ANNALS_METRICS_PORT',
): Promise<string> {
  try {
    await app.listen({ host, port });
  } catch (error) {
    if (hasCode(error, 'EADDRINUSE')) {
      throw new OperatorError(
        `port ${port} of ${host} is in use; set ${variable} to another one, or to 0 for any free one`,
      );
    }
    if (hasCode(error, 'EACCES', 'EADDRNOTAVAIL', 'ENOTFOUND', 'EAI_AGAIN')) {
      const code = error instanceof Error && 'code' in error ? error.code : '';
      const see = variable === 'PORT' ? 'HOST and PORT' : variable;
      throw new OperatorError(`cannot listen on port ${port} of ${host} (${code}); see ${see}`);
    }
    throw error;
  }
  return urlOf(host, portOf(app.server.address()));
}

function portOf(address: ReturnType<Server['address']>): number {
  return address !== null && typeof address === 'object' ? address.port : 0;
}

/** The URL of a server on this machine that listens on the host and the port. */
export function urlOf(host: string, port: number): string {
  const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  return `http://${isIPv6(reachable) ? `[${reachable}]` : reachable}:${port}`;
}
