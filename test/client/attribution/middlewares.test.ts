import 'reflect-metadata';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { json } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import * as who from '@annals/client/context';
import { attribute } from '@annals/client/pg';
import { type HttpBindings, serve } from '@hono/node-server';
import { Body, Controller, Module, Post } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import express from 'express';
import Fastify from 'fastify';
import { Hono } from 'hono';
import Koa from 'koa';
import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { poolOf, recorded, type Shop, useShop } from './shop.ts';

const openShop = useShop();

interface Item {
  item: number;
}

/** What the middleware is given, with the user of the request. */
type ResolveUser = (user: string | undefined) => who.Context | Promise<who.Context>;

/** Starts a server whose handler gets the body of a POST, and gives its address. */
type Serve = (resolve: ResolveUser, handle: (body: Item) => Promise<void>) => Promise<string>;

const userOf = (request: { headers: Record<string, unknown> }) => request.headers.user as string | undefined;

async function listen(server: ReturnType<typeof createServer>): Promise<string> {
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  onTestFinished(() => void server.close().closeAllConnections());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const serveExpress: Serve = async (resolve, handle) => {
  const app = express();
  app.use(who.express((request) => resolve(userOf(request))));
  app.use(express.json());
  app.post('/', async (request, response) => {
    await handle(request.body);
    response.sendStatus(204);
  });
  return await listen(createServer(app));
};

const serveFastify: Serve = async (resolve, handle) => {
  const app = Fastify();
  await app.register(who.fastify((request) => resolve(userOf(request))));
  await app.register(async (routes) => {
    routes.post<{ Body: Item }>('/', async (request, reply) => {
      await handle(request.body);
      return await reply.status(204).send();
    });
  });
  onTestFinished(() => app.close());
  return await app.listen();
};

const serveKoa: Serve = async (resolve, handle) => {
  const app = new Koa();
  app.use(who.koa((context) => resolve(userOf(context))));
  app.use(async (context) => {
    await handle((await json(context.req)) as Item);
    context.status = 204;
  });
  return await listen(createServer(app.callback()));
};

const serveHono: Serve = async (resolve, handle) => {
  const app = new Hono();
  app.use(who.hono((context) => resolve(context.req.header('user'))));
  app.post('/', async (context) => {
    await handle(await context.req.json());
    return context.body(null, 204);
  });
  const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' });
  await new Promise((done) => server.once('listening', done));
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
};

const serveNest: Serve = async (resolve, handle) => {
  class Items {
    async create(body: Item): Promise<void> {
      await handle(body);
    }
  }
  // Decorators by hand: Node runs these files without a compiler.
  Controller()(Items);
  Post()(Items.prototype, 'create', Object.getOwnPropertyDescriptor(Items.prototype, 'create') ?? {});
  Body()(Items.prototype, 'create', 0);
  class App {}
  Module({ controllers: [Items] })(App);
  const app = await NestFactory.create(App, { logger: false });
  app.useGlobalInterceptors(who.nest((request) => resolve(userOf(request))));
  onTestFinished(() => app.close());
  await app.listen(0, '127.0.0.1');
  return await app.getUrl();
};

/** A server of Node's own, whose handler reads the body by `readBody`. */
const serveNode =
  (readBody: (request: IncomingMessage, done: (body: Item) => void) => void): Serve =>
  async (resolve, handle) => {
    const middleware = who.express((request) => resolve(userOf(request)));
    const server = createServer((request, response) =>
      middleware(request, response, () =>
        readBody(request, (body) => void handle(body).then(() => response.writeHead(204).end())),
      ),
    );
    return await listen(server);
  };

const byEvents = serveNode((request, done) => {
  let body = '';
  request.on('data', (chunk) => (body += chunk)).on('end', () => done(JSON.parse(body)));
});

const byIterator = serveNode(async (request, done) => {
  let body = '';
  for await (const chunk of request) body += chunk;
  done(JSON.parse(body));
});

async function post(url: string, item: number): Promise<void> {
  const headers = { user: `u-${item}`, 'content-type': 'application/json' };
  const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify({ item }) });
  expect(answer.ok).toBe(true);
  await answer.text();
}

/** An attributed pool whose server is known to take the setting. */
async function openPool(shop: Shop): Promise<pg.Pool> {
  const pool = attribute(poolOf(pg, shop, { max: 2 }));
  await pool.query('begin; rollback');
  return pool;
}

describe.each([
  ['Express', serveExpress],
  ['Fastify', serveFastify],
  ['Koa', serveKoa],
  ['Hono', serveHono],
  ['Nest', serveNest],
  ['Node, with a body by events', byEvents],
  ['Node, with a body by an iterator', byIterator],
])('%s', (_name, open) => {
  test('concurrent requests never mix, and resolve is called once for each, before its handler', async () => {
    const shop = await openShop();
    const pool = await openPool(shop);
    const steps: string[] = [];
    const resolve: ResolveUser = (user) => {
      steps.push(`resolve ${user}`);
      return user === undefined ? {} : { actorId: user };
    };
    const url = await open(resolve, async ({ item }) => {
      steps.push(`handle u-${item}`);
      await pool.query('insert into items values ($1)', [item]);
      const client = await pool.connect();
      await client.query('begin');
      await client.query("update items set note = 'a' where id = $1", [item]);
      await client.query('commit');
      client.release();
    });
    const items = Array.from({ length: 16 }, (_, index) => index);
    // Several on one connection.
    for (let round = 0; round < 4; round++)
      await Promise.all(items.slice(4 * round, 4 * round + 4).map((item) => post(url, item)));
    const seen = (await recorded(shop)) as [number, who.Context][];
    expect(seen.map(([item, { actorId }]) => [item, actorId])).toEqual(
      items.flatMap((item) => [0, 1].map(() => [item, `u-${item}`])),
    );
    const correlations = items.map(
      (item) => new Set(seen.filter(([id]) => id === item).map(([, found]) => found.correlationId)),
    );
    expect(correlations.map((ids) => ids.size)).toEqual(items.map(() => 1));
    expect(new Set(correlations.flatMap((ids) => [...ids])).size).toBe(items.length);
    for (const item of items)
      expect(steps.filter((step) => step.endsWith(` u-${item}`))).toEqual([`resolve u-${item}`, `handle u-${item}`]);
  });

  test('a promise of resolve is awaited, and one that fails or hangs leaves the change without an actor', async () => {
    const shop = await openShop();
    const pool = await openPool(shop);
    const handled = Promise.withResolvers<void>();
    const results: Record<string, () => who.Context | Promise<who.Context>> = {
      'u-1': async () => {
        await handled.promise;
        return { actor: 'Ada' };
      },
      'u-2': async () => {
        throw new Error('no session');
      },
      'u-3': () => {
        throw new Error('no session');
      },
      'u-4': () => new Promise(() => {}),
    };
    const resolve: ResolveUser = (user) => results[user ?? '']?.() ?? {};
    const url = await open(resolve, async ({ item }) => {
      if (item === 1) setImmediate(handled.resolve);
      await pool.query('insert into items values ($1)', [item]);
    });
    await Promise.all([1, 2, 3, 4].map((item) => post(url, item)));
    const correlationId = expect.any(String);
    expect(await recorded(shop)).toEqual([
      [1, { actor: 'Ada', correlationId }],
      ...[2, 3, 4].map((item) => [item, { correlationId }]),
    ]);
  });
});

test('a Nest interceptor opens no context for what is not HTTP', () => {
  const execution = { switchToHttp: () => ({ getRequest: () => ({ headers: {} }) }), getType: () => 'rpc' };
  const handle = () => who.currentContext();
  expect(who.nest(() => ({ actor: 'Ada' })).intercept(execution, { handle })).toBeUndefined();
  const http = { ...execution, getType: () => 'http' };
  expect(who.nest(() => ({ actor: 'Ada' })).intercept(http, { handle })).toMatchObject({ actor: 'Ada' });
});

test('events of responses to pipelined requests have the context of their own request', async () => {
  const seen: unknown[] = [];
  const middleware = who.express((request) => ({ actor: userOf(request) }));
  const server = createServer((request, response) => {
    const note = (event: string) => seen.push(`${userOf(request)} ${event} by ${who.currentContext()?.actor}`);
    middleware(request, response, () => {
      for (const event of ['finish', 'close']) response.on(event, () => note(event));
      // The first response holds back the others.
      setTimeout(() => response.end('{}', () => note('end')), userOf(request) === 'a' ? 50 : 0);
    });
  });
  const socket = connect(Number(new URL(await listen(server)).port), '127.0.0.1');
  for (const user of ['a', 'b', 'c']) socket.write(`GET / HTTP/1.1\r\nhost: x\r\nuser: ${user}\r\n\r\n`);
  socket.resume();
  await expect.poll(() => seen.length).toBe(9);
  socket.destroy();
  await once(socket, 'close');
  const each = ['a', 'b', 'c'].flatMap((user) =>
    ['close', 'end', 'finish'].map((event) => `${user} ${event} by ${user}`),
  );
  expect(seen.sort()).toEqual(each);
});

test('so do those of responses behind Hono', async () => {
  const seen: string[] = [];
  const app = new Hono<{ Bindings: HttpBindings }>();
  app.use(who.hono((context) => ({ actor: context.req.header('user') })));
  app.get('/', async (context) => {
    const user = context.req.header('user');
    context.env.outgoing.on('finish', () => seen.push(`${user} by ${who.currentContext()?.actor}`));
    await sleep(user === 'a' ? 50 : 0);
    return context.text('');
  });
  const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' });
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  for (const user of ['a', 'b', 'c']) socket.write(`GET / HTTP/1.1\r\nhost: x\r\nuser: ${user}\r\n\r\n`);
  await expect.poll(() => seen).toEqual(['a by a', 'b by b', 'c by c']);
  socket.destroy();
});
