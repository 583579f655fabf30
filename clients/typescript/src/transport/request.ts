import { stringifyJson } from '../json/stringify.ts';
import type { Repeat } from './retry.ts';

/** What every call takes in addition to its own parameters. */
export interface CallOptions {
  /** Ends the call, its retries and its waiting. The call rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds that an attempt has until the last byte of its answer; of a stream, the longest silence. */
  readonly timeout?: number | undefined;
  /** Attempts after the first. */
  readonly maxRetries?: number | undefined;
}

export interface ApiRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** After the base URL, its parts encoded. */
  readonly path: string;
  readonly query?: Parameters | undefined;
  readonly headers?: Readonly<Record<string, string | undefined>> | undefined;
  readonly body?: RequestBody | undefined;
  /** Left out: as the method says. */
  readonly repeat?: Repeat | undefined;
  /** Milliseconds, for operations that take longer than others. */
  readonly timeout?: number | undefined;
  /** Sent without an access token. */
  readonly anonymous?: boolean;
  /** Whether an answer that is not 2xx is a result of the operation rather than an error. */
  readonly isResult?: ((status: number, body: string) => boolean) | undefined;
  /** Goes on when the page that sends it is left. Its body has at most 64 KiB. */
  readonly keepalive?: boolean;
}

/** Those that are undefined are left out. */
export type Parameters = Readonly<Record<string, string | number | boolean | undefined>>;

export interface RequestBody {
  readonly type: string;
  readonly content: string | Uint8Array<ArrayBuffer>;
}

/** Numbers of the lossless parser keep their digits. */
export function jsonBody(value: unknown): RequestBody {
  return { type: 'application/json', content: stringifyJson(value) };
}

/** An answer of 2xx, or another that the request takes as a result, read to its end. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** An answer of 2xx whose body is still to come. */
export interface StreamedAnswer {
  readonly headers: Headers;
  readonly body: ReadableStream<Uint8Array>;
}

/** Encodes the parts of a path: `` path`/configurations/${key}` ``. */
export function path(texts: TemplateStringsArray, ...parts: string[]): string {
  return texts.reduce((sum, text, index) => sum + encodeURIComponent(parts[index - 1] ?? '') + text);
}

export function urlOf(baseUrl: string, { path: place, query = {} }: ApiRequest): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) parameters.set(name, String(value));
  }
  const search = parameters.toString();
  return `${baseUrl}${place}${search === '' ? '' : `?${search}`}`;
}

export function initOf(
  { method, headers = {}, body, keepalive = false }: ApiRequest,
  { token, requestId }: { token: string | undefined; requestId: string },
): RequestInit {
  const sent = new Headers({ accept: 'application/json', 'x-request-id': requestId });
  if (token !== undefined) sent.set('authorization', `Bearer ${token}`);
  if (body !== undefined) sent.set('content-type', body.type);
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) sent.set(name, value);
  }
  return { method, headers: sent, keepalive, ...(body === undefined ? {} : { body: body.content }) };
}
