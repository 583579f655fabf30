import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import * as who from '@annals/client/context';
import { attribute } from '@annals/client/pg';
import Fastify from 'fastify';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { poolOf, recorded, useShop } from './shop.ts';

const openShop = useShop();

const resolve = (request: { headers: Record<string, unknown> }) => ({ actor: String(request.headers.user) });
const options = { trustCorrelation: true };

/** Sends requests with bodies, several on one connection, each of another user. */
async function callAll(url: string): Promise<void> {
  const call = async (item: number) => {
    const headers = { user: `Person ${item}`, 'x-request-id': `r-${item}`, 'content-type': 'application/json' };
    const answer = await fetch(url, { method: 'POST', body: JSON.stringify({ item }), headers });
    expect(answer.status).toBe(200);
    await answer.text();
  };
  for (let round = 0; round < 3; round++) await Promise.all([1, 2, 3, 4].map((one) => call(4 * round + one)));
}

const expected = Array.from({ length: 12 }, (_, index) => [
  index + 1,
  { actor: `Person ${index + 1}`, correlationId: `r-${index + 1}` },
]);

test('Fastify: a handler that is called after the body has arrived has its context', async () => {
  const shop = await openShop();
  const pool = attribute(poolOf(pg, shop, { max: 2 }));
  const app = Fastify();
  onTestFinished(() => app.close());
  await app.register(who.fastify(resolve, options));
  app.post<{ Body: { item: number } }>('/', async ({ body }) => {
    await pool.query('insert into items values ($1)', [body.item]);
    return {};
  });
  await callAll(await app.listen());
  expect(await recorded(shop)).toEqual(expected);
});

test.each([
  ['events', 'events'],
  ['an iterator', 'iterator'],
])('an Express middleware keeps the context of a handler that reads the body by %s', async (_name, way) => {
  const shop = await openShop();
  const pool = attribute(poolOf(pg, shop, { max: 2 }));
  const middleware = who.express(resolve, options);
  const server = createServer((request, response) => {
    const handle = async (body: string) => {
      await pool.query('insert into items values ($1)', [JSON.parse(body).item]);
      response.end('{}');
    };
    middleware(request, response, async () => {
      let body = '';
      if (way === 'events') request.on('data', (chunk) => (body += chunk)).on('end', () => void handle(body));
      else {
        for await (const chunk of request) body += chunk;
        await handle(body);
      }
    });
  });
  await new Promise<void>((done) => server.listen(0, done));
  onTestFinished(() => void server.close());
  await callAll(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  expect(await recorded(shop)).toEqual(expected);
});

test('Koa, Hono and Nest: what follows has the context of its request', async () => {
  const seen: unknown[] = [];
  const note = async () => void seen.push(who.currentContext());
  const headers: Record<string, string> = { user: 'Ada', 'x-request-id': 'r-1' };
  const context = { headers, ip: '::1', req: {} };
  await who.koa(resolve, { ...options, address: true })(context, note);
  const read = (c: { req: { header(name: string): string | undefined } }) => ({ actor: c.req.header('user') });
  await who.hono(read, options)({ req: { header: (name: string) => headers[name] } }, note);
  const execution = { switchToHttp: () => ({ getRequest: () => ({ headers }) }), getType: () => 'http' };
  await who.nest(resolve, options).intercept(execution, { handle: note });
  await who.nest(resolve).intercept({ ...execution, getType: () => 'rpc' }, { handle: note });
  const ada = { actor: 'Ada', correlationId: 'r-1' };
  expect(seen).toEqual([{ ...ada, context: { ip: '::1' } }, ada, ada, undefined]);
});
