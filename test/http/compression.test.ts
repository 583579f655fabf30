import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';
import type { FastifyInstance, RouteOptions } from 'fastify';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { takesGzip } from '../../src/http/compression.ts';
import { schemaClient } from '../support/server/schema-client.ts';
import { startTestServer, type TestServer } from '../support/server/server.ts';

const tenant = 'acme';
const instances = `/schema/${tenant}/custom-entities/LARGE/instances?pageSize=5`;
const routes: RouteOptions[] = [];

/** None of them shows a secret. An operation that may must never be among them. */
const compressible = [
  ...['changelogs', 'documents', 'entries', 'facets', 'feed', 'histogram', 'names'].map(
    (path) => `GET /changelog/:tenant/${path}`,
  ),
  ...['changes', 'entries', 'facets', 'histogram'].map((path) => `GET /viewer/:tenant/${path}`),
  ...[
    '/ai-service/:tenant/agentic/logs/requests',
    '/ai-service/:tenant/agentic/logs/sessions',
    '/ai-service/:tenant/jobs',
    '/changelog/:tenant/accesses',
    '/changelog/:tenant/erasures',
    '/schema/:tenant/custom-entities/:type/instances',
    '/usage/:tenant/calls',
  ].flatMap((list) => [`GET ${list}`, `POST ${list}/search`]),
  ...['', '/', '/guides', '/guides/', '/guides/*', '/guides/search.json'].map((page) => `GET /docs${page}`),
  'GET /openapi.json',
];
/** Routes of this test. */
const own = ['/sized/:bytes', '/cookie', '/cut', '/fails', '/endless'];

let server: TestServer;
let token: string;
let ended = false;
const reached = Promise.withResolvers<void>();

beforeAll(async () => {
  subscribe('fastify.initialization', collectRoutes);
  server = await startTestServer({ extend: addRoutes });
  unsubscribe('fastify.initialization', collectRoutes);
  token = await server.token(tenant);
  await schemaClient(server, tenant, token).type('LARGE');
  await server.database.pool.query(
    `insert into custom_instance (tenant, type, id, version, document, fields)
       select $1, 'LARGE', id, 1, document, document::jsonb
       from (select id, jsonb_build_object('id', id, 'text', repeat('é' || id, 300000))::text as document
         from (select 'i' || n as id from generate_series(1, 5) n) numbered) made`,
    [tenant],
  );
});

afterAll(() => server.close());

function collectRoutes(message: unknown): void {
  const { fastify } = message as { fastify: FastifyInstance };
  fastify.addHook('onRoute', (route) => void routes.push(route));
}

/** Answers whose length and end a test chooses. */
function addRoutes(app: TestServer['app']): void {
  const config = { compressible: true } as const;
  app.get<{ Params: { bytes: string } }>('/sized/:bytes', { config }, async ({ params }, reply) => {
    return await reply.type('text/plain').send('a'.repeat(Number(params.bytes)));
  });
  app.get('/cookie', { config }, async (_request, reply) => {
    return await reply.header('set-cookie', 'session=secret').type('text/plain').send('a'.repeat(5_000));
  });
  app.get('/cut', { config }, async (_request, reply) => await reply.type('text/plain').send(Readable.from(half())));
  app.get(
    '/fails',
    { config },
    async (_request, reply) => await reply.type('application/json').send(Readable.from(none())),
  );
  app.get('/endless', { config }, async (_request, reply) => {
    return await reply.type('text/plain').send(Readable.from(endless()));
  });
}

async function* half(): AsyncGenerator<string> {
  yield 'a'.repeat(100_000);
  await reached.promise;
  throw new Error('the rest cannot be read');
}

// biome-ignore lint/correctness/useYield: it fails before its first piece.
async function* none(): AsyncGenerator<string> {
  throw new Error('nothing can be read');
}

async function* endless(): AsyncGenerator<Buffer> {
  try {
    while (true) yield crypto.getRandomValues(Buffer.alloc(65_536));
  } finally {
    ended = true;
  }
}

/** Unlike fetch, it decompresses nothing and adds no header. */
async function open(path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<IncomingMessage> {
  const call = request(`${server.baseUrl}${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, ...headers },
  }).end();
  const [response] = await once(call, 'response');
  return response;
}

async function read(path: string, headers?: Record<string, string>, method?: string) {
  const response = await open(path, headers, method);
  return {
    status: response.statusCode,
    headers: response.headers as IncomingHttpHeaders,
    body: await buffer(response),
  };
}

const gzip = { 'accept-encoding': 'gzip, deflate' };

describe('an answer of a compressible operation', () => {
  test('is compressed from 1,024 bytes on', async () => {
    const short = await read('/sized/1023', gzip);
    expect([short.headers['content-encoding'], short.headers['content-length']]).toEqual([undefined, '1023']);
    const long = await read('/sized/1024', gzip);
    expect(long.headers['content-encoding']).toBe('gzip');
    expect(Number(long.headers['content-length'])).toBe(long.body.length);
    expect(gunzipSync(long.body).toString()).toBe('a'.repeat(1024));
    for (const { headers } of [short, long]) expect(headers.vary).toMatch(/(?:^|, )Accept-Encoding$/);
  });

  test('that is sent in pieces is the same bytes, in fewer', async () => {
    const plain = await read(instances);
    const packed = await read(instances, gzip);
    expect(plain.headers['content-encoding']).toBeUndefined();
    expect(plain.headers.vary).toMatch(/Accept-Encoding$/);
    expect(plain.body.length).toBeGreaterThan(1_000_000);
    expect(packed.headers['content-encoding']).toBe('gzip');
    expect(packed.headers['content-length']).toBeUndefined();
    expect(packed.body.length).toBeLessThan(plain.body.length / 10);
    expect(gunzipSync(packed.body).equals(plain.body)).toBe(true);
  });

  test.each(['/sized/5000', instances])('has the same headers for HEAD: %s', async (path) => {
    const named = ({ headers }: { headers: IncomingHttpHeaders }) =>
      ['content-encoding', 'content-length', 'vary'].map((name) => headers[name]);
    for (const headers of [gzip, {}]) {
      const head = await read(path, headers, 'HEAD');
      expect(head.body).toHaveLength(0);
      expect(named(head)).toEqual(named(await read(path, headers)));
    }
  });

  test('that breaks off is cut, compressed too', async () => {
    const response = await open('/cut', gzip);
    expect(response.headers['content-encoding']).toBe('gzip');
    reached.resolve();
    await expect(buffer(response)).rejects.toThrow('aborted');
  });

  test('that fails before its first byte is a plain error', async () => {
    const { status, headers, body } = await read('/fails', gzip);
    expect([status, headers['content-encoding']]).toEqual([500, undefined]);
    expect(JSON.parse(body.toString())).toMatchObject({ status: 500 });
  });

  test('is read no further when its client has gone', async () => {
    const response = await open('/endless', gzip);
    await once(response, 'data');
    response.destroy();
    await expect.poll(() => ended).toBe(true);
  });

  test('stays plain beside a cookie', async () => {
    const { headers, body } = await read('/cookie', gzip);
    expect([headers['content-encoding'], body.length]).toEqual([undefined, 5_000]);
  });
});

test.each([
  [undefined, false],
  ['', false],
  ['gzip', true],
  ['br, GZIP;q=0.5', true],
  ['gzip;q=0', false],
  ['gzip; q=0.0, *', false],
  ['*', true],
  ['*;q=0', false],
  ['br', false],
  ['identity, gzip;q=0.5', false],
  ['identity;q=0.5, gzip', true],
])('Accept-Encoding: %s takes gzip: %s', (accepted, takes) => {
  expect(takesGzip(accepted)).toBe(takes);
});

test('only these operations are compressible', () => {
  const found = routes.filter(
    ({ method, url, config }) => method !== 'HEAD' && config?.compressible === true && !own.includes(url),
  );
  expect(routes.length).toBeGreaterThan(100);
  expect(found.map(({ method, url }) => `${method} ${url}`).toSorted()).toEqual(compressible.toSorted());
});

test('tokens and event streams stay plain', async () => {
  const { clientId, clientSecret } = await server.createClient(tenant);
  const response = await new Promise<IncomingMessage>((resolve) => {
    request(`${server.baseUrl}/oauth/token`, {
      method: 'POST',
      headers: {
        ...gzip,
        authorization: `Basic ${btoa(`${clientId}:${clientSecret}`)}`,
        'content-type': 'application/x-www-form-urlencoded',
      },
    })
      .on('response', resolve)
      .end('grant_type=client_credentials');
  });
  expect(response.headers['content-encoding']).toBeUndefined();
  expect(JSON.parse((await buffer(response)).toString())).toHaveProperty('access_token');

  const events = await open(`/changelog/${tenant}/feed`, { ...gzip, accept: 'text/event-stream' });
  expect(events.headers['content-type']).toMatch('text/event-stream');
  expect(events.headers['content-encoding']).toBeUndefined();
  events.destroy();
});
