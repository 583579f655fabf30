import type { ClientRequest, IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import type { LookupFunction } from 'node:net';
import { urlToHttpOptions } from 'node:url';
import { nodeHttp } from '../core/node-http.ts';

export interface PostRequest {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Aborts the request and its answer. */
  readonly signal: AbortSignal | undefined;
  /** Awaited once connected, before anything is sent. If it rejects, nothing is sent. */
  readonly beforeSend?: (() => Promise<void>) | undefined;
  /** Called right before the request is sent. */
  readonly onSend?: (() => void) | undefined;
}

/** The head of an answer, whose body is not read yet. */
export interface PostAnswer {
  readonly response: IncomingMessage;
  /** Call it when the answer has been read: detaches the signal. */
  release(): void;
}

/** HTTP connections with keep-alive. */
export interface HttpConnections {
  /** Sends one request. Follows no redirect. Rejects if no answer begins. */
  post(url: URL, request: PostRequest): Promise<PostAnswer>;
  /** Closes the idle connections. */
  close(): void;
}

export interface HttpConnectionOptions {
  /**
   * Runs before a connection is made. Throws if the URL names a refused address, and returns the lookup function for
   * names: only the address that it returns is connected to.
   */
  guard?: (url: URL) => LookupFunction;
  /** Milliseconds to connect; left out: the max. duration of the call. */
  connectTimeout?: number;
}

// Milliseconds. The peer may close an older idle connection while a request is on its way.
const maxIdleTime = 30_000;
const maxIdleConnections = 256;

/**
 * HTTP with Node's own client instead of the global fetch: it reports whether a request has left, keeps connections
 * alive longer, and follows no redirect.
 */
export function createHttpConnections({ guard, connectTimeout }: HttpConnectionOptions = {}): HttpConnections {
  const agentOptions = { keepAlive: true, maxFreeSockets: maxIdleConnections, timeout: maxIdleTime };
  const plain = new nodeHttp.Agent(agentOptions);
  const secure = new HttpsAgent(agentOptions);

  /** Options instead of a URL object: Node copies a URL repeatedly, which takes as long as everything else here. */
  function open(url: URL, headers: Readonly<Record<string, string>>): ClientRequest {
    const { hostname, port, pathname, search, username } = url;
    const options = {
      method: 'POST',
      headers,
      hostname: hostname.replace(/^\[(.*)\]$/, '$1'),
      port,
      path: `${pathname}${search}`,
      auth: username === '' ? undefined : urlToHttpOptions(url).auth,
      lookup: guard?.(url),
    };
    return url.protocol === 'https:'
      ? requestHttps({ ...options, agent: secure })
      : nodeHttp.request({ ...options, agent: plain });
  }

  return {
    async post(url, { headers, body, signal, beforeSend, onSend }) {
      const request = open(url, { ...headers, 'content-length': String(Buffer.byteLength(body)) });
      const connected = connectionOf(request, url.protocol === 'https:' ? 'secureConnect' : 'connect', connectTimeout);
      const send = async () => {
        await connected;
        await beforeSend?.();
        if (request.destroyed) return;
        onSend?.();
        request.end(body);
      };
      const release = abortWith(request, signal);
      try {
        return { response: await answerTo(request, send), release };
      } catch (error) {
        release();
        throw error;
      }
    },

    close() {
      plain.destroy();
      secure.destroy();
    },
  };
}

/** Resolves once the request is connected. Never settles if that fails: the request's own error reports it. */
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
    // The listener stays, because a request destroyed after its answer has begun may fail again.
    request.on('error', reject);
    send().catch((error) => request.destroy(error));
  });
}
