import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { gunzipSync, gzipSync } from 'node:zlib';
import type { FastifyInstance, RouteOptions } from 'fastify';
import { describe, expect, test } from 'vitest';
import { isCompressed, takesGzip } from '../../src/http/compression.ts';
import { createRecorder } from '../../src/recording/record-change.ts';
import { closeAfterAll } from '../support/close-after-all.ts';
import { changeOf } from '../support/server/history.ts';
import { endOfJob, startExport } from '../support/server/jobs.ts';
import { schemaClient } from '../support/server/schema-client.ts';
import { startTestServer, type TestServer } from '../support/server/server.ts';

const tenant = 'acme';
const instances = `/schema/${tenant}/custom-entities/LARGE/instances?pageSize=5`;
const routes: RouteOptions[] = [];

/** Reads that stay plain, and why. */
const staysPlain: Record<string, string> = {
  'GET /configuration/:tenant/configurations': 'values can be secrets',
  'GET /configuration/:tenant/configurations/:key': 'values can be secrets',
  'GET /console/api/session': 'a session',
  'GET /console/api/session/grants': 'a session',
  'GET /console/api/session/keys': 'a session',
  'GET /changelog/:tenant/log/tile/:level/*': 'hashes get no shorter',
  ...Object.fromEntries(
    ['GET ', 'POST /search', 'GET /:id'].map((route) => [
      route.replace(' ', ' /ai-service/:tenant/agentic/agents'),
      'addresses of tool servers can be secrets',
    ]),
  ),
  ...Object.fromEntries(
    ['GET ', 'POST /search', 'GET /:id', 'GET /:id/attempts', 'POST /:id/attempts/search'].map((route) => [
      route.replace(' ', ' /changelog/:tenant/subscriptions'),
      'addresses of targets, and what targets answer, can be secrets',
    ]),
  ),
};
/** Routes of this test. */
const own = ['/sized/:bytes', '/buffer', '/packed', '/image', '/cookie', '/cut', '/fails', '/endless'];

let ended = false;
const reached = Promise.withResolvers<void>();

subscribe('fastify.initialization', collectRoutes);
const server = closeAfterAll(await startTestServer({ extend: addRoutes }));
unsubscribe('fastify.initialization', collectRoutes);
const token = await server.token(tenant);
await schemaClient(server, tenant, token).type('LARGE');
await server.database.pool.query(
  `insert into custom_instance (tenant, type, id, version, document, fields)
       select $1, 'LARGE', id, 1, document, document::jsonb
       from (select id, jsonb_build_object('id', id, 'text', repeat('é' || id, 300000))::text as document
         from (select 'i' || n as id from generate_series(1, 5) n) numbered) made`,
  [tenant],
);

function collectRoutes(message: unknown): void {
  const { fastify } = message as { fastify: FastifyInstance };
  fastify.addHook('onRoute', (route) => void routes.push(route));
}

/** Answers whose length and end a test chooses. */
function addRoutes(app: TestServer['app']): void {
  app.get<{ Params: { bytes: string } }>('/sized/:bytes', async ({ params }, reply) => {
    return await reply.type('text/plain').send('a'.repeat(Number(params.bytes)));
  });
  app.get('/buffer', async (_request, reply) => await reply.type('text/plain').send(Buffer.alloc(5_000, 'a')));
  app.get('/packed', async (_request, reply) => {
    const body = gzipSync('a'.repeat(500_000));
    return await reply.type('text/plain').headers({ 'content-encoding': 'gzip', vary: 'accept-encoding' }).send(body);
  });
  app.get('/image', async (_request, reply) => await reply.type('image/png').send(Buffer.alloc(5_000)));
  app.get('/cookie', async (_request, reply) => {
    return await reply.header('set-cookie', 'session=secret').type('text/plain').send('a'.repeat(5_000));
  });
  app.get('/cut', async (_request, reply) => await reply.type('text/plain').send(Readable.from(half())));
  app.get('/fails', async (_request, reply) => await reply.type('application/json').send(Readable.from(none())));
  app.get('/endless', async (_request, reply) => {
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

describe('the answer of a read', () => {
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

  test('is compressed from a buffer too, not a second time, and not where its type gets no shorter', async () => {
    expect(gunzipSync((await read('/buffer', gzip)).body)).toEqual(Buffer.alloc(5_000, 'a'));
    const packed = await read('/packed', gzip);
    expect(gunzipSync(packed.body).toString()).toBe('a'.repeat(500_000));
    expect(packed.headers.vary).toMatch(/accept-encoding$/);
    const image = await read('/image', gzip);
    expect([image.headers['content-encoding'], image.body.length]).toEqual([undefined, 5_000]);
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

test('each read is compressed, or is named with why it never is; nothing else is compressed', () => {
  // One handler says that there is no such operation.
  const unanswered = ['/mcp/:tenant', '/openai/:tenant/*', '/anthropic/:tenant/*'];
  const operations = routes
    .filter(({ url }) => !own.includes(url))
    .flatMap(({ method, url, config = {} }) => [method].flat().map((verb) => ({ method: verb, url, config })))
    .filter(({ method, url }) => method !== 'HEAD' && !(method !== 'POST' && unanswered.includes(url)));
  expect(operations.length).toBeGreaterThan(100);
  const reads = operations.filter(({ method, url }) => method === 'GET' || url.endsWith('/search'));
  const uncompressed = reads.filter(({ config }) => !isCompressed(config));
  expect(
    Object.fromEntries(uncompressed.map(({ method, url, config }) => [`${method} ${url}`, config.neverCompressed])),
  ).toEqual(staysPlain);
  const others = operations.filter((operation) => !reads.includes(operation) && isCompressed(operation.config));
  // Its tools read.
  expect(others.map(({ method, url }) => `${method} ${url}`)).toEqual(['POST /mcp/:tenant']);
});

test.each([
  ['a document', `/schema/${tenant}/custom-entities/LARGE/instances/i1`],
  ['a file that is sent as it lies there', '/docs/site/guides.js'],
  ['a page', '/docs/guides/api'],
])('%s is compressed', async (_what, path) => {
  const whole = await read(path);
  const packed = await read(path, gzip);
  expect([whole.status, whole.headers['content-encoding']]).toEqual([200, undefined]);
  expect([packed.headers['content-encoding'], packed.headers['content-length']]).toEqual([
    'gzip',
    packed.headers['transfer-encoding'] === undefined ? String(packed.body.length) : undefined,
  ]);
  expect(packed.headers['accept-ranges']).toBeUndefined();
  expect(gunzipSync(packed.body).equals(whole.body)).toBe(true);
});

test('the file of an export is compressed, and plain it tells its length', async () => {
  const changes = Array.from({ length: 20 }, (_, n) => changeOf({ at: Date.now() - n }));
  await createRecorder(server.database.db, tenant, Date.now)(changes);
  const call = (at: string, init?: RequestInit) => server.call(at, { token, ...init });
  const id = await startExport(call, tenant, { q: '', format: 'NDJSON' });
  await endOfJob(call, tenant, id);
  const path = `/ai-service/${tenant}/jobs/${id}/content`;
  const whole = await read(path);
  expect(whole.headers['content-length']).toBe(String(whole.body.length));
  const packed = await read(path, gzip);
  expect(packed.headers['content-encoding']).toBe('gzip');
  expect(gunzipSync(packed.body).equals(whole.body)).toBe(true);
});

test('values of the configuration stay plain', async () => {
  const headers = { 'content-type': 'application/json' };
  const body = JSON.stringify([{ key: 'long', value: 'a'.repeat(5_000) }]);
  await server.call(`/configuration/${tenant}/configurations`, { method: 'POST', token, headers, body });
  for (const path of ['', '/long']) {
    const answer = await read(`/configuration/${tenant}/configurations${path}`, gzip);
    expect([answer.status, answer.headers['content-encoding']]).toEqual([200, undefined]);
    expect(answer.body.length).toBeGreaterThan(5_000);
  }
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
