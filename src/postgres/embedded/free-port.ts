import { createServer } from 'node:net';

/** The given port where it is free on 127.0.0.1, otherwise a port that the system chooses. */
export async function freePort(wanted?: number): Promise<number> {
  const port = wanted === undefined ? undefined : await bind(wanted);
  return port ?? (await bind(0)) ?? 0;
}

function bind(port: number): Promise<number | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(undefined));
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => {
      const address = server.address();
      server.close(() => resolve(address !== null && typeof address === 'object' ? address.port : undefined));
    });
  });
}
