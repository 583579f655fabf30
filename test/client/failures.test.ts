import { beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { Annals, ApiError } from '../../clients/typescript/src/index.ts';
import { closeAfterAll } from '../support/close-after-all.ts';
import { type FaultyProxy, type ProxiedRequest, startFaultyProxy } from '../support/server/faulty-proxy.ts';
import { eventually } from '../support/server/patience.ts';
import { startTestServer } from '../support/server/server.ts';
import { startVendor } from '../support/vendor/vendor-server.ts';

const vendor = closeAfterAll(await startVendor());
const server = closeAfterAll(
  await startTestServer({
    environment: { ANNALS_SHARED_PROVIDER_TOKEN: 'shared-token', OPENAI_BASE_URL: vendor.baseUrl },
  }),
);
const client = await server.createClient('acme');
const proxy = closeAfterAll(await startFaultyProxy(server.baseUrl));

beforeEach(() => {
  proxy.requests.length = 0;
  proxy.behave(() => ({ kind: 'none' }));
  vendor.requests.length = 0;
  vendor.behave({ kind: 'answer' });
});

function annals(options: { maxRetries?: number; timeout?: number; clientSecret?: string; fetch?: typeof fetch } = {}) {
  return new Annals({ baseUrl: proxy.baseUrl, ...client, ...options });
}

const isToken = ({ path }: ProxiedRequest) => path === '/oauth/token';
const tokenRequests = () => proxy.requests.filter(isToken).length;
const calls = () => proxy.requests.filter((request) => !isToken(request));
const messages = [{ role: 'USER' as const, content: 'Hello' }];

/** The error of a call that must fail. */
async function errorOf(call: PromiseLike<unknown>): Promise<ApiError> {
  const outcome = await call.then(
    (value) => new Error(`resolved with ${JSON.stringify(value)}`),
    (error: unknown) => error,
  );
  if (!(outcome instanceof ApiError)) throw outcome;
  return outcome;
}

/** Does this with the first calls, and lets the others pass. */
function firstCalls(count: number, fault: Parameters<FaultyProxy['behave']>[0]): void {
  let seen = 0;
  proxy.behave((request) => {
    if (isToken(request)) return { kind: 'none' };
    seen += 1;
    return seen <= count ? fault(request) : { kind: 'none' };
  });
}

test('only a page of another origin is told that its origin may not be allowed', async () => {
  const refused = async () => {
    throw new TypeError('Failed to fetch');
  };
  const pageOf = (origin: string) => {
    vi.stubGlobal('location', { origin });
    vi.stubGlobal('document', { baseURI: `${origin}/page` });
  };
  onTestFinished(() => void vi.unstubAllGlobals());
  const messageOf = async () => (await errorOf(annals({ maxRetries: 0, fetch: refused }).agents.list())).message;
  const own = 'The connection to the service failed: Failed to fetch';
  expect(await messageOf()).toBe(own);
  pageOf(proxy.baseUrl);
  expect(await messageOf()).toBe(own);
  pageOf('https://shop.example');
  expect(await messageOf()).toBe(`${own} (Does ANNALS_CORS_ORIGINS of the service allow the origin of this page?)`);
});

test('ten calls at once ask for one token, and for one more shortly before it ends', async () => {
  const many = annals();
  const tenCalls = async () => {
    const pages = await Promise.all(Array.from({ length: 10 }, () => many.history.list({ size: 1 })));
    expect(pages).toHaveLength(10);
  };
  await tenCalls();
  expect(tokenRequests()).toBe(1);
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 14_300_000 });
  onTestFinished(() => void vi.useRealTimers());
  await tenCalls();
  expect(tokenRequests()).toBe(1);
  vi.setSystemTime(Date.now() + 60_000);
  await tenCalls();
  expect(tokenRequests()).toBe(2);
});

test('while the token endpoint is away, the old token serves until it ends', async () => {
  const api = annals({ maxRetries: 0 });
  await api.models.list();
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 14_360_000 });
  onTestFinished(() => void vi.useRealTimers());
  proxy.behave((request) => (isToken(request) ? { kind: 'cut' } : { kind: 'none' }));
  expect(await api.models.list()).toHaveLength(3);
  vi.setSystemTime(Date.now() + 60_000);
  expect(await errorOf(api.models.list())).toMatchObject({ type: 'connection_failed', status: undefined });
});

test('calls whose token the service refuses share one new token', async () => {
  const refused = new Set<string>();
  proxy.behave(({ headers: { authorization = '' }, path }) => {
    if (path === '/oauth/token') return { kind: 'none' };
    if (refused.size === 0) refused.add(authorization);
    if (!refused.has(authorization)) return { kind: 'none' };
    const fault = {
      faultstring: 'Access Token expired',
      detail: { errorcode: 'keymanagement.service.access_token_expired' },
    };
    return { kind: 'answer', status: 401, body: { fault } };
  });
  const many = annals();
  await Promise.all(Array.from({ length: 20 }, () => many.models.list()));
  expect(tokenRequests()).toBe(2);
  expect(calls()).toHaveLength(40);
});

test('a second refusal is an error with the fault of the access token', async () => {
  const fault = { faultstring: 'Invalid access token', detail: { errorcode: 'oauth.v2.InvalidAccessToken' } };
  firstCalls(9, () => ({ kind: 'answer', status: 401, body: { fault } }));
  expect(await errorOf(annals().models.list())).toMatchObject({
    status: 401,
    type: 'oauth.v2.InvalidAccessToken',
    message: 'Invalid access token',
  });
  expect(calls()).toHaveLength(2);
});

test('a wrong secret is an error at once, with what RFC 6749 calls it', async () => {
  const error = await errorOf(annals({ clientSecret: 'wrong' }).models.list());
  expect(error).toMatchObject({ status: 401, type: 'invalid_client' });
  expect(JSON.stringify(error) + String(error)).not.toContain('wrong');
  expect(proxy.requests).toHaveLength(1);
});

test('a token of the caller is used as it is', async () => {
  const token = await server.tokenOf(client);
  const withToken = new Annals({ baseUrl: `${proxy.baseUrl}/`, tenant: 'acme', token: async () => token });
  expect(await withToken.models.list()).toHaveLength(3);
  expect(tokenRequests()).toBe(0);
});

test('a completion whose answer is lost is retried with the same key, and generated once', async () => {
  const faults = [{ kind: 'lose' }, { kind: 'half' }, { kind: 'cut' }] as const;
  firstCalls(3, () => faults[calls().length - 1] ?? { kind: 'none' });
  expect(await annals().completions.create({ id: 'c-1', messages })).toMatchObject({
    id: 'c-1',
    result: 'Hello there',
  });
  expect(calls()).toHaveLength(4);
  expect(new Set(calls().map(({ headers }) => headers['idempotency-key'])).size).toBe(1);
  expect(vendor.requests).toHaveLength(1);
});

test('a completion that is cut off while the provider is at work is joined, and generated once', async () => {
  const { promise: allowed, resolve: answer } = Promise.withResolvers<void>();
  vendor.behave({ kind: 'answer', after: allowed });
  firstCalls(1, () => ({ kind: 'abandon', when: eventually(() => vendor.requests.length).toBe(1) }));
  const completion = annals().completions.create({ messages }, { idempotencyKey: 'mine' });
  await eventually(() => calls().length).toBe(2);
  answer();
  expect(await completion).toMatchObject({ result: 'Hello there' });
  expect(calls().map(({ headers }) => headers['idempotency-key'])).toEqual(['mine', 'mine']);
  expect(vendor.requests).toHaveLength(1);
});

test('Retry-After is a lower bound, and one that is too long ends the call', async () => {
  firstCalls(1, () => ({ kind: 'answer', status: 429, headers: { 'retry-after': '1' }, body: limited }));
  await annals().history.list();
  const [first, second] = calls();
  expect((second?.at ?? 0) - (first?.at ?? 0)).toBeGreaterThanOrEqual(1_000);
  firstCalls(1, () => ({ kind: 'answer', status: 429, headers: { 'retry-after': '61' }, body: limited }));
  expect(await errorOf(annals().history.list())).toMatchObject({ type: 'rate_limit_exceeded', retryAfter: 61 });
});

const limited = { status: 429, type: 'rate_limit_exceeded', message: 'Slow down.' };
const unavailable = { status: 503, type: 'service_unavailable', message: 'Later.' };

test('what may be repeated is, and what may not is not', async () => {
  const quick = annals({ maxRetries: 1 });
  const read = () => quick.models.list();
  const put = () => quick.customEntities.put('RETRIED', { name: { en: 'Retried' } });
  const post = () => quick.customEntities.create({ id: 'POSTED', name: { en: 'Posted' } });
  const attemptsOf = async (call: () => Promise<unknown>, fault: Parameters<FaultyProxy['behave']>[0]) => {
    const before = calls().length;
    firstCalls(1, fault);
    await call().catch((error: unknown) => expect(error).toBeInstanceOf(ApiError));
    return calls().length - before;
  };
  const status = (code: number) => () =>
    ({
      kind: 'answer',
      status: code,
      headers: { 'retry-after': '0' },
      body: { ...unavailable, status: code },
    }) as const;
  for (const safe of [read, put]) {
    for (const code of [429, 502, 503]) expect(await attemptsOf(safe, status(code)), `${code}`).toBe(2);
    for (const kind of ['cut', 'lose', 'half'] as const) expect(await attemptsOf(safe, () => ({ kind })), kind).toBe(2);
    for (const code of [400, 403, 404, 409, 500, 504]) expect(await attemptsOf(safe, status(code)), `${code}`).toBe(1);
  }
  for (const code of [502, 503]) expect(await attemptsOf(post, status(code)), `${code}`).toBe(1);
  expect(await attemptsOf(post, () => ({ kind: 'cut' }))).toBe(1);
  expect(await attemptsOf(post, status(429))).toBe(2);
  expect(await quick.customEntities.get('POSTED')).toMatchObject({ id: 'POSTED' });
});

test('a POST whose connection is refused is retried and carried out once', async () => {
  await annals().customEntities.put('LATE', { name: { en: 'Late' } });
  // A proxy of its own: no connection of an earlier call is left that could break off in the middle.
  const late = await startFaultyProxy(server.baseUrl);
  onTestFinished(() => late.close());
  await late.pause();
  const token = await server.tokenOf(client);
  const refused: unknown[] = [];
  const counted: typeof fetch = async (input, init) => {
    return await fetch(input, init).catch((error: unknown) => {
      refused.push(error);
      throw error;
    });
  };
  const api = new Annals({ baseUrl: late.baseUrl, tenant: 'acme', token: () => token, fetch: counted });
  const made = api.instances('LATE').create({ id: 'l-1' });
  await eventually(() => refused.length).toBeGreaterThan(0);
  await late.resume();
  expect(await made).toEqual({ id: 'l-1' });
  expect(late.requests).toHaveLength(1);
});

test('after its last attempt a call fails with what the last attempt met', async () => {
  firstCalls(9, () => ({ kind: 'answer', status: 503, body: unavailable }));
  expect(await errorOf(annals({ maxRetries: 2 }).models.list())).toMatchObject({
    status: 503,
    type: 'service_unavailable',
    attempts: 3,
  });
  expect(calls()).toHaveLength(3);
});

test('a signal ends a call in flight, in its pause and while it waits for the token', async () => {
  const reason = new Error('no longer wanted');
  const abort = async (fault: Parameters<FaultyProxy['behave']>[0]) => {
    proxy.requests.length = 0;
    proxy.behave(fault);
    const controller = new AbortController();
    const call = annals().models.list({ signal: controller.signal });
    await eventually(() => proxy.requests.some((request) => fault(request).kind !== 'none')).toBe(true);
    controller.abort(reason);
    await expect(call).rejects.toBe(reason);
  };
  await abort((request) => (isToken(request) ? { kind: 'none' } : { kind: 'hang' }));
  await abort((request) =>
    isToken(request)
      ? { kind: 'none' }
      : { kind: 'answer', status: 429, headers: { 'retry-after': '30' }, body: limited },
  );
  await abort((request) => (isToken(request) ? { kind: 'hang' } : { kind: 'none' }));
  await expect(annals().models.list({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  // A token of the caller may take its time, and the signal may be aborted in it.
  const controller = new AbortController();
  const token = async () => {
    controller.abort(reason);
    return 'token';
  };
  const withToken = new Annals({ baseUrl: proxy.baseUrl, tenant: 'acme', token });
  await expect(withToken.models.list({ signal: controller.signal })).rejects.toBe(reason);
});

test('one caller who gives up leaves the token to the others', async () => {
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const slow: typeof fetch = async (input, init) => {
    if (String(input).endsWith('/oauth/token')) await released;
    return await fetch(input, init);
  };
  const shared = annals({ fetch: slow });
  const controller = new AbortController();
  const abandoned = shared.models.list({ signal: controller.signal });
  const kept = shared.models.list();
  controller.abort(new Error('no longer wanted'));
  await expect(abandoned).rejects.toThrow('no longer wanted');
  release();
  expect(await kept).toHaveLength(3);
  expect(tokenRequests()).toBe(1);
});

test('a service that is silent for longer than the time-out is an error of its own', async () => {
  firstCalls(9, () => ({ kind: 'hang' }));
  expect(await errorOf(annals({ timeout: 200 }).models.list())).toMatchObject({
    type: 'timeout',
    status: undefined,
    attempts: 1,
  });
});

test('an answer that is no JSON is an error, and never an empty success', async () => {
  firstCalls(9, () => ({ kind: 'answer', status: 200, body: '<html>' }));
  expect(await errorOf(annals().models.list())).toMatchObject({ type: 'invalid_answer' });
  firstCalls(9, () => ({ kind: 'answer', status: 502, body: '<html>' }));
  expect(await errorOf(annals({ maxRetries: 0 }).models.list())).toMatchObject({ type: 'unknown', status: 502 });
});

test('a chat that breaks off is an error, and never a short answer', async () => {
  const api = annals();
  await api.agents.put('desk', { name: { en: 'Desk' }, llmConfig: { provider: 'shared' } });
  vendor.behave({ kind: 'answer', text: 'A long answer in many parts, and then some more of them.' });
  firstCalls(1, () => ({ kind: 'half' }));
  const texts: string[] = [];
  const read = async () => {
    for await (const text of api.chat.stream({ agentId: 'desk', message: 'Hello' })) texts.push(text);
  };
  expect(await errorOf(read())).toMatchObject({ type: 'connection_failed' });
  expect(calls().filter(({ path }) => path.endsWith('/chat-stream'))).toHaveLength(1);
  const event = 'event: error\ndata: {"status":429,"type":"rate_limit_exceeded","message":"Later.","retryAfter":7}\n\n';
  firstCalls(1, () => ({ kind: 'answer', status: 200, headers: { 'content-type': 'text/event-stream' }, body: event }));
  expect(await errorOf(read())).toMatchObject({ type: 'rate_limit_exceeded', status: 429, retryAfter: 7 });
});

test('a download comes no faster than it is read, and one that breaks off is an error', async () => {
  const api = annals();
  proxy.taken = 0;
  const withContent = (content: Parameters<FaultyProxy['behave']>[0]) =>
    firstCalls(2, (request) =>
      request.path.endsWith('/content') ? content(request) : { kind: 'answer', status: 200, body: { metadata: {} } },
    );
  withContent(() => ({ kind: 'endless', piece: Buffer.alloc(65_536, '{}\n') }));
  const { body } = await api.jobs.content('job');
  const reader = body.getReader();
  let read = 0;
  while (read < 32 * 1024 * 1024) read += (await reader.read()).value?.length ?? 0;
  const { taken } = proxy;
  // What stands in between are the buffers of the connection.
  expect(taken - read).toBeLessThan(16 * 1024 * 1024);
  await reader.cancel();
  withContent(() => ({ kind: 'endless', piece: Buffer.from('{"at":"now"}\n'), closeAfter: 200_000 }));
  let entries = 0;
  const readAll = async () => {
    for await (const entry of api.jobs.entries('job')) entries += entry.at === 'now' ? 1 : 0;
  };
  expect(await errorOf(readAll())).toMatchObject({ type: 'connection_failed' });
  expect(entries).toBeGreaterThan(1_000);
});

test('a download whose job cannot be read ends with that error and takes no more', async () => {
  proxy.taken = 0;
  firstCalls(1, () => ({ kind: 'endless', piece: Buffer.alloc(65_536, '{}\n') }));
  expect(await errorOf(annals().jobs.content('job'))).toMatchObject({ status: 404 });
  // The proxy's pipeline ends with the connection.
  await eventually(() => {
    const before = proxy.taken;
    return new Promise((resolve) => setTimeout(() => resolve(proxy.taken === before), 100));
  }).toBe(true);
});
