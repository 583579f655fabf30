import { type ClientRequest, Agent as HttpAgent, type IncomingMessage, request as requestHttp } from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import type { LookupFunction } from 'node:net';

/** What became of one call's request, for whoever has to tell what it may have cost. */
export interface Exchange {
  /** Whether a connection stood, so that some of the request may have reached the provider. */
  left: boolean;
  /** How often something was asked for: an answer costs what was reserved for it only as long as that is once. */
  requests: number;
  /** Of an answer that began. */
  status: number | undefined;
  /** Whether a success came in to its end, whatever is in it. */
  answered: boolean;
  /** Of an answer that is no success. */
  refusal: { status: number; retryAfter: string | undefined; body: string } | undefined;
}

export interface Transport {
  /** A `fetch` for the provider packages that tells the exchange what it does and sends one request at most. */
  fetchFor(exchange: Exchange, options: { streaming: boolean }): typeof fetch;
  /** Closes the connections that are kept alive. */
  close(): void;
}

// A free connection that is older may be closed by the other side while a request is on its way (milliseconds).
const longestIdle = 30_000;
const mostIdle = 256;
const largestAnswer = 16 * 1024 * 1024;
const largestRefusal = 64 * 1024;

export function newExchange(): Exchange {
  return { left: false, requests: 0, status: undefined, answered: false, refusal: undefined };
}

export interface TransportOptions {
  /**
   * Asked before a connection is made: throws where the URL names an address that is refused, and answers how names are
   * looked up. No other address than the one that was looked up is connected to.
   */
  guard?: (url: URL) => LookupFunction;
  /** Milliseconds until a connection has to stand; left out: as long as the call may last. */
  connectTimeout?: number;
}

/**
 * HTTP by Node's own client instead of the global fetch: it knows whether a request has left, keeps connections alive
 * for longer, and follows no redirect.
 */
export function createTransport({ guard, connectTimeout }: TransportOptions = {}): Transport {
  const agentOptions = { keepAlive: true, maxFreeSockets: mostIdle, timeout: longestIdle };
  const plain = new HttpAgent(agentOptions);
  const secure = new HttpsAgent(agentOptions);

  function open(url: URL, headers: Record<string, string>): ClientRequest {
    const lookup = guard?.(url);
    const options = { method: 'POST', headers, ...(lookup === undefined ? {} : { lookup }) };
    return url.protocol === 'https:'
      ? requestHttps(url, { ...options, agent: secure })
      : requestHttp(url, { ...options, agent: plain });
  }

  return {
    fetchFor: (exchange, { streaming }) => {
      return async (input, init = {}) => {
        exchange.requests += 1;
        if (exchange.requests > 1) throw new Error('a second request of one call');
        const url = new URL(input instanceof Request ? input.url : input);
        const body = String(init.body);
        const headers = Object.fromEntries(new Headers(init.headers));
        const request = open(url, { ...headers, 'content-length': String(Buffer.byteLength(body)) });
        noteDeparture(request, exchange, url.protocol === 'https:' ? 'secureConnect' : 'connect', connectTimeout);
        const release = abortWith(request, init.signal ?? undefined);
        try {
          const response = await answerTo(request, body);
          exchange.status = response.statusCode;
          response.once('end', () => (exchange.answered = true));
          if (isSuccess(response)) {
            return streaming ? streamed(response, release) : new Response(await collect(response, largestAnswer));
          }
          exchange.refusal = await refusalOf(response);
          throw new Error(`status ${exchange.refusal.status}`);
        } finally {
          if (!streaming) release();
        }
      };
    },

    close() {
      plain.destroy();
      secure.destroy();
    },
  };
}

function noteDeparture(
  request: ClientRequest,
  exchange: Exchange,
  connected: 'connect' | 'secureConnect',
  patience: number | undefined,
): void {
  request.once('socket', (socket) => {
    if (request.reusedSocket) {
      exchange.left = true;
      return;
    }
    const timer = patience && setTimeout(() => request.destroy(new Error('no connection in time')), patience);
    socket.once('close', () => clearTimeout(timer));
    socket.once(connected, () => {
      clearTimeout(timer);
      exchange.left = true;
    });
  });
}

function abortWith(request: ClientRequest, signal: AbortSignal | undefined): () => void {
  if (signal === undefined) return () => {};
  const abort = () => request.destroy(new Error('aborted'));
  if (signal.aborted) abort();
  else signal.addEventListener('abort', abort, { once: true });
  return () => signal.removeEventListener('abort', abort);
}

function answerTo(request: ClientRequest, body: string): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request.once('response', resolve);
    // Stays: what is destroyed after its answer has begun may fail once more.
    request.on('error', reject);
    request.end(body);
  });
}

function isSuccess({ statusCode = 0 }: IncomingMessage): boolean {
  return statusCode >= 200 && statusCode <= 299;
}

/** The whole body; rejects where it is cut or larger than that many bytes. */
function collect(response: IncomingMessage, limit: number): Promise<Buffer<ArrayBuffer>> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    response.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      length += chunk.length;
      if (length > limit) response.destroy(new Error('the answer is too large'));
    });
    response.once('end', () => resolve(Buffer.concat(chunks)));
    response.on('error', reject);
    response.once('close', () => reject(new Error('the answer was cut')));
  });
}

function streamed(response: IncomingMessage, release: () => void): Response {
  response.once('close', release);
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      let length = 0;
      response.on('data', (chunk: Buffer) => {
        length += chunk.length;
        if (length > largestAnswer) response.destroy(new Error('the answer is too large'));
        controller.enqueue(chunk);
        if ((controller.desiredSize ?? 0) <= 0) response.pause();
      });
      response.once('end', () => controller.close());
      response.on('error', (error) => controller.error(error));
    },
    pull: () => void response.resume(),
    cancel: () => void response.destroy(),
  });
  return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
}

async function refusalOf(response: IncomingMessage): Promise<NonNullable<Exchange['refusal']>> {
  const retryAfter = response.headers['retry-after'];
  // Read to its end, so that the connection can be used again; whatever is wrong with it changes nothing.
  const body = await collect(response, largestRefusal).catch(() => Buffer.alloc(0));
  return { status: response.statusCode ?? 0, retryAfter, body: body.toString('utf8') };
}
