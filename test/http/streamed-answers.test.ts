import { once } from 'node:events';
import { type IncomingHttpHeaders, request } from 'node:http';
import { PassThrough, Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { createRecorder } from '../../src/recording/record-change.ts';
import { createTestDatabase } from '../support/server/database.ts';
import { startDatabaseProxy } from '../support/server/database-proxy.ts';
import { changeOf } from '../support/server/history.ts';
import { endOfJob, startExport } from '../support/server/jobs.ts';
import { schemaClient } from '../support/server/schema-client.ts';
import { startTestServer, type TestServer } from '../support/server/server.ts';

const tenant = 'acme';
const csvType = 'text/csv; charset=utf-8; header=present';
const internal = { status: 500, type: 'internal_service_error', message: 'An internal error occurred.' };
const away = { status: 503, type: 'service_unavailable', message: 'The database cannot be reached.' };
const ofHistory = { ...internal, message: 'Problem encountered while trying to retrieve changelog history.' };

/** The reason for which the stream that waits was destroyed. */
let left: Error | undefined;

const database = await createTestDatabase();
const proxy = await startDatabaseProxy(database.url);
const server = await startTestServer({ database: { ...database, url: proxy.url }, extend: addRoutes });
const token = await server.token(tenant);
const viewer = await server.viewerToken(tenant);
const now = Date.now();
const paths = JSON.stringify({ text: { after: 'x'.repeat(100_000) } });
await createRecorder(
  database.db,
  tenant,
  () => now,
)(Array.from({ length: 30 }, (_, n) => changeOf({ at: now - n, entityId: `o${n}`, paths })));
await schemaClient(server, tenant, token).type('LARGE');
await database.pool.query(
  `insert into custom_instance (tenant, type, id, version, document, fields)
       select $1, 'LARGE', id, 1, document, document::jsonb
       from (select id, jsonb_build_object('id', id, 'text', repeat('é' || id, 300000))::text as document
         from (select 'i' || n as id from generate_series(1, 5) n) numbered) made`,
  [tenant],
);

beforeEach(() => proxy.mend());

afterAll(async () => {
  proxy.mend();
  await server.close();
  await proxy.close();
});

/** Streams that a test can fail. */
function addRoutes(app: TestServer['app']): void {
  const headers = { 'content-length': 5, 'content-disposition': 'attachment; filename="x.csv"' };
  const route = (path: string, type: string, body: () => Readable) => {
    app.get(path, async (_request, reply) => await reply.headers({ ...headers, 'content-type': type }).send(body()));
  };
  route('/fails/csv', csvType, () => Readable.from(failing(new Error('a secret'))));
  route('/fails/json', 'application/json', () => Readable.from(failing(new Error('a secret'))));
  route('/fails/away', csvType, () =>
    Readable.from(failing(Object.assign(new Error('a secret'), { code: 'ECONNREFUSED' }))),
  );
  app.get('/fails/before', async (_request, reply) => {
    const body = failed();
    await once(body, 'close').catch(() => {});
    return await reply.headers({ ...headers, 'content-type': csvType }).send(body);
  });
  app.get('/fails/later', async (_request, reply) => {
    const kept = { 'cache-control': 'public, max-age=300', etag: '"1"', 'content-type': csvType };
    return await reply.headers(kept).send(Readable.from(failingLater()));
  });
  route('/whole', csvType, () => Readable.from(['ab', 'cde'], { highWaterMark: 0 }));
  app.get('/empty', async (_request, reply) => await reply.type(csvType).send(Readable.from([])));
  route('/waits', csvType, () => {
    const body = new PassThrough();
    body.on('error', (error) => {
      left = error;
    });
    return body;
  });
}

async function* failingLater(): AsyncGenerator<string> {
  yield 'x'.repeat(100);
  throw new Error('a secret');
}

// biome-ignore lint/correctness/useYield: it fails before its first piece.
async function* failing(error: Error): AsyncGenerator<string> {
  throw error;
}

interface Answer {
  status: number | undefined;
  headers: IncomingHttpHeaders;
  /** Undefined: it was cut. */
  body: string | undefined;
}

async function read(path: string, headers: Record<string, string> = {}): Promise<Answer> {
  const [response] = await once(request(`${server.baseUrl}${path}`, { headers }).end(), 'response');
  const body = await text(response).catch(() => undefined);
  return { status: response.statusCode, headers: response.headers, body };
}

function expectError({ status, headers, body = '' }: Answer, expected: { status: number }): void {
  expect([status, JSON.parse(body)]).toEqual([expected.status, expected]);
  expect(headers).toMatchObject({
    'content-type': 'application/json; charset=utf-8',
    'content-length': String(Buffer.byteLength(body)),
  });
  expect(headers).not.toHaveProperty('content-disposition');
  expect(headers['retry-after']).toBe(expected.status === 503 ? '1' : undefined);
}

describe('a stream', () => {
  test.each([
    ['csv', internal],
    ['json', internal],
    ['away', away],
    ['before', internal],
  ])('that fails before its first piece is an error like every other: %s', async (name, expected) => {
    expectError(await read(`/fails/${name}`), expected);
    expectError(await read(`/fails/${name}`, { 'accept-encoding': 'gzip' }), expected);
  });

  test('that fails behind its first piece is an error, or cut, and never an error under headers of the content', async () => {
    for (let times = 0; times < 20; times += 1) {
      const answer = await read('/fails/later', { 'accept-encoding': 'gzip' }).catch(() => undefined);
      if (answer === undefined || answer.status === 200) continue;
      expectError(answer, internal);
      for (const header of ['content-encoding', 'cache-control', 'etag'])
        expect(answer.headers[header]).toBeUndefined();
    }
  });

  test('is sent whole otherwise, an empty one too', async () => {
    const { headers, ...whole } = await read('/whole');
    expect(whole).toEqual({ status: 200, body: 'abcde' });
    expect(headers).toMatchObject({ 'content-type': csvType, 'content-disposition': 'attachment; filename="x.csv"' });
    expect(await read('/empty')).toMatchObject({ status: 200, body: '' });
  });

  test('whose client goes before the first piece ends', async () => {
    const call = request(`${server.baseUrl}/waits`).on('error', () => {});
    call.end();
    await once(call, 'socket');
    await once(server.app.server, 'request');
    call.destroy();
    await expect.poll(() => left?.message).toBe('the client has gone');
  });
});

interface Streamed {
  name: string;
  path: () => Promise<string> | string;
  csv?: true;
  /** What it is while the database is away. */
  expected: { status: number };
}

/** A stream whose error event has already been emitted. */
function failed(): Readable {
  const body = new PassThrough().on('error', () => {});
  body.end('ab');
  return body.destroy(new Error('a secret'));
}

test.each<Streamed>([
  { name: 'a file of a viewer', path: () => `/viewer/${tenant}/changes`, csv: true, expected: away },
  { name: 'a page of a viewer', path: () => `/viewer/${tenant}/changes?size=100`, expected: away },
  { name: 'a page of changes', path: () => `/changelog/${tenant}/changelogs?size=100`, expected: ofHistory },
  { name: 'a page of instances', path: () => `/schema/${tenant}/custom-entities/LARGE/instances`, expected: away },
  {
    name: 'a file of an export',
    async path() {
      const call = (at: string, init?: RequestInit) => server.call(at, { token, ...init });
      const id = await startExport(call, tenant, { q: '', format: 'CSV' });
      expect(await endOfJob(call, tenant, id)).toMatchObject({ status: 'success' });
      return `/ai-service/${tenant}/jobs/${id}/content`;
    },
    expected: away,
  },
])('$name is whole, cut, or an error, wherever the database goes away', async ({ path, csv, expected }) => {
  const at = await path();
  const headers = {
    authorization: `Bearer ${at.startsWith('/viewer') ? viewer : token}`,
    ...(csv && { accept: 'text/csv' }),
  };
  const whole = await read(at, headers);
  expect([whole.status, (whole.body ?? '').length > 300_000]).toEqual([200, true]);
  let errors = 0;
  // The service has statements of its own, so that no place is always the same.
  for (let pieces = 0; ; pieces += 1) {
    proxy.failAfter(pieces, 'away');
    // Cut right behind its first piece, before anything of it has left.
    const answer = await read(at, headers).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ECONNRESET') throw error;
    });
    proxy.mend();
    if (answer === undefined) continue;
    if (answer.status !== 200) {
      expectError(answer, expected);
      errors += 1;
    } else if (answer.body !== undefined) {
      expect(answer.body).toBe(whole.body);
      break;
    }
  }
  expect(errors).toBeGreaterThan(0);
});
