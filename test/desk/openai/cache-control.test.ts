import type OpenAI from 'openai';
import { beforeEach, describe, expect, test } from 'vitest';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { errorOf } from './errors.ts';
import { startOpenai } from './openai-server.ts';

const tenant = 'acme';
const model = 'anthropic/claude-sonnet-4-5';
const user = { role: 'user', content: 'Hello' };

const openai = closeAfterAll(await startOpenai());
await openai.tenantWithKeys(tenant);
const client = await openai.clientOf(tenant);

beforeEach(() => {
  openai.vendor.behave({ kind: 'answer' });
  openai.vendor.requests.length = 0;
});

function ask(body: Record<string, unknown>): Promise<OpenAI.ChatCompletion> {
  return client.chat.completions.create({ model, ...body } as never);
}

const cached = (ttl?: string) => ({ cache_control: { type: 'ephemeral', ...(ttl !== undefined && { ttl }) } });
const text = (content: string, more: object = {}) => ({ type: 'text', text: content, ...more });
const data = 'iVBORw0KGgo=';
const image = (more: object = {}) => ({
  type: 'image_url',
  image_url: { url: `data:image/png;base64,${data}` },
  ...more,
});
const tool = (name: string, more: object = {}, inner: object = {}) => ({
  type: 'function',
  function: { name, parameters: { type: 'object', properties: {} }, ...inner },
  ...more,
});
const call = (id: string, more: object = {}) => ({
  id,
  type: 'function',
  function: { name: 'pay', arguments: '{}' },
  ...more,
});

/** The places in a body that have a cache control, each with the object. */
function placesIn(value: unknown, path = ''): [string, object][] {
  if (typeof value !== 'object' || value === null) return [];
  const own: [string, object][] =
    'cache_control' in value ? [[path, Reflect.get(value, 'cache_control') as object]] : [];
  return [...own, ...Object.entries(value).flatMap(([name, inner]) => placesIn(inner, `${path}.${name}`))];
}

const sent = () => placesIn(openai.vendor.requests.at(-1)?.body);

describe('what a request has cached reaches the vendor', () => {
  test.each<[string, Record<string, unknown>, string]>([
    ['a tool', { messages: [user], tools: [tool('pay'), tool('see', cached('1h'))] }, '.tools.1'],
    ['a tool, in its function', { messages: [user], tools: [tool('pay', {}, cached('1h'))] }, '.tools.0'],
    [
      'a part of the system',
      { messages: [{ role: 'system', content: [text('a', cached('1h')), text('b')] }, user] },
      '.system.0',
    ],
    ['a message of the system', { messages: [{ role: 'system', content: 'a', ...cached('1h') }, user] }, '.system.0'],
    [
      'a part of the developer',
      { messages: [{ role: 'developer', content: [text('a'), text('b', cached('1h'))] }, user] },
      '.system.1',
    ],
    [
      'a part of the user',
      { messages: [{ role: 'user', content: [text('a', cached('1h')), text('b')] }] },
      '.messages.0.content.0',
    ],
    ['a message of the user', { messages: [{ ...user, ...cached('1h') }] }, '.messages.0.content.0'],
    ['an image', { messages: [{ role: 'user', content: [image(cached('1h')), text('b')] }] }, '.messages.0.content.0'],
    [
      'a part of the assistant',
      { messages: [user, { role: 'assistant', content: [text('a', cached('1h')), text('b')] }, user] },
      '.messages.1.content.0',
    ],
    [
      'a message of the assistant',
      { messages: [user, { role: 'assistant', content: 'a', ...cached('1h') }, user] },
      '.messages.1.content.0',
    ],
    [
      'a tool call',
      {
        messages: [
          user,
          { role: 'assistant', content: 'a', tool_calls: [call('c1', cached('1h'))] },
          { role: 'tool', tool_call_id: 'c1', content: 'x' },
        ],
      },
      '.messages.1.content.1',
    ],
    [
      'a message of the assistant with calls',
      {
        messages: [
          user,
          { role: 'assistant', content: null, tool_calls: [call('c1'), call('c2')], ...cached('1h') },
          { role: 'tool', tool_call_id: 'c1', content: 'x' },
          { role: 'tool', tool_call_id: 'c2', content: 'x' },
        ],
      },
      '.messages.1.content.1',
    ],
    [
      'a tool result',
      {
        messages: [
          user,
          { role: 'assistant', content: null, tool_calls: [call('c1')] },
          { role: 'tool', tool_call_id: 'c1', content: 'x', ...cached('1h') },
        ],
      },
      '.messages.2.content.0',
    ],
    [
      'a part of a tool result',
      {
        messages: [
          user,
          { role: 'assistant', content: null, tool_calls: [call('c1')] },
          { role: 'tool', tool_call_id: 'c1', content: [text('x'), text('y', cached('1h'))] },
        ],
      },
      '.messages.2.content.0',
    ],
    ['the whole request', { messages: [user], ...cached('1h') }, ''],
  ])('%s', async (_what, body, place) => {
    await ask(body);
    expect(sent()).toEqual([[place, { type: 'ephemeral', ttl: '1h' }]]);
  });

  test('without a lifetime, and with the other one', async () => {
    await ask({ messages: [{ role: 'user', content: [text('a', cached()), text('b', cached('5m')), text('c')] }] });
    expect(sent().map(([, control]) => control)).toEqual([{ type: 'ephemeral' }, { type: 'ephemeral', ttl: '5m' }]);
  });

  test('four times at most', async () => {
    const parts = (count: number) => Array.from({ length: count }, () => text('a', cached()));
    await ask({ messages: [{ role: 'user', content: parts(4) }] });
    expect(sent()).toHaveLength(4);
    openai.vendor.requests.length = 0;
    const messages = [{ role: 'user', content: parts(3) }];
    await ask({ messages, tools: [tool('pay', cached())] });
    const param = 'messages.0.content.3.cache_control';
    const beyond = ask({ messages: [{ role: 'user', content: parts(4) }], tools: [tool('pay', cached())] });
    expect(await errorOf(beyond)).toMatchObject({ status: 400, param });
    expect(openai.vendor.requests).toHaveLength(1);
  });
});

test.each<[string, Record<string, unknown>]>([
  ['messages.0.content.0.cache_control', { messages: [{ role: 'user', content: [text('', cached()), text('a')] }] }],
  ['messages.1.cache_control', { messages: [user, { role: 'assistant', content: '', ...cached() }, user] }],
  ['messages.0.cache_control', { messages: [{ role: 'user', content: [text('a', cached())], ...cached() }] }],
  ['messages.0.cache_control', { messages: [{ ...user, cache_control: 'yes' }] }],
  ['messages.0.cache_control.type', { messages: [{ ...user, cache_control: { type: 'persistent' } }] }],
  ['messages.0.cache_control.type', { messages: [{ ...user, cache_control: {} }] }],
  ['messages.0.cache_control.ttl', { messages: [{ ...user, ...cached('2h') }] }],
  ['messages.0.cache_control.scope', { messages: [{ ...user, cache_control: { type: 'ephemeral', scope: 'all' } }] }],
])('400 names %s, where nothing can be cached as the client says', async (param, body) => {
  expect(await errorOf(ask(body))).toMatchObject({ status: 400, param });
  expect(openai.vendor.requests).toEqual([]);
});

test('a vendor that is not told what to cache is not called, except with null', async () => {
  const body = (control: unknown) => ({ model: 'google/some-model', messages: [{ ...user, cache_control: control }] });
  expect(await errorOf(ask(body({ type: 'ephemeral' })))).toMatchObject({
    status: 400,
    param: 'messages.0.cache_control',
  });
  expect(openai.vendor.requests).toEqual([]);
  await ask(body(null));
  expect(openai.vendor.requests).toHaveLength(1);
});

test('what was read from and written to the cache comes back, is recorded, and costs its own prices', async () => {
  const usage = {
    input_tokens: 10,
    cache_read_input_tokens: 100,
    cache_creation_input_tokens: 1_000,
    cache_creation: { ephemeral_5m_input_tokens: 400, ephemeral_1h_input_tokens: 600 },
    output_tokens: 5,
  };
  const content = [{ type: 'text', text: 'Hm' }];
  openai.vendor.behave({ kind: 'status', status: 200, body: { content, stop_reason: 'end_turn', usage } });
  const messages = [{ ...user, ...cached('1h') }];
  const figures = {
    prompt_tokens: 1_110,
    completion_tokens: 5,
    total_tokens: 1_115,
    prompt_tokens_details: { cached_tokens: 100, cache_write_tokens: 1_000 },
  };
  expect((await ask({ messages })).usage).toEqual(figures);
  const event = (body: object) => `data: ${JSON.stringify(body)}\n\n`;
  openai.vendor.behave({
    kind: 'events',
    events: [
      event({ type: 'message_start', message: { usage: { ...usage, output_tokens: 1 } } }),
      event({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
      event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hm' } }),
      event({ type: 'content_block_stop', index: 0 }),
      event({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 5 } }),
      event({ type: 'message_stop' }),
    ],
  });
  const stream = client.chat.completions.stream({
    model,
    messages,
    stream_options: { include_usage: true },
  } as never);
  expect((await stream.finalChatCompletion()).usage).toEqual(figures);
  const token = await openai.server.token(tenant);
  const path = `/usage/${tenant}/calls?sort=_id:DESC`;
  const calls = (await (await openai.server.call(path, { token })).json()) as Record<string, unknown>[];
  // 10 at 3, 100 at 0.3, 400 at 3.75, 600 at 6 and 5 at 15 dollars a million.
  const costUsd = '0.005235';
  const record = {
    inputTokens: 1_110,
    cachedTokens: 100,
    cacheWriteTokens: 1_000,
    hourCacheWriteTokens: 600,
    outputTokens: 5,
    costUsd,
  };
  expect(calls.slice(0, 2)).toMatchObject([record, record]);
});

test('under a budget a request reserves at the price of an hour where it has something cached so long', async () => {
  await openai.tenantWithKeys('frugal');
  const frugal = await openai.clientOf('frugal');
  const token = await openai.server.token('frugal');
  // 2,104 tokens at most: at 3.75 dollars a million beneath the limit, and at 6 above it.
  const json = { period: 'lifetime', limitUsd: '0.012' };
  const made = await openai.server.call('/usage/frugal/budgets/all', { method: 'PUT', token, json });
  expect(made.status).toBeLessThan(300);
  const askFrugal = (control: object) =>
    frugal.chat.completions.create({
      model,
      max_tokens: 16,
      messages: [{ role: 'user', content: 'x'.repeat(1_000), ...control }],
    } as never);
  openai.vendor.behave({ kind: 'answer', usage: { input: 1, output: 1 } });
  await askFrugal(cached('5m'));
  expect(await errorOf(askFrugal(cached('1h')))).toMatchObject({ status: 429, code: 'insufficient_quota' });
});
