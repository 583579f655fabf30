import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { onTestFinished } from 'vitest';

/** What PostgreSQL sends to a client while it starts: an error with SQLSTATE 57P03. */
const refusal = (() => {
  const fields = Buffer.from('SFATAL\0VFATAL\0C57P03\0Mthe database system is starting up\0\0');
  const head = Buffer.alloc(5);
  head.write('E', 0, 'latin1');
  head.writeUInt32BE(4 + fields.length, 1);
  return Buffer.concat([head, fields]);
})();

/** Stands before a database until the test ends, and refuses its clients as a server does that is starting, until it is told to pass them on. */
export async function startStartingServer(databaseUrl: string) {
  const target = new URL(databaseUrl);
  let refused = 0;
  let hasStarted = false;
  const server = createServer((client) => {
    client.on('error', () => {});
    if (!hasStarted) {
      client.once('data', () => {
        refused += 1;
        client.end(refusal);
      });
      return;
    }
    const upstream = connect(Number(target.port), target.hostname);
    upstream.on('error', () => client.destroy());
    client.on('close', () => upstream.destroy());
    client.pipe(upstream).pipe(client);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const url = new URL(databaseUrl);
  url.hostname = '127.0.0.1';
  url.port = String((server.address() as AddressInfo).port);
  return {
    url: url.href,
    get refused() {
      return refused;
    },
    start() {
      hasStarted = true;
    },
  };
}
