import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/**
 * What becomes of the connections. `silent`: they stay open, and nothing comes through any more. `starting`: new ones
 * are refused as by a server that starts.
 */
export type LinkFault = 'cut' | 'away' | 'silent' | 'starting';

/** What PostgreSQL sends to a client while it starts: an error with SQLSTATE 57P03. */
const refusal = (() => {
  const fields = Buffer.from('SFATAL\0VFATAL\0C57P03\0Mthe database system is starting up\0\0');
  const head = Buffer.alloc(5);
  head.write('E', 0, 'latin1');
  head.writeUInt32BE(4 + fields.length, 1);
  return Buffer.concat([head, fields]);
})();

export interface DatabaseProxy {
  /** The URL of the database by way of the proxy. */
  readonly url: string;
  /** Pieces that clients have sent since `failAfter` was called last: one for each statement. */
  readonly sent: number;
  /** How many connections were refused while the database was away. */
  readonly refused: number;
  /** Has the fault come about when so many further pieces were sent; the next one does not arrive. */
  failAfter(pieces: number, fault: LinkFault): void;
  /** Has the fault come about at once. */
  fail(fault: LinkFault): void;
  /** Passes on nothing that the server sends on the connections of now. Later ones are good. */
  loseAnswers(): void;
  /** How many pieces were swallowed. */
  readonly swallowed: number;
  /** Passes on no piece of a client that contains the text. */
  swallow(text: string): void;
  /** Ends the fault: new connections are good. */
  mend(): void;
  close(): Promise<void>;
}

/** Stands between a service and its database, and cuts the connections at a statement that can be chosen. */
export async function startDatabaseProxy(databaseUrl: string): Promise<DatabaseProxy> {
  const target = new URL(databaseUrl);
  const sockets = new Set<Socket>();
  /** Connections to the server whose answers are lost. */
  const deaf = new WeakSet<Socket>();
  let unwanted: string | undefined;
  let swallowed = 0;
  let sent = 0;
  let refused = 0;
  let failAt = Number.POSITIVE_INFINITY;
  let fault: LinkFault = 'cut';
  let isAway = false;
  let isSilent = false;

  function fail(): void {
    failAt = Number.POSITIVE_INFINITY;
    isAway = fault === 'away' || fault === 'starting';
    isSilent = fault === 'silent';
    if (!isSilent) for (const socket of sockets) socket.destroy();
  }

  const server = createServer((client) => {
    if (isAway && fault === 'starting') {
      client.on('error', () => {});
      client.once('data', () => {
        refused += 1;
        client.end(refusal);
      });
      return;
    }
    if (isAway) {
      refused += 1;
      client.destroy();
      return;
    }
    const upstream = connect(Number(target.port), target.hostname);
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket);
      socket.setNoDelay();
      socket.on('error', () => {});
      socket.on('close', () => {
        sockets.delete(socket);
        other.destroy();
      });
    }
    upstream.on('data', (piece) => void (isSilent || deaf.has(upstream) || client.write(piece)));
    client.on('data', (piece) => {
      if (sent >= failAt) fail();
      sent += 1;
      if (unwanted !== undefined && piece.includes(unwanted)) {
        swallowed += 1;
        return;
      }
      if (!isSilent && !upstream.destroyed) upstream.write(piece);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = new URL(databaseUrl);
  url.hostname = '127.0.0.1';
  url.port = String((server.address() as AddressInfo).port);

  return {
    url: url.href,
    get sent() {
      return sent;
    },
    get swallowed() {
      return swallowed;
    },
    get refused() {
      return refused;
    },
    failAfter(pieces, what) {
      sent = 0;
      fault = what;
      failAt = pieces;
    },
    fail(what) {
      fault = what;
      fail();
    },
    loseAnswers() {
      for (const socket of sockets) deaf.add(socket);
    },
    swallow(text) {
      unwanted = text;
    },
    mend() {
      unwanted = undefined;
      failAt = Number.POSITIVE_INFINITY;
      isAway = false;
      // What was silent has lost what it should have passed on.
      if (isSilent) for (const socket of sockets) socket.destroy();
      isSilent = false;
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
