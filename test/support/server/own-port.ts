import { freePort } from '../../../src/postgres/embedded/server.ts';

/**
 * A port for a server that a test stops and starts again, that another process opens, or that is nowhere. Systems give
 * outgoing connections, and servers that ask for any port, those from 32768 on: another test could take such a port
 * while the server is stopped.
 */
export async function ownPort(): Promise<number> {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 10_000);
    if ((await freePort(port)) === port) return port;
  }
}
