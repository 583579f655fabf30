import { type ClientRequest, Agent as HttpAgent, type IncomingMessage, request as requestHttp } from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import type { LookupFunction } from 'node:net';
import type { Readable } from 'node:stream';
import { keepHeapSmall } from '../core/concurrency/heap-growth.ts';
import { TimeSlice } from '../core/concurrency/time-slice.ts';
import { traceHeaders } from '../core/concurrency/trace.ts';
import { streamed, unpacked, wholeAnswer } from './answer-body.ts';
import { answerLimits, hasMoreValues } from './answer-limits.ts';
import type { FetchOptions, HttpExchange } from './http-exchange.ts';

export interface Transport {
  /** A `fetch` for the provider packages. It records its progress in the exchange and sends at most one request. */
  fetchFor(exchange: HttpExchange, options: FetchOptions): typeof fetch;
  /** Closes the idle connections. */
  close(): void;
}

// Milliseconds. The other side may close an older idle connection while a request is on its way.
const maxIdleTime = 30_000;
const maxIdleConnections = 256;

export interface TransportOptions {
  /**
   * Runs before a connection is made. Throws where the URL names a refused address, and returns the lookup function for
   * names. The transport connects only to the address that this lookup returned.
   */
  guard?: (url: URL) => LookupFunction;
  /** Milliseconds within which the connection must be made. If left out, the max. duration of the call applies. */
  connectTimeout?: number;
}

/**
 * HTTP with Node's own client instead of the global fetch. It knows whether a request has left, keeps connections alive
 * for longer, and follows no redirect.
 */
export function createTransport({ guard, connectTimeout }: TransportOptions = {}): Transport {
  const agentOptions = { keepAlive: true, maxFreeSockets: maxIdleConnections, timeout: maxIdleTime };
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
    fetchFor: (exchange, { streaming, deadline, adapter, beforeSend, onAnswering }) => {
      return async (input, init = {}) => {
        exchange.requests += 1;
        if (exchange.requests > 1) throw new Error('a second request of one call');
        const url = new URL(input instanceof Request ? input.url : input);
        const body = String(init.body);
        // To write it took milliseconds, and to encode it takes some more.
        if (body.length > answerLimits.longBytes) await new TimeSlice().rest();
        const headers = {
          ...Object.fromEntries(new Headers(init.headers)),
          ...traceHeaders(),
          // A packed stream comes late. Some servers pack all the same.
          'accept-encoding': 'identity',
          'content-length': String(Buffer.byteLength(body)),
        };
        const request = open(url, headers);
        const connected = connectionOf(
          request,
          url.protocol === 'https:' ? 'secureConnect' : 'connect',
          connectTimeout,
        );
        const send = async () => {
          await connected;
          await beforeSend?.();
          if (request.destroyed) return;
          exchange.left = true;
          request.end(body);
        };
        const release = abortWith(request, init.signal ?? undefined);
        try {
          const response = await answerTo(request, send);
          deadline.heard();
          exchange.status = response.statusCode;
          const content = unpacked(response);
          content.once('end', () => (exchange.answered = true));
          if (!isSuccess(response)) {
            exchange.refusal = await refusalOf(response, content);
          } else if (streaming) {
            onAnswering?.();
            return streamed(content, { exchange, deadline, release, adapter });
          } else {
            content.on('data', deadline.heard);
            const answer = await collect(content, answerLimits.wholeBytes);
            // To read a long answer takes milliseconds, and a turn of the loop may receive several of them.
            if (answer.length > answerLimits.shortBytes) await new TimeSlice().rest();
            // Its texts are garbage soon, but too long for the quick collections of it.
            if (answer.length > answerLimits.longBytes) setImmediate(keepHeapSmall());
            if (hasMoreValues(answer, answerLimits.wholeValues)) throw new Error('the answer has too many values');
            const value = wholeAnswer(answer, exchange, adapter);
            if (value !== undefined) return new Response(JSON.stringify(value));
          }
          throw new Error(`no answer, status ${exchange.status}`);
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

/** Resolves when the request has its connection, and never where it fails. */
function connectionOf(
  request: ClientRequest,
  event: 'connect' | 'secureConnect',
  patience: number | undefined,
): Promise<void> {
  return new Promise((resolve) => {
    request.once('socket', (socket) => {
      if (request.reusedSocket) {
        resolve();
        return;
      }
      const timer = patience && setTimeout(() => request.destroy(new Error('no connection in time')), patience);
      socket.once('close', () => clearTimeout(timer));
      socket.once(event, () => {
        clearTimeout(timer);
        resolve();
      });
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

function answerTo(request: ClientRequest, send: () => Promise<void>): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request.once('response', resolve);
    // The listener stays, because a request that is destroyed after its answer has begun may fail again.
    request.on('error', reject);
    send().catch((error) => request.destroy(error));
  });
}

function isSuccess({ statusCode = 0 }: IncomingMessage): boolean {
  return statusCode >= 200 && statusCode <= 299;
}

/** Reads the whole body. Rejects where the body is cut or has more than `limit` bytes. */
function collect(response: Readable, limit: number): Promise<Buffer<ArrayBuffer>> {
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

async function refusalOf(response: IncomingMessage, content: Readable): Promise<NonNullable<HttpExchange['refusal']>> {
  const retryAfter = response.headers['retry-after'];
  // Reads to the end, so the connection can be used again. A failure here changes nothing.
  const body = await collect(content, answerLimits.errorBytes).catch(() => Buffer.alloc(0));
  return { status: response.statusCode ?? 0, retryAfter, body: body.toString('utf8'), hasBegun: false };
}
