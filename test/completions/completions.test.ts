import { request as httpRequest } from 'node:http';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { quotaLimits } from '../../src/completions/quota.ts';
import { comesTrueWithin, eventually } from '../support/server/patience.ts';
import { startTestServer, type TestServer } from '../support/server/server.ts';
import { startVendor, type Vendor, vendorSecret } from '../support/vendor/vendor-server.ts';

let vendor: Vendor;
let server: TestServer;
/** The same, but for its patience with vendors and with others' reservations. */
let hasty: TestServer;
let tokenless: TestServer;
const shared = 'sk-shared-token-of-the-service';
const own = 'sk-own-token-of-the-tenant';

beforeAll(async () => {
  vendor = await startVendor();
  const environment = { OPENAI_BASE_URL: `${vendor.baseUrl}/v1`, ANNALS_COMPLETION_MAX_TOKENS: '100' };
  const withToken = { ...environment, ANNALS_SHARED_PROVIDER_TOKEN: shared };
  server = await startTestServer({ environment: withToken });
  hasty = await startTestServer({
    environment: withToken,
    database: server.database,
    completionTimes: { provider: { silence: 500, total: 600_000 }, quotaWait: 500 },
  });
  tokenless = await startTestServer({ environment, database: server.database });
});

beforeEach(() => {
  vendor.behave({ kind: 'answer' });
  vendor.requests.length = 0;
});

afterAll(async () => {
  await tokenless.close();
  await hasty.close();
  await server.close();
  await vendor.close();
});

test('the text goes on from the messages, whatever the case of their roles, and the id is echoed', async () => {
  const tenant = await newTenant();
  vendor.behave({ kind: 'answer', text: 'Bonjour', usage: { input: 21, output: 2 } });
  const messages = [
    { role: 'system', content: 'Answer in French.' },
    { role: 'User', content: 'Hello' },
    { role: 'ASSISTANT', content: 'Salut' },
    { role: 'USER', content: 'Once more' },
  ];
  expect(await complete(tenant, { id: 'r-1', messages })).toEqual({
    status: 200,
    body: { id: 'r-1', result: 'Bonjour', finishReason: 'stop' },
  });
  expect(vendor.requests).toMatchObject([{ model: 'gpt-5.4-mini', cap: 100 }]);
  expect(vendor.requests[0]?.body.messages).toEqual([
    { role: 'developer', content: 'Answer in French.' },
    { role: 'user', content: 'Hello' },
    { role: 'assistant', content: 'Salut' },
    { role: 'user', content: 'Once more' },
  ]);
  expect(vendor.requests[0]?.headers.authorization).toBe(`Bearer ${shared}`);
  expect(await usage(tenant)).toEqual({
    token: 'shared',
    limits: { inputTokens: 3_000_000, outputTokens: 1_000_000 },
    used: { inputTokens: 21, outputTokens: 2 },
    reserved: { inputTokens: 0, outputTokens: 0 },
    left: { inputTokens: 2_999_979, outputTokens: 999_998 },
  });
});

test('without an id the answer has none', async () => {
  expect(await complete(await newTenant())).toEqual({
    status: 200,
    body: { result: 'Hello there', finishReason: 'stop' },
  });
});

test.each([
  ['no messages', {}, 'messages'],
  ['an empty list of messages', { messages: [] }, 'messages'],
  ['1,001 messages', { messages: Array(1_001).fill({ role: 'USER', content: '' }) }, 'messages'],
  ['an unknown role', { messages: [{ role: 'TOOL', content: '' }] }, 'messages.0.role'],
  ['content that is no string', { messages: [{ role: 'USER', content: 1 }] }, 'messages.0.content'],
  ['an id that is no string', { id: 1, messages: [{ role: 'USER', content: '' }] }, 'id'],
])('400 for %s', async (_what, body, field) => {
  const answer = await complete(await newTenant(), body);
  expect(answer).toMatchObject({ status: 400, body: { type: 'validation_violation' } });
  expect(JSON.stringify(answer.body)).toContain(field);
  expect(vendor.requests).toEqual([]);
});

test('1,000 messages are answered, and a body beyond 1 MiB is 413', async () => {
  const tenant = await newTenant();
  const messages = Array(1_000).fill({ role: 'USER', content: 'x' });
  expect((await complete(tenant, { messages })).status).toBe(200);
  const content = 'x'.repeat(1024 * 1024);
  expect(await complete(tenant, { messages: [{ role: 'USER', content }] })).toMatchObject({
    status: 413,
    body: { type: 'payload_too_large' },
  });
});

test('completions need their own scope', async () => {
  const token = await server.token('scoped', { scope: 'ai.agent_manage' });
  for (const path of ['/ai-service/scoped/completions', '/ai-service/scoped/completions/usage']) {
    const response = await server.call(path, { token, method: path.endsWith('usage') ? 'GET' : 'POST' });
    expect(response.status).toBe(403);
  }
});

test("the tenant's own token is used where it is set, leaves the quota, and can be removed again", async () => {
  const tenant = await newTenant();
  await setOwnToken(tenant);
  expect((await complete(tenant)).status).toBe(200);
  expect(vendor.requests[0]?.headers.authorization).toBe(`Bearer ${own}`);
  expect(await usage(tenant)).toMatchObject({ token: 'own', used: { inputTokens: 0, outputTokens: 0 } });
  await server.context.configuration.remove(tenant, 'providerApiToken', 'test');
  expect((await complete(tenant)).status).toBe(200);
  expect(vendor.requests[1]?.headers.authorization).toBe(`Bearer ${shared}`);
});

test.each([401, 403])(
  'an own token that the provider refuses (%i) is 400 and never replaced by the shared one',
  async (status) => {
    const tenant = await newTenant();
    await setOwnToken(tenant);
    vendor.behave({ kind: 'status', status });
    expect(await complete(tenant)).toEqual({
      status: 400,
      body: {
        status: 400,
        type: 'validation_violation',
        message: 'The provider refuses the token.',
        details: [{ field: 'providerApiToken', message: 'is refused by the provider' }],
      },
    });
    expect(vendor.requests.map(({ headers }) => headers.authorization)).toEqual([`Bearer ${own}`]);
  },
);

test('a shared token that the provider refuses points to providerApiToken too', async () => {
  vendor.behave({ kind: 'status', status: 401 });
  expect(await complete(await newTenant())).toMatchObject({
    status: 400,
    body: { details: [{ field: 'providerApiToken' }] },
  });
});

test('where there is neither token the answer is 503', async () => {
  const tenant = await newTenant();
  expect(await complete(tenant, hello, {}, tokenless)).toMatchObject({
    status: 503,
    body: { type: 'service_unavailable' },
  });
  expect(await usage(tenant, tokenless)).toMatchObject({ token: 'none' });
  await setOwnToken(tenant);
  expect((await complete(tenant, hello, {}, tokenless)).status).toBe(200);
});

const nothing = { inputTokens: 0, outputTokens: 0 };
// The bound of the one message below, and the cap of this service.
const whole = { inputTokens: 5 + 16 + 64, outputTokens: 100 };

test.each([
  ['404 model', { kind: 'status', status: 404 }, 400, 'validation_violation', nothing],
  ['400', { kind: 'status', status: 400 }, 400, 'validation_violation', nothing],
  ['429', { kind: 'status', status: 429 }, 429, 'rate_limit_exceeded', nothing],
  ['500', { kind: 'status', status: 500 }, 502, 'provider_error', nothing],
  ['503', { kind: 'status', status: 503 }, 502, 'provider_error', nothing],
  ['cut in the middle', { kind: 'cut' }, 502, 'provider_error', whole],
  ['not JSON', { kind: 'garbage' }, 502, 'provider_error', whole],
  ['slower than the limit', { kind: 'hang' }, 504, 'provider_timeout', whole],
] as const)('%s: what the client is told, and what is charged', async (_what, behaviour, status, type, used) => {
  const tenant = await newTenant();
  vendor.behave(behaviour);
  const answer = await complete(tenant, hello, {}, behaviour.kind === 'hang' ? hasty : server);
  expect(answer).toMatchObject({ status, body: { status, type } });
  expect(JSON.stringify(answer)).not.toContain(vendorSecret);
  expect(await usage(tenant)).toMatchObject({ used, reserved: nothing });
});

const figures = { prompt_tokens: 40, completion_tokens: 7 };
const counted = { inputTokens: 40, outputTokens: 7 };
const noText = { index: 0, message: { role: 'assistant', content: '' }, finish_reason: 'stop' };

test.each([
  ['no choices', { id: 'x', object: 'chat.completion', choices: [], usage: figures }],
  ['no member for choices', { id: 'x', usage: figures }],
  ['an empty text', { id: 'x', object: 'chat.completion', choices: [noText], usage: figures }],
  ['blanks for a text', { choices: [{ ...noText, message: { role: 'assistant', content: ' \n' } }], usage: figures }],
])('a 200 with %s is 502, and settles to the usage that it has', async (_what, body) => {
  const tenant = await newTenant();
  vendor.behave({ kind: 'status', status: 200, body });
  expect(await complete(tenant)).toMatchObject({ status: 502, body: { type: 'provider_error' } });
  expect(await usage(tenant)).toMatchObject({ used: counted, reserved: nothing });
});

test.each([
  ['length', 'length'],
  ['content_filter', 'content_filter'],
] as const)('an answer that ends by %s says so, and is logged as a warning', async (finish, finishReason) => {
  const tenant = await newTenant();
  vendor.behave({ kind: 'answer', text: 'Half a sen', finish });
  expect(await complete(tenant)).toEqual({ status: 200, body: { result: 'Half a sen', finishReason } });
  const lines = server.logLines.map((line) => JSON.parse(line)).filter((line) => line.tenant === tenant);
  expect(lines.filter(({ level }) => level === 'warn')).toMatchObject([
    { finishReason, msg: 'a completion was cut off or filtered' },
  ]);
});

test('an answer of which the filter left nothing is 502', async () => {
  vendor.behave({ kind: 'answer', text: '', finish: 'content_filter' });
  expect(await complete(await newTenant())).toMatchObject({
    status: 502,
    body: { type: 'provider_error', message: 'The provider gave no usable answer: its filter held it back.' },
  });
});

test('429 hands on Retry-After', async () => {
  const tenant = await newTenant();
  vendor.behave({ kind: 'status', status: 429, headers: { 'retry-after': '23' } });
  const response = await post(server, tenant, await server.token(tenant), hello);
  expect(response.headers.get('retry-after')).toBe('23');
});

test('usage that is missing charges the whole reservation, with the answer given', async () => {
  const tenant = await newTenant();
  vendor.behave({ kind: 'answer', usage: undefined });
  expect((await complete(tenant)).status).toBe(200);
  expect(await usage(tenant)).toMatchObject({ used: whole, reserved: nothing });
});

test('usage larger than asked is settled as reported, and logged', async () => {
  const tenant = await newTenant();
  vendor.behave({ kind: 'answer', usage: { input: 5_000, output: 7_000 } });
  expect((await complete(tenant)).status).toBe(200);
  expect(await usage(tenant)).toMatchObject({ used: { inputTokens: 5_000, outputTokens: 7_000 } });
  expect(server.logLines.filter((line) => line.includes('more than its cap') && line.includes(tenant))).toHaveLength(1);
});

test('the input bound counts bytes, not characters', async () => {
  const tenant = await newTenant();
  vendor.behave({ kind: 'cut' });
  const content = '🦋'.repeat(100);
  await complete(tenant, { messages: [{ role: 'USER', content }] });
  expect(await usage(tenant)).toMatchObject({ used: { inputTokens: 400 + 16 + 64 } });
});

test('a client that goes away aborts the call within 200 ms, and the whole reservation is charged', async () => {
  const tenant = await newTenant();
  vendor.behave({ kind: 'hang' });
  const { leave } = await startRequest(tenant);
  await eventually(() => vendor.requests.length).toBe(1);
  const before = vendor.abandoned.length;
  leave();
  expect(await comesTrueWithin(200, () => vendor.abandoned.length > before)).toBe(true);
  expect(vendor.abandoned).toHaveLength(before + 1);
  await eventually(() => usage(tenant)).toMatchObject({ used: whole, reserved: nothing });
});

test('near the end the output cap shrinks to what is left, and at the end the answer is 403', async () => {
  const tenant = await newTenant();
  await use(tenant, { input: 0, output: quotaLimits.output - 40 });
  vendor.behave(({ cap = 0 }) => ({ kind: 'answer', usage: { input: 1, output: cap - 20 } }));
  expect((await complete(tenant)).status).toBe(200);
  expect(vendor.requests.map(({ cap }) => cap)).toEqual([40]);
  expect((await complete(tenant)).status).toBe(200);
  expect(vendor.requests.map(({ cap }) => cap)).toEqual([40, 20]);
  await use(tenant, { input: 0, output: 5 });
  expect(await complete(tenant)).toEqual({
    status: 403,
    body: {
      status: 403,
      type: 'quota_exceeded',
      message:
        'The quota of the shared provider token is used up. Set providerApiToken to go on with a token of your own.',
    },
  });
});

test('input that does not fit any more is 403 while shorter input still goes', async () => {
  const tenant = await newTenant();
  await use(tenant, { input: quotaLimits.input - 200, output: 0 });
  const long = { messages: [{ role: 'USER', content: 'x'.repeat(121) }] };
  expect(await complete(tenant, long)).toMatchObject({ status: 403, body: { type: 'quota_exceeded' } });
  expect((await complete(tenant)).status).toBe(200);
});

test('a tenant whose quota is used up completes at once with a token of its own, and is back on 403 without it', async () => {
  const tenant = await newTenant();
  await use(tenant, quotaLimits);
  expect((await complete(tenant)).status).toBe(403);
  await setOwnToken(tenant);
  expect((await complete(tenant)).status).toBe(200);
  await server.context.configuration.remove(tenant, 'providerApiToken', 'test');
  expect((await complete(tenant)).status).toBe(403);
});

test('a call that would fit once another has settled waits its turn', async () => {
  const tenant = await newTenant();
  await use(tenant, { input: 0, output: quotaLimits.output - 50 });
  vendor.behave({ kind: 'answer', delay: 150, usage: { input: 1, output: 1 } });
  const answers = await Promise.all([complete(tenant), complete(tenant), complete(tenant)]);
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
  expect(vendor.requests.map(({ cap }) => cap)).toEqual([50, 49, 48]);
});

test('a wait beyond the limit is 503 with Retry-After', async () => {
  const tenant = await newTenant();
  await use(tenant, { input: 0, output: quotaLimits.output - 50 });
  const held = await server.context.completions.quota.reserve({ tenant, input: 1, output: 50, maxDuration: 60_000 });
  const token = await server.token(tenant);
  const response = await post(hasty, tenant, token, hello);
  expect(response.status).toBe(503);
  expect(response.headers.get('retry-after')).toBe('5');
  await held.settle('none');
  expect((await complete(tenant)).status).toBe(200);
});

test('what the database does not take at once is settled later, and the answer does not wait for it', async () => {
  const tenant = await newTenant();
  const held = await server.context.completions.quota.reserve({ tenant, input: 10, output: 10, maxDuration: 60_000 });
  const { pool } = server.database;
  await pool.query('alter function completion_quota_apply rename to completion_quota_apply_away');
  await held.settle({ inputTokens: 3, outputTokens: 4 });
  await pool.query('alter function completion_quota_apply_away rename to completion_quota_apply');
  await eventually(() => usage(tenant)).toMatchObject({
    used: { inputTokens: 3, outputTokens: 4 },
    reserved: nothing,
  });
});

const hello = { messages: [{ role: 'USER', content: 'Hello' }] };
let tenants = 0;

async function newTenant(): Promise<string> {
  tenants += 1;
  const tenant = `tenant${tenants}`;
  await server.createTenant(tenant);
  return tenant;
}

async function setOwnToken(tenant: string): Promise<void> {
  const item = {
    key: 'providerApiToken',
    value: own,
    json: JSON.stringify(own),
    size: { bytes: own.length, values: 1, levels: 0 },
  };
  await server.context.configuration.create(tenant, [item], 'test');
}

async function post(
  on: TestServer,
  tenant: string,
  token: string,
  body: unknown,
  headers: Record<string, string> = {},
) {
  return await on.call(`/ai-service/${tenant}/completions`, {
    method: 'POST',
    token,
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
}

async function complete(tenant: string, body: unknown = hello, headers: Record<string, string> = {}, on = server) {
  const response = await post(on, tenant, await on.token(tenant), body, headers);
  return { status: response.status, body: await response.json() };
}

async function usage(tenant: string, on = server) {
  const token = await on.token(tenant, { scope: 'ai.completion_manage' });
  return await (await on.call(`/ai-service/${tenant}/completions/usage`, { token })).json();
}

/** As if earlier calls had used so much. */
async function use(tenant: string, { input, output }: { input: number; output: number }): Promise<void> {
  await server.database.pool.query(
    `insert into completion_quota as q (tenant, input_used, output_used) values ($1, $2, $3)
       on conflict (tenant) do update set input_used = q.input_used + $2, output_used = q.output_used + $3`,
    [tenant, input, output],
  );
}

/** A request whose client can go away. */
async function startRequest(tenant: string, headers: Record<string, string> = {}): Promise<{ leave: () => void }> {
  const token = await server.token(tenant);
  const body = JSON.stringify(hello);
  const request = httpRequest(`${server.baseUrl}/ai-service/${tenant}/completions`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      'content-length': body.length,
      ...headers,
    },
  });
  request.on('error', () => {});
  request.end(body);
  return { leave: () => request.destroy() };
}
