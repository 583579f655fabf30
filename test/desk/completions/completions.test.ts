import { beforeEach, expect, test } from 'vitest';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { complete, newTenant, postCompletion, setProviderToken, usageOf } from '../../support/server/completions.ts';
import { startTestServer } from '../../support/server/server.ts';
import { startVendor } from '../../support/vendor/vendor-server.ts';

const shared = 'sk-shared-token-of-the-service';
const own = 'sk-own-token-of-the-tenant';

const vendor = closeAfterAll(await startVendor());
const environment = { OPENAI_BASE_URL: `${vendor.baseUrl}/v1`, ANNALS_COMPLETION_MAX_TOKENS: '100' };
const server = closeAfterAll(
  await startTestServer({ environment: { ...environment, ANNALS_SHARED_PROVIDER_TOKEN: shared } }),
);
const tokenless = closeAfterAll(await startTestServer({ environment, database: server.database }));

beforeEach(() => {
  vendor.behave({ kind: 'answer' });
  vendor.requests.length = 0;
});

test('the text continues from the messages, whatever the case of their roles, and the id is echoed', async () => {
  const tenant = await newTenant(server);
  vendor.behave({ kind: 'answer', text: 'Bonjour', usage: { input: 21, output: 2 } });
  const messages = [
    { role: 'system', content: 'Answer in French.' },
    { role: 'User', content: 'Hello' },
    { role: 'ASSISTANT', content: 'Salut' },
    { role: 'USER', content: 'Once more' },
  ];
  expect(await complete(server, tenant, { id: 'r-1', messages })).toEqual({
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
  expect(await usageOf(server, tenant)).toEqual({
    token: 'shared',
    limits: { inputTokens: 3_000_000, outputTokens: 1_000_000 },
    used: { inputTokens: 21, outputTokens: 2 },
    reserved: { inputTokens: 0, outputTokens: 0 },
    left: { inputTokens: 2_999_979, outputTokens: 999_998 },
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
  const answer = await complete(server, await newTenant(server), body);
  expect(answer).toMatchObject({ status: 400, body: { type: 'validation_violation' } });
  expect(JSON.stringify(answer.body)).toContain(field);
  expect(vendor.requests).toEqual([]);
});

test('1,000 messages are answered, and a body beyond 1 MiB is 413', async () => {
  const tenant = await newTenant(server);
  const messages = Array(1_000).fill({ role: 'USER', content: 'x' });
  expect((await complete(server, tenant, { messages })).status).toBe(200);
  const content = 'x'.repeat(1024 * 1024);
  expect(await complete(server, tenant, { messages: [{ role: 'USER', content }] })).toMatchObject({
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
  const tenant = await newTenant(server);
  await setProviderToken(server, tenant, own);
  expect((await complete(server, tenant)).status).toBe(200);
  expect(vendor.requests[0]?.headers.authorization).toBe(`Bearer ${own}`);
  expect(await usageOf(server, tenant)).toMatchObject({ token: 'own', used: { inputTokens: 0, outputTokens: 0 } });
  await server.context.configuration.remove({ tenant, actor: 'test' }, 'providerApiToken');
  expect((await complete(server, tenant)).status).toBe(200);
  expect(vendor.requests[1]?.headers.authorization).toBe(`Bearer ${shared}`);
});

test.each([401, 403])(
  'an own token that the provider refuses (%i) is 400 and never replaced by the shared one',
  async (status) => {
    const tenant = await newTenant(server);
    await setProviderToken(server, tenant, own);
    vendor.behave({ kind: 'status', status });
    expect(await complete(server, tenant)).toEqual({
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
  expect(await complete(server, await newTenant(server))).toMatchObject({
    status: 400,
    body: { details: [{ field: 'providerApiToken' }] },
  });
});

test('where there is neither token the answer is 503', async () => {
  const tenant = await newTenant(server);
  expect(await complete(tokenless, tenant)).toMatchObject({ status: 503, body: { type: 'service_unavailable' } });
  expect(await usageOf(tokenless, tenant)).toMatchObject({ token: 'none' });
  await setProviderToken(server, tenant, own);
  expect((await complete(tokenless, tenant)).status).toBe(200);
});

test.each([
  ['length', 'length'],
  ['content_filter', 'content_filter'],
] as const)('an answer that ends by %s says so, and is logged as a warning', async (finish, finishReason) => {
  const tenant = await newTenant(server);
  vendor.behave({ kind: 'answer', text: 'Half a sen', finish });
  expect(await complete(server, tenant)).toEqual({ status: 200, body: { result: 'Half a sen', finishReason } });
  const lines = server.logLines.map((line) => JSON.parse(line)).filter((line) => line.tenant === tenant);
  expect(lines.filter(({ level }) => level === 'warn')).toMatchObject([
    { finishReason, msg: 'a completion was cut off or filtered' },
  ]);
});

test('an answer of which the filter left nothing is 502', async () => {
  vendor.behave({ kind: 'answer', text: '', finish: 'content_filter' });
  expect(await complete(server, await newTenant(server))).toMatchObject({
    status: 502,
    body: { type: 'provider_error', message: 'The provider gave no usable answer: its filter held it back.' },
  });
});

test('429 hands on Retry-After', async () => {
  const tenant = await newTenant(server);
  vendor.behave({ kind: 'status', status: 429, headers: { 'retry-after': '23' } });
  const response = await postCompletion(server, tenant);
  expect(response.headers.get('retry-after')).toBe('23');
});

test('the record of a call has the end user of the header annals-user', async () => {
  const tenant = await newTenant(server);
  const token = await server.token(tenant);
  const ask = (path: string, user: string) =>
    server.call(`/ai-service/${tenant}/${path}`, {
      token,
      json: { messages: [{ role: 'USER', content: 'Hello' }] },
      headers: { 'annals-user': user },
    });
  expect((await ask('completions', 'jane')).status).toBe(200);
  expect(await (await ask('completions-stream', 'john')).text()).toContain('event: done');
  const refused = await ask('completions', 'x'.repeat(201));
  expect([refused.status, await refused.json()]).toMatchObject([400, { details: [{ field: 'annals-user' }] }]);
  const calls = await (await server.call(`/usage/${tenant}/calls?sort=_id`, { token })).json();
  expect(calls.map(({ user }: { user: string }) => user)).toEqual(['jane', 'john']);
});
