import type { ClientRequest, IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import type { LookupFunction } from 'node:net';
import { urlToHttpOptions } from 'node:url';
import type { AllowedAddress } from '../core/config/addresses.ts';
import { nodeHttp } from '../core/node-http.ts';
import { Stop, type StopSignal } from '../core/stop-signal.ts';
import { guardedLookup } from './addresses.ts';

export interface OutboundRequest {
  /** Default: POST. */
  readonly method?: 'GET' | 'HEAD' | 'POST' | 'PUT';
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array | undefined;
  /** Aborts the request and its response. */
  readonly signal?: StopSignal | undefined;
  /** Awaited once connected, before anything is sent. If it rejects, nothing is sent. */
  readonly beforeSend?: (() => Promise<void>) | undefined;
  /** Called right before the request is sent. */
  readonly onSend?: (() => void) | undefined;
}

/** The head of a response, whose body is not read yet. */
export interface OpenResponse {
  readonly response: IncomingMessage;
  /** The address of the peer. */
  readonly peer: string;
  /** Call it when the response has been read: detaches the signal. */
  release(): void;
}

export interface ResponseLimits {
  /** Milliseconds until the response must be complete. */
  readonly time: number;
  /** Of the body. */
  readonly bytes: number;
}

/** A response within limits. */
export interface BoundedResponse {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  /** At most `limits.bytes`. */
  readonly body: Buffer;
  readonly peer: string;
  /** Why the body is not whole: it reached a limit, or the connection was lost. */
  readonly cut: 'bytes' | 'time' | 'connection' | undefined;
}

/** No response began. */
export class NoResponse extends Error {
  readonly reason: 'timeout' | 'upgrade' | 'closed';
  /** The address of the peer; undefined: no connection was made. */
  readonly peer: string | undefined;
  /** The address with which no TLS could be agreed on, where that was the reason. */
  readonly insecurePeer: string | undefined;
  /** The request was sent on an idle connection, which the peer may close at any moment. */
  readonly isReused: boolean;

  constructor(reason: NoResponse['reason'], { peer, insecurePeer, isReused = false, cause }: Partial<NoResponse> = {}) {
    super('no response', { cause });
    this.name = 'NoResponse';
    this.reason = reason;
    this.peer = peer;
    this.insecurePeer = insecurePeer;
    this.isReused = isReused;
  }
}

export interface HttpClientOptions {
  /**
   * Runs before a connection is made. Throws if the URL names a refused address, and returns the lookup function for
   * names: only the address that it returns is connected to.
   */
  readonly guard?: ((url: URL) => LookupFunction) | undefined;
  /** Milliseconds to connect; default: the time of the whole request. */
  readonly connectTimeout?: number | undefined;
  /** Milliseconds; default: 30,000. The peer may close an older idle connection while a request is on its way. */
  readonly maxIdleTime?: number;
  readonly maxIdleConnections?: number;
  /** For tests: an additional CA certificate. */
  readonly ca?: string | undefined;
}

/**
 * The HTTP client for all servers that Annals calls. Node's own client instead of the global fetch: it reports whether
 * a request has left, checks the address that it connects to, keeps connections alive longer, and follows no redirect.
 */
export class HttpClient {
  readonly #options: HttpClientOptions;
  readonly #plain;
  readonly #secure;

  constructor(options: HttpClientOptions = {}) {
    const { maxIdleTime = 30_000, maxIdleConnections = 256, ca } = options;
    const agentOptions = { keepAlive: true, maxFreeSockets: maxIdleConnections, timeout: maxIdleTime };
    this.#options = options;
    this.#plain = new nodeHttp.Agent(agentOptions);
    this.#secure = new HttpsAgent({ ...agentOptions, ...(ca !== undefined && { ca }) });
  }

  /** Sends one request. Rejects with NoResponse if no response begins, and with what `beforeSend` throws. */
  async open(url: URL, { signal, beforeSend, onSend, body, ...head }: OutboundRequest): Promise<OpenResponse> {
    let request: ClientRequest;
    try {
      signal?.throwIfAborted();
      request = this.#request(url, head, body);
    } catch (cause) {
      throw new NoResponse('closed', { cause });
    }
    const abort = () => request.destroy(new Error('aborted'));
    const release = () => signal?.removeEventListener('abort', abort);
    signal?.addEventListener('abort', abort, { once: true });
    let peer: string | undefined;
    let insecurePeer: string | undefined;
    if (url.protocol === 'https:') {
      request.once('socket', (socket) => socket.once('connect', () => (insecurePeer = socket.remoteAddress)));
    }
    try {
      return await new Promise<OpenResponse>((resolve, reject) => {
        const fail = (reason: NoResponse['reason'], cause?: unknown) =>
          reject(
            new NoResponse(reason, {
              peer,
              insecurePeer: peer === undefined ? insecurePeer : undefined,
              isReused: request.reusedSocket,
              cause,
            }),
          );
        request.once('response', (response) => resolve({ response, peer: peer ?? '', release }));
        // The listener stays: a request that is destroyed after its response has begun may fail again.
        request.on('error', (error) => fail('closed', error));
        // Without a listener Node closes the connection and emits no error.
        request.once('upgrade', (_response, socket) => {
          socket.destroy();
          fail('upgrade');
        });
        const send = async () => {
          peer = await connectionOf(request, url.protocol === 'https:', this.#options.connectTimeout);
          try {
            await beforeSend?.();
          } catch (error) {
            reject(error);
            request.destroy();
          }
          if (request.destroyed) return;
          onSend?.();
          endWith(request, body);
        };
        void send();
      });
    } catch (error) {
      release();
      throw error;
    }
  }

  /**
   * Sends a request and reads its response within the limits. Rejects with NoResponse if none begins. A request on an
   * idle connection that its peer has closed is sent once more.
   */
  async send(url: URL, request: OutboundRequest, { time, bytes }: ResponseLimits): Promise<BoundedResponse> {
    const startedAt = performance.now();
    const stop = new Stop();
    const abort = () => stop.abort(request.signal?.reason);
    if (request.signal?.aborted === true) abort();
    request.signal?.addEventListener('abort', abort, { once: true });
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      stop.abort(new Error('too late'));
    }, time);
    try {
      const { response, peer, release } = await this.open(url, { ...request, signal: stop });
      const { statusCode: status = 0, headers } = response;
      const { body, cut } = await readBounded(response, bytes);
      release();
      return { status, headers, peer, body, cut: cut === 'connection' && isLate ? 'time' : cut };
    } catch (error) {
      if (!(error instanceof NoResponse)) throw error;
      if (isLate) throw new NoResponse('timeout', { peer: error.peer, insecurePeer: error.insecurePeer, cause: error });
      const left = time - (performance.now() - startedAt);
      if (error.reason !== 'closed' || !error.isReused || stop.aborted || left <= 0) throw error;
      return await this.send(url, request, { time: left, bytes });
    } finally {
      clearTimeout(timer);
      request.signal?.removeEventListener('abort', abort);
    }
  }

  /** Closes the idle connections. */
  close(): void {
    this.#plain.destroy();
    this.#secure.destroy();
  }

  /** Options instead of a URL object: Node copies a URL repeatedly, which takes as long as everything else here. */
  #request(
    url: URL,
    { method = 'POST', headers }: Pick<OutboundRequest, 'method' | 'headers'>,
    body: OutboundRequest['body'],
  ): ClientRequest {
    const { hostname, port, pathname, search, username } = url;
    const options = {
      method,
      headers: body === undefined ? headers : { ...headers, 'content-length': String(Buffer.byteLength(body)) },
      hostname: hostname.replace(/^\[(.*)\]$/, '$1'),
      port,
      path: `${pathname}${search}`,
      auth: username === '' ? undefined : urlToHttpOptions(url).auth,
      lookup: this.#options.guard?.(url),
    };
    return url.protocol === 'https:'
      ? requestHttps({ ...options, agent: this.#secure })
      : nodeHttp.request({ ...options, agent: this.#plain });
  }
}

/**
 * For servers that tenants name (contract 8): public addresses, and those that the operator allows. A silent address is
 * indistinguishable from one that refuses the connection.
 */
export function createSelfHostedClient(allowed: readonly AllowedAddress[]): HttpClient {
  return new HttpClient({ guard: (url) => guardedLookup(url, { allowed }), connectTimeout: 10_000 });
}

/** Bytes. Copying a longer body takes longer than what one write saves. */
const maxShortBody = 64 * 1024;

/** Node writes a text together with the head of the request, and bytes apart from it. */
function endWith(request: ClientRequest, body: OutboundRequest['body']): void {
  if (!(body instanceof Uint8Array) || body.length > maxShortBody) request.end(body);
  else request.end(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('latin1'), 'latin1');
}

/**
 * Resolves with the peer's address once the request is connected. Never settles if that fails: the request's own error
 * reports it.
 */
function connectionOf(request: ClientRequest, isSecure: boolean, patience: number | undefined): Promise<string> {
  return new Promise((resolve) => {
    request.once('socket', (socket) => {
      const connected = () => {
        clearTimeout(timer);
        resolve(socket.remoteAddress ?? '');
      };
      if (request.reusedSocket) {
        resolve(socket.remoteAddress ?? '');
        return;
      }
      const timer = patience && setTimeout(() => request.destroy(new Error('no connection in time')), patience);
      socket.once('close', () => clearTimeout(timer));
      socket.once(isSecure ? 'secureConnect' : 'connect', connected);
    });
  });
}

/** Resolves with at most `limit` bytes, also if the response fails. */
function readBounded(response: IncomingMessage, limit: number): Promise<Pick<BoundedResponse, 'body' | 'cut'>> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let length = 0;
    response.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      length += chunk.length;
      if (length > limit) response.destroy();
    });
    response.on('error', () => {});
    response.once('close', () => {
      const body = Buffer.concat(chunks).subarray(0, limit);
      resolve({ body, cut: length > limit ? 'bytes' : response.complete ? undefined : 'connection' });
    });
  });
}

/** `Retry-After` as milliseconds from now: seconds, or a date (RFC 9110, 10.2.3). */
export function retryAfterOf({ headers }: Pick<BoundedResponse, 'headers'>): number | undefined {
  const text = headers['retry-after'];
  if (text === undefined) return undefined;
  if (/^\d{1,15}$/.test(text)) return Number(text) * 1_000;
  const date = Date.parse(text);
  return Number.isNaN(date) ? undefined : Math.max(0, date - Date.now());
}
