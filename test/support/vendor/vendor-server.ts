import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text as bodyOf } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type ReadRequest,
  type VendorAnswer,
  type VendorBody,
  type VendorFormat,
  vendorFormats,
} from './vendor-formats.ts';

/** What the vendor does with a request. */
export type Behaviour = {
  /** Milliseconds before anything is answered. */
  delay?: number;
  /** What has to have happened before anything is answered. */
  after?: Promise<unknown>;
} & (
  | (Partial<VendorAnswer> & { kind: 'answer' })
  /** Half of an answer, then the connection is closed. */
  | { kind: 'cut'; usage?: VendorAnswer['usage'] }
  /** Half of an answer, then nothing more. */
  | { kind: 'stall'; usage?: VendorAnswer['usage'] }
  /** A complete answer of 200 that is no JSON. */
  | { kind: 'garbage' }
  | { kind: 'hang' }
  /** A complete answer of 200 as it stands here, in two pieces. */
  | { kind: 'bytes'; headers: Record<string, string>; body: Uint8Array }
  /** Server-sent events as they stand here, so many milliseconds between them; then the end, a cut, or nothing more. */
  | { kind: 'events'; events: readonly string[]; every?: number; last?: 'end' | 'cut' | 'stall' }
  | { kind: 'status'; status: number; headers?: Record<string, string>; body?: unknown }
);

export interface VendorRequest extends ReadRequest {
  format: VendorFormat['name'];
  /** The path and the query. */
  url: string;
  headers: IncomingHttpHeaders;
  body: VendorBody;
  /** The body as it came. */
  bodyText: string;
  /** The connection it came on, from 1. */
  connection: number;
}

export interface Vendor {
  baseUrl: string;
  requests: VendorRequest[];
  /** When connections were closed on requests that had no whole answer yet (milliseconds of performance.now). */
  abandoned: number[];
  /** Tokens counted for answers, including undelivered ones. */
  counted: { input: number; output: number };
  /** What is done with every request from now on; the default answers with a text and its usage. */
  behave(behaviour: Behaviour | ((request: VendorRequest) => Behaviour)): void;
  close(): Promise<void>;
}

/** A text that vendors put into their errors here; it must not be met anywhere else. */
export const vendorSecret = 'vendor-text-that-nobody-may-see';

/** A real HTTP server on loopback that stands for all three vendors, each under its own path. */
export async function startVendor(): Promise<Vendor> {
  let behaviour: Behaviour | ((request: VendorRequest) => Behaviour) = { kind: 'answer' };
  let connections = 0;
  const numbers = new WeakMap<object, number>();

  const server = createServer((message, response) => {
    serve(message, response).catch(() => response.destroy());
  });
  server.on('connection', (socket) => numbers.set(socket, ++connections));

  const vendor: Vendor = {
    baseUrl: '',
    requests: [],
    abandoned: [],
    counted: { input: 0, output: 0 },
    behave(next) {
      behaviour = next;
    },
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };

  async function serve(message: IncomingMessage, response: ServerResponse): Promise<void> {
    response.once('close', () => {
      if (!response.writableFinished) vendor.abandoned.push(performance.now());
    });
    const bodyText = await bodyOf(message);
    const body: VendorBody = JSON.parse(bodyText);
    const path = new URL(message.url ?? '', 'http://vendor').pathname;
    const format = vendorFormats.find((candidate) => candidate.read(path, body) !== undefined);
    const read = format?.read(path, body);
    if (format === undefined || read === undefined) {
      send(response, 404, { error: { message: `no such path: ${path}` } });
      return;
    }
    const request: VendorRequest = {
      ...read,
      format: format.name,
      url: message.url ?? '',
      headers: message.headers,
      body,
      bodyText,
      connection: numbers.get(message.socket) ?? 0,
    };
    vendor.requests.push(request);
    const doing = typeof behaviour === 'function' ? behaviour(request) : behaviour;
    await act(doing, request, format, response);
  }

  async function act(doing: Behaviour, request: VendorRequest, format: VendorFormat, response: ServerResponse) {
    if (doing.kind === 'hang') return;
    if (doing.delay !== undefined) await sleep(doing.delay);
    await doing.after;
    if (doing.kind === 'status') {
      const { status, headers = {}, body = format.error(status, vendorSecret) } = doing;
      send(response, status, body, headers);
      return;
    }
    if (doing.kind === 'events') {
      const { events, every = 0, last = 'end' } = doing;
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      for (const event of events) {
        if (response.destroyed) return;
        response.write(event);
        if (every > 0) await sleep(every);
      }
      if (last === 'cut') setTimeout(() => response.destroy(), 20);
      else if (last === 'end') response.end();
      return;
    }
    if (doing.kind === 'bytes') {
      response.writeHead(200, doing.headers);
      response.write(doing.body.subarray(0, doing.body.length / 2));
      response.end(doing.body.subarray(doing.body.length / 2));
      return;
    }
    if (doing.kind === 'garbage') {
      response.writeHead(200, { 'content-type': 'application/json' }).end(`<html>${vendorSecret}</html>`);
      return;
    }
    const usage = 'usage' in doing ? doing.usage : { input: 10, output: 5 };
    vendor.counted.input += usage?.input ?? 0;
    vendor.counted.output += usage?.output ?? 0;
    const isHalf = doing.kind === 'cut' || doing.kind === 'stall';
    const answer: VendorAnswer = isHalf
      ? { text: 'cut in the middle', usage }
      : { text: 'Hello there', ...doing, usage };
    if (request.streaming) {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const events = format.events(answer);
      const sent = isHalf ? events.slice(0, Math.ceil(events.length / 2)) : events;
      for (const event of sent) response.write(event);
    } else {
      const text = JSON.stringify(format.answer(answer));
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) });
      response.write(isHalf ? text.slice(0, text.length / 2) : text);
    }
    if (doing.kind === 'cut') setTimeout(() => response.destroy(), 20);
    else if (doing.kind !== 'stall') response.end();
  }

  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  vendor.baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return vendor;
}

function send(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
}
