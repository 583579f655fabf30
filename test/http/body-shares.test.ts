import { once } from 'node:events';
import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import { fastify } from 'fastify';
import { afterEach, expect, test } from 'vitest';
import { limitBodies } from '../../src/http/body-shares.ts';
import { answerErrors } from '../../src/http/error-answers.ts';
import type { HttpServer } from '../../src/http/http-server-type.ts';
import { acceptJsonBodies, maxBytesDecodedAhead } from '../../src/http/json-body.ts';

const defaultMaxBytes = 100_000;
const tenantHeader = 'x-tenant';

let app: HttpServer;
let port: number;
/** The requests whose bodies were read, by their names, and what lets them end. */
let working: Map<string, () => void>;
/** Called when a request is worked on. */

async function start(maxWait: number, maxBytes = defaultMaxBytes): Promise<void> {
  working = new Map();
  app = fastify({ bodyLimit: maxBytes / 2 }).withTypeProvider<TypeBoxTypeProvider>();
  answerErrors(app);
  app.decorateRequest('verifiedCredentials', null);
  app.addHook('onRequest', async (request) => {
    const tenant = String(request.headers[tenantHeader]);
    request.verifiedCredentials = { tenant, clientId: '', clientName: '', scopes: [] };
  });
  limitBodies(app, { maxBytes, maxLargeBodies: 2, maxWait });
  acceptJsonBodies(app);
  const work = async ({ params: { name } }: { params: { name: string } }) => {
    await new Promise<void>((resolve) => working.set(name, resolve));
    working.delete(name);
    return 'done';
  };
  app.post<{ Params: { name: string } }>('/:name', work);
  app.post<{ Params: { name: string } }>('/calls/:name', { config: { work: 'calls' } }, work);
  await app.listen({ port: 0, host: '127.0.0.1' });
  ({ port } = app.server.address() as AddressInfo);
}

afterEach(async () => {
  for (const end of working.values()) end();
  app.server.closeAllConnections();
  await app.close();
});

interface Sent {
  request: ClientRequest;
  response: Promise<IncomingMessage>;
}

function send(tenant: string, name: string, body: string, headers: Record<string, string> = {}): Sent {
  const request = httpRequest({
    port,
    path: `/${name}`,
    method: 'POST',
    headers: { 'content-type': 'application/json', [tenantHeader]: tenant, ...headers },
  });
  request.on('error', () => {});
  const response = once(request, 'response').then(([message]) => message as IncomingMessage);
  response.catch(() => {});
  request.end(body);
  return { request, response };
}

/** A JSON text of so many bytes. */
function bodyOf(bytes: number): string {
  return `"${'x'.repeat(bytes - 2)}"`;
}

async function until(condition: () => boolean): Promise<void> {
  const deadline = performance.now() + 60_000;
  while (!condition()) {
    if (performance.now() > deadline) throw new Error('it did not happen');
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

async function bodyText(message: IncomingMessage): Promise<string> {
  return Buffer.concat(await message.toArray()).toString();
}

test('bodies of one tenant have at most half of the memory; more wait, and other tenants continue', async () => {
  await start(60_000);
  send('acme', 'a1', bodyOf(30_000));
  await until(() => working.has('a1'));
  const fits = send('acme', 'a2', bodyOf(20_000));
  await until(() => working.has('a2'));
  const waiting = send('acme', 'a3', bodyOf(10));
  send('rival', 'r1', bodyOf(20_000));
  await until(() => working.has('r1'));
  expect([...working.keys()]).toEqual(['a1', 'a2', 'r1']);

  working.get('a2')?.();
  expect((await fits.response).statusCode).toBe(200);
  await until(() => working.has('a3'));
  working.get('a3')?.();
  expect((await waiting.response).statusCode).toBe(200);
});

test('a body that waits stays unread, so that its sender feels the back-pressure', async () => {
  const mebibyte = 1024 * 1024;
  await start(60_000, 8 * mebibyte);
  send('acme', 'a1', bodyOf(4 * mebibyte));
  await until(() => working.has('a1'));
  const accepted = once(app.server, 'connection');
  const waiting = send('acme', 'a2', bodyOf(4 * mebibyte));
  const [socket] = await accepted;
  for (const name of ['r1', 'r2', 'r3']) {
    const rival = send('rival', name, bodyOf(10));
    await until(() => working.has(name));
    working.get(name)?.();
    await rival.response;
  }
  expect(socket.bytesRead).toBeLessThan(mebibyte);
  working.get('a1')?.();
  await until(() => working.has('a2'));
  expect(socket.bytesRead).toBeGreaterThan(4 * mebibyte);
  working.get('a2')?.();
  expect((await waiting.response).statusCode).toBe(200);
});

test('a body without a length takes as much as its operation accepts', async () => {
  await start(60_000);
  send('acme', 'a1', bodyOf(10), { 'transfer-encoding': 'chunked' });
  await until(() => working.has('a1'));
  const waiting = send('acme', 'a2', bodyOf(10));
  send('rival', 'r1', bodyOf(10));
  await until(() => working.has('r1'));
  expect(working.has('a2')).toBe(false);
  working.get('a1')?.();
  await until(() => working.has('a2'));
  working.get('a2')?.();
  expect((await waiting.response).statusCode).toBe(200);
});

test('a body that waits too long is 503, which names the limit', async () => {
  await start(50);
  send('acme', 'a1', bodyOf(50_000));
  await until(() => working.has('a1'));
  const response = await send('acme', 'a2', bodyOf(10)).response;
  expect(response.statusCode).toBe(503);
  expect(response.headers).toMatchObject({ 'retry-after': '1', connection: 'close' });
  expect(JSON.parse(await bodyText(response))).toMatchObject({
    type: 'service_unavailable',
    message: expect.stringContaining(`at most ${defaultMaxBytes} bytes`),
  });
});

test('a client that goes gives its memory back, waiting or not', async () => {
  await start(60_000);
  const first = send('acme', 'a1', bodyOf(50_000));
  await until(() => working.has('a1'));
  const second = send('acme', 'a2', bodyOf(50_000));
  second.request.once('socket', (socket) =>
    socket.once('connect', () => setTimeout(() => second.request.destroy(), 20)),
  );
  await new Promise((resolve) => second.request.once('close', resolve));
  first.request.destroy();
  send('acme', 'a3', bodyOf(50_000));
  await until(() => working.has('a3'));
});

test('a request that calls a provider does not keep its place for a body of many values while it waits', async () => {
  await start(60_000, 1024 * 1024);
  const many = JSON.stringify(Array(10_001).fill(1));
  const names = ['one', 'two', 'three'];
  const sent = names.map((name) => send('acme', `calls/${name}`, many));
  await until(() => names.every((name) => working.has(name)));
  for (const name of names) working.get(name)?.();
  for (const { response } of sent) expect((await response).statusCode).toBe(200);
});

test('of bodies of many values a tenant has half in work at once, however small they are', async () => {
  await start(60_000, 1024 * 1024);
  const many = JSON.stringify(Array(10_001).fill(1));
  const few = JSON.stringify(Array(9_999).fill(1));
  send('acme', 'a1', many);
  await until(() => working.has('a1'));
  const waiting = send('acme', 'a2', many);
  send('acme', 'few', few);
  send('rival', 'r1', many);
  await until(() => working.has('few') && working.has('r1'));
  expect(working.has('a2')).toBe(false);
  working.get('a1')?.();
  await until(() => working.has('a2'));
  working.get('a2')?.();
  expect((await waiting.response).statusCode).toBe(200);
});

test('a body of more than 256 KiB is not decoded before it may be worked on, whatever it holds', async () => {
  await start(60_000, 8 * 1024 * 1024);
  send('acme', 'many', `[${'1,'.repeat(10_000)}1]`);
  await until(() => working.has('many'));
  const waiting = send('acme', 'long', bodyOf(maxBytesDecodedAhead + 1));
  send('acme', 'short', bodyOf(maxBytesDecodedAhead));
  await until(() => working.has('short'));
  expect([...working.keys()]).toEqual(['many', 'short']);
  working.get('many')?.();
  await until(() => working.has('long'));
  // It has few values, so its place is free again.
  send('acme', 'next', `[${'1,'.repeat(10_000)}1]`);
  await until(() => working.has('next'));
  working.get('long')?.();
  expect((await waiting.response).statusCode).toBe(200);
});
