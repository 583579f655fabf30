import { PassThrough, Readable } from 'node:stream';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { ofCurrentWork } from '../../src/core/fairness/work.ts';
import { closeAfterAll } from '../support/close-after-all.ts';
import { eventually, letOthersWork } from '../support/server/patience.ts';
import { startTestServer, type TestServer } from '../support/server/server.ts';
import { subscriptionsOf } from '../support/server/subscriptions.ts';
import { startReceiver } from '../support/vendor/receiver.ts';

/** Calls of an operation that stay under way until they are let go. */
const underWay = { begun: new Map<string, number>(), letGo: () => {} };
let open = Promise.resolve();

beforeEach(holdCalls);

function holdCalls(): void {
  underWay.begun.clear();
  open = new Promise((resolve) => {
    underWay.letGo = resolve;
  });
}

async function hold(tenant: string): Promise<{ tenant: string }> {
  underWay.begun.set(tenant, (underWay.begun.get(tenant) ?? 0) + 1);
  await open;
  return { tenant };
}

const begun = (tenant: string) => underWay.begun.get(tenant) ?? 0;

const server = closeAfterAll(
  await startTestServer({
    extend: (app, { pool }) => {
      const scopes = ['changelog.changelog_read'] as const;
      const config = { scopes };
      app.get<{ Params: { tenant: string } }>('/test/:tenant/hold', { config }, (request) =>
        hold(request.params.tenant),
      );
      app.get<{ Params: { tenant: string } }>('/test/:tenant/call', { config: { scopes, work: 'calls' } }, (request) =>
        hold(String(request.headers['x-called'] ?? request.params.tenant)),
      );
      app.get<{ Params: { tenant: string } }>(
        '/viewer/:tenant/hold',
        { config: { scopes, isOfViewer: true, appliesRestriction: true }, schema: { hide: true } },
        (request) => hold(request.params.tenant),
      );
      app.post<{ Params: { tenant: string } }>('/test/:tenant/sleep', { config }, async () => {
        await pool.query({ text: 'select pg_sleep(600)' });
        return {};
      });
    },
  }),
);
const token = await server.token('acme');
const others = await server.token('rival');

function callAtOnce(path: string, count: number): Promise<Response>[] {
  return Array.from({ length: count }, () => server.call(path, { token }));
}

async function statusesOf(calls: readonly Promise<Response>[]): Promise<Record<number, number>> {
  const counted: Record<number, number> = {};
  for (const { status } of await Promise.all(calls)) counted[status] = (counted[status] ?? 0) + 1;
  return counted;
}

describe.each([
  { kind: 'requests', path: 'hold', limit: 64 },
  { kind: 'calls to providers', path: 'call', limit: 32 },
])('of one tenant $limit $kind are under way', ({ path, limit }) => {
  test('one more waits, and another tenant does not', async () => {
    const calls = callAtOnce(`/test/acme/${path}`, limit + 1);
    await eventually(() => begun('acme')).toBe(limit);
    const rival = server.call(`/test/rival/${path}`, { token: others });
    await eventually(() => begun('rival')).toBe(1);
    expect(begun('acme')).toBe(limit);
    underWay.letGo();
    expect(await statusesOf([...calls, rival])).toEqual({ 200: limit + 2 });
    expect(begun('acme')).toBe(limit + 1);
  });

  test('256 more wait, and what is more is refused with 429 that names the limit', async () => {
    const refused: Response[] = [];
    const calls = callAtOnce(`/test/acme/${path}`, limit + 256 + 5).map(async (call) => {
      const response = await call;
      if (response.status === 429) refused.push(response);
      return response;
    });
    await eventually(() => [begun('acme'), refused.length]).toEqual([limit, 5]);
    expect(refused[0]?.headers.get('retry-after')).toBe('1');
    const message = expect.stringContaining(`at most ${limit} at once, and at most 256 that wait`);
    expect(await refused[0]?.json()).toMatchObject({ type: 'rate_limit_exceeded', message });
    underWay.letGo();
    expect(await statusesOf(calls)).toEqual({ 200: limit + 256, 429: 5 });
  });
});

describe('those who look at a part of the history', () => {
  const viewer = async (subject: string) => await server.viewerToken('acme', { token, subject });

  const look = (of: string, count: number) =>
    Array.from({ length: count }, () => server.call('/viewer/acme/hold', { token: of }));

  test('have 2 requests each, and 16 that wait; what is more is 429, with either of two tokens', async () => {
    const [anna, again, bert] = [await viewer('anna'), await viewer('anna'), await viewer('bert')];
    const calls = look(anna, 18);
    await eventually(() => begun('acme')).toBe(2);
    const refused = await Promise.all(look(again, 1));
    expect(refused[0]?.headers.get('retry-after')).toBe('1');
    expect(refused[0]?.headers.get('access-control-allow-origin')).toBe('*');
    const message =
      'The subject has used its share of requests of one viewer: at most 2 at once, and at most 16 that wait.';
    expect(await refused[0]?.json()).toMatchObject({ status: 429, message: expect.stringContaining(message) });
    const ofBert = look(bert, 2);
    await eventually(() => begun('acme')).toBe(4);
    underWay.letGo();
    expect(await statusesOf([...calls, ...ofBert])).toEqual({ 200: 20 });
  });

  test('have half of the places of their tenant together: the others are for its console and its programs', async () => {
    const subjects = await Promise.all(Array.from({ length: 81 }, (_none, n) => viewer(`s${n}`)));
    const calls = subjects.slice(0, 80).flatMap((of) => look(of, 2));
    await eventually(() => begun('acme')).toBe(32);
    // 32 are under way, and 128 wait.
    expect(await statusesOf(look(subjects[80] ?? '', 1))).toEqual({ 429: 1 });
    const own = callAtOnce('/test/acme/hold', 32);
    await eventually(() => begun('acme')).toBe(64);
    underWay.letGo();
    expect(await statusesOf([...calls, ...own])).toEqual({ 200: 192 });
  });

  test('give their places back when they go away, be it while they wait or not', async () => {
    const carl = await viewer('carl');
    const gone = new AbortController();
    const calls = Array.from({ length: 5 }, () =>
      server.call('/viewer/acme/hold', { token: carl, signal: gone.signal }).catch(() => undefined),
    );
    await eventually(() => begun('acme')).toBe(2);
    gone.abort();
    await Promise.all(calls);
    const next = look(carl, 2);
    await eventually(() => begun('acme')).toBe(4);
    underWay.letGo();
    expect(await statusesOf(next)).toEqual({ 200: 2 });
  });
});

test('a place is free again when its client has gone, be it under way or waiting', async () => {
  const gone = new AbortController();
  const calls = Array.from({ length: 70 }, () =>
    server.call('/test/acme/call', { token, signal: gone.signal }).catch(() => undefined),
  );
  await eventually(() => begun('acme')).toBe(32);
  gone.abort();
  await Promise.all(calls);
  // Of those that waited some may begin before the end of their client is seen.
  const headers = { 'x-called': 'next' };
  const next = Array.from({ length: 32 }, () => server.call('/test/acme/call', { token, headers }));
  await eventually(() => begun('next')).toBe(32);
  underWay.letGo();
  expect(await statusesOf(next)).toEqual({ 200: 32 });
});

test('what a client that has gone had running in the database ends, though the request had a body', async () => {
  const gone = new AbortController();
  const call = server.call('/test/acme/sleep', {
    method: 'POST',
    token,
    signal: gone.signal,
    body: '{}',
    headers: { 'content-type': 'application/json' },
  });
  const sleeping = async () =>
    (
      await server.database.pool.query(
        "select from pg_stat_activity where query like '%pg_sleep(600)%' and state = 'active' and pid <> pg_backend_pid() and leader_pid is null",
      )
    ).rowCount;
  await eventually(sleeping).toBe(1);
  gone.abort();
  await expect(call).rejects.toThrow();
  await eventually(sleeping).toBe(0);
});

// Tokens are those of the server without the limit: to make one may take a while.
describe('with a limit of less than a second', () => {
  let quick: TestServer;
  let ended = '';
  /** It never has a first piece. */
  const silent = new PassThrough();

  beforeAll(async () => {
    quick = await startTestServer({
      database: server.database,
      requestLimit: 900,
      environment: { ANNALS_DELIVERY_ALLOW: 'acme=127.0.0.0/8' },
      extend: (app, { pool }) => {
        const config = { scopes: ['changelog.changelog_read'] as const };
        app.get('/test/:tenant/sleep', { config }, async () => {
          await pool.query({ text: 'select pg_sleep(600)' });
          return {};
        });
        app.get('/test/:tenant/never', { config }, () => new Promise<object>(() => {}));
        app.get('/test/:tenant/stream', { config }, async (_request, reply) => {
          return await reply.type('text/csv').send(silent);
        });
        app.get('/test/:tenant/later', { config }, async ({ url }) => {
          await open;
          ended = url.endsWith('fails') ? 'fails' : 'succeeds';
          if (ended === 'fails') throw new Error('too late');
          return {};
        });
        app.get('/test/:tenant/soon', { config }, async () => ({}));
        app.get('/test/:tenant/pieces', { config }, async (_request, reply) => {
          async function* pieces() {
            for (let piece = 0; piece < 4; piece++) {
              await pool.query({ text: 'select pg_sleep(0.3)' });
              yield `${piece}`;
            }
          }
          return await reply.send(Readable.from(ofCurrentWork(pieces()), { objectMode: false }));
        });
      },
    });
  });

  afterAll(() => quick.close());

  test.each(['sleep', 'never'])('a request that is not answered in time is 503: %s', async (path) => {
    const response = await quick.call(`/test/acme/${path}`, { token });
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '5']);
    expect(await response.json()).toEqual({
      status: 503,
      type: 'service_unavailable',
      message: 'The request was not answered within 1 second. Ask for less at once, or try again later.',
    });
  });

  test('so is a stream without a first piece, which is closed', async () => {
    const response = await quick.call('/test/acme/stream', { token });
    expect([response.status, response.headers.get('content-type')]).toEqual([503, 'application/json; charset=utf-8']);
    expect(await response.json()).toMatchObject({ type: 'service_unavailable' });
    await eventually(() => silent.destroyed).toBe(true);
  });

  test('what the work of such a request comes to afterwards is no second answer', async () => {
    for (const outcome of ['succeeds', 'fails']) {
      holdCalls();
      const { status } = await quick.call(`/test/acme/later?${outcome}`, { token });
      expect(status).toBe(503);
      underWay.letGo();
      await eventually(() => ended).toBe(outcome);
    }
    await letOthersWork(20);
    const warnings = quick.logLines.filter((line) => line.includes('"/test/:tenant/later"'));
    expect(warnings).toHaveLength(2);
    expect(quick.logLines.filter((line) => /already sent|reply\.sent/.test(line))).toEqual([]);
  });

  test('a request that is answered in time is not', async () => {
    // A machine that stands still may be too late once.
    await eventually(async () => (await quick.call('/test/acme/soon', { token })).status).toBe(200);
  });

  test('a body in pieces may take longer than that', async () => {
    const response = await quick.call('/test/acme/pieces', { token });
    expect([response.status, await response.text()]).toEqual([200, '0123']);
  });

  test('a sample to a target may take longer, as the target may', async () => {
    const receiver = await startReceiver();
    onTestFinished(() => receiver.close());
    receiver.answer = (_received, response) => void setTimeout(() => response.writeHead(204).end(), 1_300);
    const acme = subscriptionsOf(quick, 'acme', token);
    const { id } = await acme.make({ enabled: false, target: { type: 'webhook', url: receiver.url } });
    expect(await acme.call('POST', `/${id}/test`)).toMatchObject({ status: 200, body: { outcome: 'delivered' } });
  });

  test('a place that is waited for too long is 503', async () => {
    const slow = await server.token('slow');
    const calls = Array.from({ length: 66 }, () => quick.call('/test/slow/never', { token: slow }));
    expect(await statusesOf(calls)).toEqual({ 503: 66 });
  });
});
