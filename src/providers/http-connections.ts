import type { ClientRequest, IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import type { LookupFunction } from 'node:net';
import { urlToHttpOptions } from 'node:url';
import { nodeHttp } from '../core/node-http.ts';

export interface PostRequest {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Ends the request and its answer. */
  readonly signal: AbortSignal | undefined;
  /** Awaited when the connection is there, before anything is sent. If it rejects, nothing is. */
  readonly beforeSend?: (() => Promise<void>) | undefined;
  /** Called right before the request leaves. */
  readonly onSend?: (() => void) | undefined;
}

/** The head of an answer. Its body is read later. */
export interface PostAnswer {
  readonly response: IncomingMessage;
  /** To be called when the answer is read: the signal ends it no longer. */
  release(): void;
}

/** Connections over HTTP that are kept alive. */
export interface HttpConnections {
  /** Sends one request. Follows no redirect. Rejects where no answer has begun. */
  post(url: URL, request: PostRequest): Promise<PostAnswer>;
  /** Closes the idle connections. */
  close(): void;
}

export interface HttpConnectionOptions {
  /**
   * Runs before a connection is made. Throws where the URL names a refused address, and returns the lookup function for
   * names. A connection is made only to the address that this lookup returned.
   */
  guard?: (url: URL) => LookupFunction;
  /** Milliseconds within which the connection must be made. If left out, the max. duration of the call applies. */
  connectTimeout?: number;
}

// Milliseconds. The other side may close an older idle connection while a request is on its way.
const maxIdleTime = 30_000;
const maxIdleConnections = 256;

/**
 * HTTP with Node's own client instead of the global fetch. It knows whether a request has left, keeps connections alive
 * for longer, and follows no redirect.
 */
export function createHttpConnections({ guard, connectTimeout }: HttpConnectionOptions = {}): HttpConnections {
  const agentOptions = { keepAlive: true, maxFreeSockets: maxIdleConnections, timeout: maxIdleTime };
  const plain = new nodeHttp.Agent(agentOptions);
  const secure = new HttpsAgent(agentOptions);

  /** Node takes a URL too, and copies it with all that is in it, again and again: that takes as long as all else here. */
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
