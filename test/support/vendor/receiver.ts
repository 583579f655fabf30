import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type RequestListener, type ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { gunzipSync } from 'node:zlib';

/** A request that a receiver of deliveries has got. */
export interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** Unpacked where it came with gzip. */
  readonly body: string;
}

export interface Receiver {
  readonly url: string;
  readonly port: number;
  /** In the order in which they came. */
  readonly received: Received[];
  /** How it answers; at first with 204. */
  answer: (received: Received, response: ServerResponse) => void;
  close(): Promise<void>;
}

export interface ReceiverOptions {
  /** Left out: a free one. */
  readonly port?: number;
  /** With these it speaks TLS. */
  readonly tls?: { readonly key: string; readonly cert: string };
}

/** A server on loopback that takes what is delivered to it. */
export async function startReceiver({ port = 0, tls }: ReceiverOptions = {}): Promise<Receiver> {
  const listener: RequestListener = (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.once('end', () => {
      const bytes = Buffer.concat(chunks);
      const body = String(request.headers['content-encoding'] === 'gzip' ? gunzipSync(bytes) : bytes);
      const received = { path: request.url ?? '', headers: request.headers, body };
      receiver.received.push(received);
      receiver.answer(received, response);
    });
    response.on('error', () => {});
  };
  const server = tls === undefined ? createServer(listener) : createSecureServer(tls, listener);
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const { port: boundPort } = server.address() as AddressInfo;
  const receiver: Receiver = {
    url: `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${boundPort}/hook`,
    port: boundPort,
    received: [],
    answer: (_received, response) => void response.writeHead(204).end(),
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  return receiver;
}
