import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { Readable } from 'node:stream';
import type { NewClient } from '../../../src/access/oauth/clients.ts';

export interface BrowserOptions {
  /** What stands before each path, `/tools/annals` for instance. */
  prefix?: string;
  /** The name under which the service is opened; left out: where it listens. */
  publicUrl?: string;
}

export interface ConsoleSession {
  tenant: string;
  client: string;
  name: string;
  scopes: string[];
  expiresAt: string;
}

export interface Sent {
  method?: string;
  body?: string;
  signal?: AbortSignal;
}

/** Sends what a browser sends for a page of the console, and keeps its cookie. */
export class Browser {
  readonly #baseUrl: string;
  readonly #prefix: string;
  readonly #origin: string;
  /** `name=value` of the last `Set-Cookie`. */
  cookie: string | undefined;
  /** The whole of it. */
  setCookie = '';

  constructor({ baseUrl }: { baseUrl: string }, { prefix = '', publicUrl = baseUrl }: BrowserOptions = {}) {
    this.#baseUrl = baseUrl;
    this.#prefix = prefix;
    this.#origin = new URL(publicUrl).origin;
  }

  /** A header with an empty value is not sent. */
  async call(path: string, init: Sent & { headers?: Record<string, string> } = {}): Promise<Response> {
    const isSafe = ['GET', 'HEAD'].includes(init.method ?? 'GET');
    const headers = new Headers({
      host: new URL(this.#origin).host,
      'sec-fetch-site': 'same-origin',
      ...(isSafe ? {} : { origin: this.#origin }),
      ...(init.body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(this.cookie === undefined ? {} : { cookie: this.cookie }),
      ...init.headers,
    });
    for (const [name, value] of headers) if (value === '') headers.delete(name);
    const response = await send(`${this.#baseUrl}${this.#prefix}${path}`, { ...init, headers });
    const [setCookie] = response.headers.getSetCookie();
    if (setCookie !== undefined) {
      this.setCookie = setCookie;
      const [pair = ''] = setCookie.split(';');
      this.cookie = pair.endsWith('=') ? undefined : pair;
    }
    return response;
  }

  async post(path: string, body: object, headers: Record<string, string> = {}): Promise<Response> {
    return await this.call(path, { method: 'POST', body: JSON.stringify(body), headers });
  }

  async signIn({ clientId, clientSecret }: Pick<NewClient, 'clientId' | 'clientSecret'>): Promise<Response> {
    return await this.post('/console/api/session', { clientId, clientSecret });
  }

  /** `fragment` is what stands behind the `#` of a link. */
  async redeem(fragment: string): Promise<Response> {
    return await this.post('/console/api/session', { link: fragment.replace(/^link=/, '') });
  }

  async signOut(): Promise<Response> {
    return await this.call('/console/api/session', { method: 'DELETE' });
  }
}

/** As fetch, which would not send another `Host`. */
async function send(
  url: string,
  { method = 'GET', body, signal, headers }: Sent & { headers: Headers },
): Promise<Response> {
  const sending = request(url, {
    method,
    headers: Object.fromEntries(headers),
    ...(signal === undefined ? {} : { signal }),
  });
  sending.end(body);
  const [message]: IncomingMessage[] = await once(sending, 'response');
  if (message === undefined) throw new Error('no answer');
  const received = new Headers();
  for (const [name, values = []] of Object.entries(message.headersDistinct)) {
    for (const value of values) received.append(name, value);
  }
  const { statusCode: status = 0 } = message;
  const isEmpty = [204, 304].includes(status) || method === 'HEAD';
  if (isEmpty) message.resume();
  return new Response(isEmpty ? null : (Readable.toWeb(message) as ReadableStream), { status, headers: received });
}
