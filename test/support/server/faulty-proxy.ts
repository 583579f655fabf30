import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { ownPort } from './own-port.ts';

export interface ProxiedRequest {
  readonly method: string;
  /** The path without its query. */
  readonly path: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  /** A character for each byte. */
  readonly body: string;
  /** Milliseconds of performance.now. */
  readonly at: number;
}

/** What the proxy does with a request. */
export type Fault =
  | { kind: 'none' }
  /** Answers itself; the service sees nothing. */
  | { kind: 'answer'; status: number; headers?: Record<string, string>; body?: string | object }
  /** Closes the connection; the service sees nothing. */
  | { kind: 'cut' }
  /** Never answers; the service sees nothing. */
  | { kind: 'hang' }
  /** The service carries the request out, and the connection is closed before its answer, or after half of its body. */
  | { kind: 'lose' }
  | { kind: 'half' }
  /** Sends the request on and closes the connection when this happens, whatever the service does. */
  | { kind: 'abandon'; when: Promise<unknown> }
  /** Writes such pieces without end, as fast as they are taken, or closes the connection after so many bytes. */
  | { kind: 'endless'; piece: Uint8Array; closeAfter?: number };

export interface FaultyProxy {
  readonly baseUrl: string;
  readonly requests: ProxiedRequest[];
  /** The bytes of endless answers that have been taken. */
  taken: number;
  /** Decides about each request from now on; the default has no faults. */
  behave(behaviour: (request: ProxiedRequest) => Fault): void;
  /** Stops listening, so that connections are refused, until `resume`. */
  pause(): Promise<void>;
  resume(): Promise<void>;
  close(): Promise<void>;
}

/** A real HTTP server between a client and a service, for what happens on the way. */
export async function startFaultyProxy(target: string): Promise<FaultyProxy> {
  let behaviour: (request: ProxiedRequest) => Fault = () => ({ kind: 'none' });
  const port = await ownPort();
  const server = createServer((message, response) => {
    serve(message, response).catch(() => response.destroy());
  });

  async function serve(message: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url = '', headers } = message;
    const at = performance.now();
    const bytes = await buffer(message);
    const path = new URL(url, target).pathname;
    const request = { method, url, path, headers, body: bytes.toString('latin1'), at };
    proxy.requests.push(request);
    const fault = behaviour(request);
    switch (fault.kind) {
      case 'hang':
        return;
      case 'cut':
        response.destroy();
        return;
      case 'answer': {
        const text = typeof fault.body === 'object' ? JSON.stringify(fault.body) : (fault.body ?? '');
        response.writeHead(fault.status, { 'content-type': 'application/json', ...fault.headers }).end(text);
        return;
      }
      case 'abandon':
        void fault.when.then(() => response.destroy());
        await forward(request);
        return;
      case 'endless': {
        const { piece, closeAfter = Number.POSITIVE_INFINITY } = fault;
        let sent = 0;
        const pieces = new Readable({
          read() {
            if (sent >= closeAfter) return void this.destroy(new Error('closed'));
            sent += piece.length;
            proxy.taken += piece.length;
            this.push(piece);
          },
        });
        response.writeHead(200, { 'content-type': 'application/x-ndjson' });
        await pipeline(pieces, response);
        return;
      }
      default: {
        const answer = await forward(request);
        const answered = Buffer.from(await answer.arrayBuffer());
        if (fault.kind === 'lose') {
          response.destroy();
          return;
        }
        const kept = [...answer.headers].filter(([name]) => !/^(transfer-encoding|connection|keep-alive)$/.test(name));
        response.writeHead(answer.status, Object.fromEntries(kept));
        if (fault.kind === 'none') response.end(answered);
        else response.write(answered.subarray(0, answered.length / 2), () => response.destroy());
      }
    }
  }

  async function forward({ method, url, headers, body }: ProxiedRequest): Promise<Response> {
    // fetch would decompress the answer and keep its headers.
    const { host, connection, 'content-length': _, 'accept-encoding': __, ...kept } = headers;
    const init = {
      method,
      headers: { ...(kept as Record<string, string>), 'accept-encoding': 'identity' },
      ...(body === '' ? {} : { body: Buffer.from(body, 'latin1') }),
    };
    return await fetch(`${target}${url}`, init);
  }

  async function listen(): Promise<void> {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
  }

  async function stop(): Promise<void> {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  }

  await listen();
  const proxy: FaultyProxy = {
    baseUrl: `http://127.0.0.1:${port}`,
    requests: [],
    taken: 0,
    behave(next) {
      behaviour = next;
    },
    pause: stop,
    resume: listen,
    async close() {
      if (server.listening) await stop();
    },
  };
  return proxy;
}
