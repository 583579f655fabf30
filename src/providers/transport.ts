import { type ClientRequest, Agent as HttpAgent, type IncomingMessage, request as requestHttp } from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import type { LookupFunction } from 'node:net';
import { keepHeapSmall } from '../concurrency/heap-growth.ts';
import { TimeSlice } from '../concurrency/time-slice.ts';
import { traceHeaders } from '../concurrency/trace.ts';
import type { Adapter } from './adapter.ts';
import { answerLimits, EventMeter, hasMoreValues } from './answer-limits.ts';
import type { CallDeadline } from './deadline.ts';

/** The state of one call's HTTP request. The possible cost of the call is derived from it. */
export interface HttpExchange {
  /** Whether a connection was made. If so, a part of the request may have reached the provider. */
  left: boolean;
  /** The number of requests. The reservation covers the cost of one request only. */
  requests: number;
  /** The status of the answer, once it has begun. */
  status: number | undefined;
  /** Whether a success was read to its end, whatever it contains. */
  answered: boolean;
  /** Whether a stream ended too early. The parts before that were passed on. */
  cut: boolean;
  /** The text of a success that was not streamed. */
  body: string | undefined;
  /** The number of tool calls that were removed from it. */
  unreadToolCalls: number;
  /** An answer that is not a success. */
  refusal: { status: number; retryAfter: string | undefined; body: string } | undefined;
}

export interface FetchOptions {
  readonly streaming: boolean;
  readonly deadline: Pick<CallDeadline, 'heard' | 'paused'>;
  /** See Adapter. */
  readonly cutAnswer?: Adapter['cutAnswer'];
}

export interface Transport {
  /** A `fetch` for the provider packages. It records its progress in the exchange and sends at most one request. */
  fetchFor(exchange: HttpExchange, options: FetchOptions): typeof fetch;
  /** Closes the idle connections. */
  close(): void;
}

// Milliseconds. The other side may close an older idle connection while a request is on its way.
const maxIdleTime = 30_000;
const maxIdleConnections = 256;

export function newExchange(): HttpExchange {
  return {
    left: false,
    requests: 0,
    status: undefined,
    answered: false,
    cut: false,
    body: undefined,
    unreadToolCalls: 0,
    refusal: undefined,
  };
}

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
    fetchFor: (exchange, { streaming, deadline, cutAnswer }) => {
      return async (input, init = {}) => {
        exchange.requests += 1;
        if (exchange.requests > 1) throw new Error('a second request of one call');
        const url = new URL(input instanceof Request ? input.url : input);
        const body = String(init.body);
        const headers = Object.fromEntries(new Headers(init.headers));
        const request = open(url, { ...headers, ...traceHeaders(), 'content-length': String(Buffer.byteLength(body)) });
        noteDeparture(request, exchange, url.protocol === 'https:' ? 'secureConnect' : 'connect', connectTimeout);
        const release = abortWith(request, init.signal ?? undefined);
        try {
          const response = await answerTo(request, body);
          deadline.heard();
          exchange.status = response.statusCode;
          response.once('end', () => (exchange.answered = true));
          if (!isSuccess(response)) {
            exchange.refusal = await refusalOf(response);
          } else if (streaming) {
            return streamed(response, { exchange, deadline, release });
          } else {
            response.on('data', deadline.heard);
            const answer = await collect(response, answerLimits.wholeBytes);
            // To read a long answer takes milliseconds, and a turn of the loop may receive several of them.
            if (answer.length > answerLimits.shortBytes) await new TimeSlice().rest();
            // Its texts are garbage soon, but too long for the quick collections of it.
            if (answer.length > answerLimits.longBytes) setImmediate(keepHeapSmall());
            if (hasMoreValues(answer, answerLimits.wholeValues)) throw new Error('the answer has too many values');
            exchange.body = answer.toString('utf8');
            if (answer.length > answerLimits.shortBytes && cutAnswer !== undefined) cutBody(exchange, cutAnswer);
            return new Response(exchange.body);
          }
          throw new Error(`status ${exchange.status}`);
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
  exchange: HttpExchange,
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
    // The listener stays, because a request that is destroyed after its answer has begun may fail again.
    request.on('error', reject);
    request.end(body);
  });
}

function isSuccess({ statusCode = 0 }: IncomingMessage): boolean {
  return statusCode >= 200 && statusCode <= 299;
}

/** Reads the whole body. Rejects where the body is cut or has more than `limit` bytes. */
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

/** A text that is not JSON stays as it is: the provider package refuses it. */
function cutBody(exchange: HttpExchange, cutAnswer: NonNullable<Adapter['cutAnswer']>): void {
  try {
    const answer: unknown = JSON.parse(exchange.body ?? '');
    const unread = cutAnswer(answer, answerLimits.checkedToolCalls);
    if (unread === 0) return;
    exchange.body = JSON.stringify(answer);
    exchange.unreadToolCalls = unread;
  } catch {}
}

/**
 * The body of a stream. A stream that is cut ends normally, and the exchange records the cut. If it failed instead, the
 * parts that the reader has not read yet would be lost.
 */
function streamed(
  response: IncomingMessage,
  { exchange, deadline, release }: { exchange: HttpExchange; deadline: FetchOptions['deadline']; release: () => void },
): Response {
  let isOpen = true;
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      const event = new EventMeter();
      let length = 0;
      const end = (isCut: boolean) => {
        if (!isOpen) return;
        isOpen = false;
        exchange.cut = isCut;
        release();
        controller.close();
      };
      response.on('data', (chunk: Buffer) => {
        if (!isOpen) return;
        deadline.heard();
        length += chunk.length;
        if (length > answerLimits.streamBytes || event.isBeyond(chunk, answerLimits.eventBytes)) {
          end(true);
          response.destroy();
          return;
        }
        controller.enqueue(chunk);
        if ((controller.desiredSize ?? 0) > 0) return;
        response.pause();
        deadline.paused();
      });
      response.once('end', () => end(false));
      // This event follows an error, too.
      response.once('close', () => end(true));
      response.on('error', () => {});
    },
    pull() {
      deadline.heard();
      response.resume();
    },
    cancel() {
      isOpen = false;
      release();
      response.destroy();
    },
  });
  return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
}

async function refusalOf(response: IncomingMessage): Promise<NonNullable<HttpExchange['refusal']>> {
  const retryAfter = response.headers['retry-after'];
  // Reads to the end, so the connection can be used again. A failure here changes nothing.
  const body = await collect(response, answerLimits.errorBytes).catch(() => Buffer.alloc(0));
  return { status: response.statusCode ?? 0, retryAfter, body: body.toString('utf8') };
}
