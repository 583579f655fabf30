import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { startTestServer, type TestServer } from '../../../test/support/server/server.ts';

/** A second process's worth of the service, on the same database, that is reached through a proxy under a path. */
export async function startBehindProxy(
  { database }: TestServer,
  path: string,
  environment: Record<string, string> = {},
): Promise<{ readonly url: string; close(): Promise<void> }> {
  let target = '';
  // As a proxy that passes on `Host` and the path.
  const proxy = createServer((incoming, outgoing) => {
    const { method, headers, url } = incoming;
    const passed = request(`${target}${url}`, { method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    passed.on('error', () => outgoing.destroy());
    incoming.pipe(passed);
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  const { port } = proxy.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}${path}`;
  const server = await startTestServer({
    database,
    environment: { ANNALS_BASE_URL: url, ...environment },
  });
  target = server.baseUrl;
  return {
    url,
    async close() {
      proxy.closeAllConnections();
      proxy.close();
      await server.close();
    },
  };
}
