import Anthropic from '@anthropic-ai/sdk';
import { beforeEach, expect, test } from 'vitest';
import { createKey } from '../../../src/access/keys/key-store.ts';
import { builtInModels } from '../../../src/desk/models/read-models.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { eventually } from '../../support/server/patience.ts';
import { startOpenai } from '../openai/openai-server.ts';

const { vendor, server, tenantWithKeys } = closeAfterAll(await startOpenai());
await tenantWithKeys('acme');
const token = await server.token('acme');
const baseURL = `${server.baseUrl}/anthropic/acme`;
const client = new Anthropic({ apiKey: token, baseURL, maxRetries: 0 });
const hello = { model: 'claude-sonnet-5-5', max_tokens: 50, messages: [{ role: 'user' as const, content: 'Hello' }] };

beforeEach(() => {
  vendor.behave({ kind: 'answer', text: 'one two three', usage: { input: 7, output: 3 } });
  vendor.requests.length = 0;
});

async function errorOf(call: Promise<unknown>): Promise<InstanceType<typeof Anthropic.APIError>> {
  const error = await call.then(
    () => new Error('the call succeeded'),
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof Anthropic.APIError)) throw error;
  return error;
}

test('a message goes out as it came, with the key of the tenant alone', async () => {
  const message = await client.messages.create(hello);
  expect(message.content).toEqual([{ type: 'text', text: 'one two three' }]);
  expect(message.usage).toEqual({ input_tokens: 7, output_tokens: 3 });
  expect(vendor.requests.at(-1)).toMatchObject({
    url: '/v1/messages',
    bodyText: JSON.stringify(hello),
    headers: { 'x-api-key': 'sk-anthropic', 'anthropic-version': '2026-10-21', 'accept-encoding': 'identity' },
  });
  expect(vendor.requests.at(-1)?.headers.authorization).toBeUndefined();
});

const event = (data: { type: string }) => `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;

/** A stream with these blocks. */
function streamOf(blocks: [start: object, ...deltas: object[]][], stopReason: string): string[] {
  const usage = { input_tokens: 9, cache_read_input_tokens: 4, cache_creation_input_tokens: 2, output_tokens: 1 };
  const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', content: [], usage };
  return [
    event({ type: 'message_start', message } as { type: string }),
    event({ type: 'ping' }),
    ...blocks.flatMap(([block, ...deltas], index) => [
      event({ type: 'content_block_start', index, content_block: block } as { type: string }),
      ...deltas.map((delta) => event({ type: 'content_block_delta', index, delta } as { type: string })),
      event({ type: 'content_block_stop', index } as { type: string }),
    ]),
    event({
      type: 'message_delta',
      delta: { stop_reason: stopReason, stop_sequence: null },
      usage: { output_tokens: 30 },
    } as { type: string }),
    event({ type: 'message_stop' }),
  ];
}

test('a stream with thinking and a tool, and the turn that follows', async () => {
  vendor.behave({
    kind: 'events',
    events: streamOf(
      [
        [
          { type: 'thinking', thinking: '', signature: '' },
          { type: 'thinking_delta', thinking: 'Let me look.' },
          { type: 'signature_delta', signature: 'c2ln' },
        ],
        [
          { type: 'tool_use', id: 'toolu_1', name: 'look_up', input: {} },
          { type: 'input_json_delta', partial_json: '{"id":' },
          { type: 'input_json_delta', partial_json: '7}' },
        ],
      ],
      'tool_use',
    ),
  });
  const asked = {
    ...hello,
    max_tokens: 5_000,
    thinking: { type: 'enabled' as const, budget_tokens: 2_000 },
    tools: [
      { name: 'look_up', input_schema: { type: 'object' as const, properties: {} } },
      { type: 'text_editor_20250728' as const, name: 'str_replace_based_edit_tool' as const },
    ],
  };
  const message = await client.messages.stream(asked).finalMessage();
  expect(message.content).toMatchObject([
    { type: 'thinking', thinking: 'Let me look.', signature: 'c2ln' },
    { type: 'tool_use', id: 'toolu_1', name: 'look_up', input: { id: 7 } },
  ]);
  expect(message).toMatchObject({ stop_reason: 'tool_use', usage: { output_tokens: 30 } });
  vendor.behave({ kind: 'answer', text: 'done', usage: { input: 1, output: 1 } });
  const next = await client.messages.create({
    ...asked,
    messages: [
      ...asked.messages,
      { role: 'assistant', content: message.content },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'seven' }] },
    ],
  });
  expect(next.content).toMatchObject([{ text: 'done' }]);
});

test('the record of a stream has the figures by kind, the time to its first part and its end', async () => {
  vendor.behave({
    kind: 'events',
    events: streamOf(
      [
        [
          { type: 'text', text: '' },
          { type: 'text_delta', text: 'Hi' },
        ],
      ],
      'max_tokens',
    ),
  });
  await client.messages.stream({ ...hello, model: 'claude-recorded' }).finalMessage();
  const list = await server.call('/usage/acme/calls?q=model:claude-recorded', { token });
  const [call] = (await list.json()) as Record<string, unknown>[];
  expect(call).toMatchObject({
    operation: 'anthropic',
    token: 'own',
    provider: 'anthropic',
    inputTokens: 15,
    cachedTokens: 4,
    cacheWriteTokens: 2,
    outputTokens: 30,
    firstTokenMs: expect.any(Number),
    finishReason: 'length',
  });
});

test('tokens are counted without a record and without a reservation', async () => {
  const before = await (await server.call('/usage/acme/calls', { token })).text();
  vendor.behave({ kind: 'answer', usage: { input: 42, output: 0 } });
  const { model, messages } = hello;
  expect(await client.messages.countTokens({ model, messages, system: 'Be brief.' })).toEqual({ input_tokens: 42 });
  expect(vendor.requests.at(-1)?.url).toBe('/v1/messages/count_tokens');
  expect(await (await server.call('/usage/acme/calls', { token })).text()).toBe(before);
  vendor.behave({ kind: 'status', status: 429, headers: { 'retry-after': '3' } });
  expect(await errorOf(client.messages.countTokens({ model, messages }))).toMatchObject({ status: 429 });
  vendor.behave({ kind: 'cut' });
  const cut = await errorOf(client.messages.countTokens({ model, messages }));
  expect([cut.status, cut.headers?.get('x-should-retry')]).toEqual([502, null]);
});

test('counts have the share of their tenant: of one tenant 32 are under way, and others do not wait', async () => {
  await tenantWithKeys('other');
  const other = new Anthropic({
    apiKey: await server.token('other'),
    baseURL: `${server.baseUrl}/anthropic/other`,
    maxRetries: 0,
  });
  const { model, messages } = hello;
  const { promise: after, resolve: proceed } = Promise.withResolvers<void>();
  vendor.behave(({ bodyText }) => ({
    kind: 'answer',
    usage: { input: 1, output: 0 },
    ...(!bodyText.includes('other') && { after }),
  }));
  const counts = Array.from({ length: 33 }, () => client.messages.countTokens({ model, messages }));
  await eventually(() => vendor.requests.length).toBe(32);
  const ofOther = [{ role: 'user' as const, content: 'other' }];
  expect(await other.messages.countTokens({ model, messages: ofOther })).toEqual({ input_tokens: 1 });
  expect(vendor.requests).toHaveLength(33);
  proceed();
  expect(await Promise.all(counts)).toHaveLength(33);
  expect(vendor.requests).toHaveLength(34);
});

test('models are listed by their bare ids, page by page, and read one by one', async () => {
  const expected = builtInModels.find(({ provider }) => provider === 'anthropic')?.models.map(({ id }) => id) ?? [];
  for (const limit of [1, 4, 20]) {
    const ids: string[] = [];
    for await (const model of client.models.list({ limit })) ids.push(model.id);
    expect(ids).toEqual(expected);
  }
  const page = await client.models.list({ limit: 3, before_id: expected[5] ?? '' });
  expect(page.data.map(({ id }) => id)).toEqual(expected.slice(2, 5));
  expect(page.has_more).toBe(true);
  expect(await client.models.retrieve('claude-opus-5-5')).toMatchObject({ display_name: 'Claude Opus 5.5' });
  const beta = await client.beta.models.list({ limit: 1_000 });
  expect(beta.data.map(({ id }) => id)).toEqual(expected);
  expect(await client.beta.models.retrieve('claude-opus-5-5')).toMatchObject({ type: 'model' });
  expect(await errorOf(client.models.retrieve('gpt-5.4'))).toMatchObject({ status: 404, type: 'not_found_error' });
  expect(await errorOf(client.models.list({ after_id: 'none' }))).toMatchObject({ status: 400 });
});

test.each([
  [400, 400, 'invalid_request_error'],
  [429, 429, 'rate_limit_error'],
  [529, 502, 'overloaded_error'],
])('an error of %i of the vendor is %i for the client, with its type and message', async (status, seen, type) => {
  const body = { type: 'error', error: { type, message: 'prompt is too long: 5 tokens > 4' }, request_id: 'req_1' };
  vendor.behave({ kind: 'status', status, headers: { 'request-id': 'req_1', 'retry-after': '2' }, body });
  const error = await errorOf(client.messages.create(hello));
  expect(error).toMatchObject({ status: seen, type, requestID: 'req_1', error: body });
});

test('an error in a stream reaches the client, which retries nothing that may have cost', async () => {
  const error = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } };
  const [start = ''] = streamOf([], 'end_turn');
  vendor.behave({ kind: 'events', events: [start, event(error)] });
  const retrying = new Anthropic({ apiKey: token, baseURL, maxRetries: 2 });
  await expect(retrying.messages.stream(hello).finalMessage()).rejects.toThrow(/Overloaded/);
  expect(vendor.requests).toHaveLength(1);
  vendor.behave({ kind: 'garbage' });
  expect(await errorOf(retrying.messages.create(hello))).toMatchObject({ status: 502, type: 'api_error' });
  expect(vendor.requests).toHaveLength(2);
});

test('the end user is that of the header or of the key, and a key with models calls and lists these alone', async () => {
  const scopes = ['ai.completion_manage' as const];
  const of = async (options: { user?: string; models?: string[] }, headers: Record<string, string> = {}) => {
    const { key } = await createKey(server.context.db, { tenant: 'acme', scopes, ...options });
    return new Anthropic({ apiKey: key, baseURL, maxRetries: 0, defaultHeaders: headers });
  };
  const asked = { ...hello, model: 'claude-of-users', metadata: { user_id: `said\0${'x'.repeat(200)}` } };
  await (await of({})).messages.create(asked);
  await (await of({}, { 'annals-user': 'jill' })).messages.create(asked);
  await (await of({ user: 'jane' })).messages.create(asked);
  const other = await errorOf((await of({ user: 'jane' }, { 'annals-user': 'john' })).messages.create(asked));
  expect(other).toMatchObject({ status: 403, type: 'permission_error' });
  const list = await server.call('/usage/acme/calls?q=model:claude-of-users&sort=_id:ASC', { token });
  expect(((await list.json()) as { user?: string }[]).map(({ user }) => user)).toEqual([
    `said\ufffd${'x'.repeat(195)}`,
    'jill',
    'jane',
  ]);
  const few = await of({ models: ['anthropic/claude-opus-5', 'openai/gpt-5'] });
  expect((await few.models.list()).data.map(({ id }) => id)).toEqual(['claude-opus-5']);
  expect((await few.messages.create({ ...hello, model: 'claude-opus-5' })).content).toHaveLength(1);
  const { max_tokens: _, ...counted } = hello;
  for (const call of [few.messages.create(hello), few.messages.countTokens(counted)]) {
    expect(await errorOf(call)).toMatchObject({ status: 404, type: 'not_found_error' });
  }
});

test('a budget that is used up is 429 and not tried again', async () => {
  await tenantWithKeys('thrifty');
  const by = await server.token('thrifty');
  const made = await server.call('/usage/thrifty/budgets', { token: by, json: { period: 'day', limitTokens: 100 } });
  expect(made.status).toBe(201);
  const thrifty = new Anthropic({ apiKey: by, baseURL: `${server.baseUrl}/anthropic/thrifty`, maxRetries: 2 });
  const error = await errorOf(thrifty.messages.create({ ...hello, max_tokens: 200 }));
  expect(error).toMatchObject({ status: 429, type: 'rate_limit_error' });
  expect(error.headers?.get('x-should-retry')).toBe('false');
  expect(vendor.requests).toEqual([]);
});

test('without a key, or with that of another tenant, errors have the shape that clients read', async () => {
  await server.createTenant('keyless');
  const keyless = { apiKey: await server.token('keyless'), maxRetries: 0 };
  const at = (tenant: string) => new Anthropic({ ...keyless, baseURL: `${server.baseUrl}/anthropic/${tenant}` });
  expect(await errorOf(at('keyless').messages.create(hello))).toMatchObject({ status: 404, type: 'not_found_error' });
  expect((await at('keyless').models.list()).data).toEqual([]);
  expect(await errorOf(at('acme').messages.create(hello))).toMatchObject({ status: 403, type: 'permission_error' });
  const nobody = new Anthropic({ apiKey: 'sk-ant-x', baseURL, maxRetries: 0 });
  expect(await errorOf(nobody.messages.create(hello))).toMatchObject({ status: 401, type: 'authentication_error' });
});
