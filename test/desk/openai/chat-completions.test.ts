import { randomUUID } from 'node:crypto';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import OpenAI from 'openai';
import { beforeEach, describe, expect, test } from 'vitest';
import { createKey } from '../../../src/access/keys/key-store.ts';
import { openaiLimits } from '../../../src/desk/openai/limits.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { eventually } from '../../support/server/patience.ts';
import { errorOf } from './errors.ts';
import { providers, startOpenai } from './openai-server.ts';

const tenant = 'acme';
const user = { role: 'user', content: 'Hello' } as const;

const openai = closeAfterAll(await startOpenai());
await openai.tenantWithKeys(tenant);
const client = await openai.clientOf(tenant);

beforeEach(() => {
  openai.vendor.behave({ kind: 'answer', text: 'one two three', usage: { input: 7, output: 3 } });
  openai.vendor.requests.length = 0;
  openai.vendor.abandoned.length = 0;
});

/** Whether its requests and answers are passed through. */
function isPassed(provider: string): boolean {
  return provider === 'openai' || provider === 'self_hosted';
}

const translated = providers.filter((provider) => !isPassed(provider));

/** The body of the last request that a vendor got. */
function sent(): Record<string, unknown> {
  return { ...openai.vendor.requests.at(-1)?.body };
}

test.each(providers)(
  'a model of %s answers plain and streamed, each with the tenant\u2019s own key',
  async (provider) => {
    const model = `${provider}/some-model`;
    const plain = await client.chat.completions.create({ model, messages: [user] });
    const message = { role: 'assistant', content: 'one two three', refusal: null };
    const usage = { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 };
    expect(plain).toMatchObject({
      object: 'chat.completion',
      model: isPassed(provider) ? 'm' : model,
      choices: [{ index: 0, message, finish_reason: 'stop', logprobs: null }],
      usage,
    });
    expect(plain.id).toMatch(/^chatcmpl-/);
    const stream = client.chat.completions.stream({ model, messages: [user], stream_options: { include_usage: true } });
    const parts: string[] = [];
    for await (const chunk of stream) parts.push(chunk.choices[0]?.delta.content ?? '');
    expect(parts.filter((part) => part !== '')).toEqual(['one ', 'two ', 'three']);
    expect(await stream.finalChatCompletion()).toMatchObject({
      choices: [{ message: { content: 'one two three' }, finish_reason: 'stop' }],
      usage,
    });
    const keys = { openai: 'sk-openai', anthropic: 'sk-anthropic', google: 'sk-google', self_hosted: 'sk-server' };
    for (const { headers, model: requested } of openai.vendor.requests) {
      expect(requested).toBe('some-model');
      const credential = headers.authorization ?? headers['x-api-key'] ?? headers['x-goog-api-key'];
      expect(String(credential)).toContain(keys[provider]);
    }
  },
);

test.each(['openai', 'self_hosted'] as const)('what a client sets reaches the vendor: %s', async (provider) => {
  await client.chat.completions.create({
    model: `${provider}/gpt-4.1`,
    messages: [
      { role: 'developer', content: 'Be short.' },
      { role: 'user', content: [{ type: 'text', text: 'Hello' }] },
    ],
    temperature: 0.5,
    top_p: 0.9,
    stop: ['\n', 'END'],
    max_completion_tokens: 77,
    response_format: { type: 'json_schema', json_schema: { name: 'shop', schema: { type: 'object' }, strict: true } },
  });
  expect(sent()).toMatchObject({
    model: 'gpt-4.1',
    messages: [
      { role: 'developer', content: 'Be short.' },
      { role: 'user', content: [{ type: 'text', text: 'Hello' }] },
    ],
    temperature: 0.5,
    top_p: 0.9,
    stop: ['\n', 'END'],
    response_format: { type: 'json_schema', json_schema: { name: 'shop', strict: true } },
  });
  expect(openai.vendor.requests.at(-1)?.cap).toBe(77);
});

test('without a cap the model has its own on an own key, and on the shared token that of the service', async () => {
  await client.chat.completions.create({ model: 'gpt-4.1', messages: [user] });
  expect(openai.vendor.requests.at(-1)?.cap).toBeUndefined();
  await openai.server.createTenant('sharing');
  const sharing = await openai.clientOf('sharing');
  await sharing.chat.completions.create({ model: 'gpt-4.1-mini', messages: [user] });
  expect(openai.vendor.requests.at(-1)).toMatchObject({ cap: 4_096, headers: { authorization: 'Bearer sk-shared' } });
  expect(await errorOf(sharing.chat.completions.create({ model: 'gpt-4.1', messages: [user] }))).toMatchObject({
    status: 404,
    code: 'model_not_found',
    param: 'model',
  });
});

test('models are those of the tenant\u2019s keys, and the one of the shared token', async () => {
  const ids: string[] = [];
  for await (const model of client.models.list()) ids.push(model.id);
  expect(ids).toEqual(expect.arrayContaining(['openai/gpt-5.4-mini', 'anthropic/claude-sonnet-5-5']));
  expect(await client.models.retrieve('google/gemini-x')).toMatchObject({ id: 'google/gemini-x', object: 'model' });
  await openai.server.createTenant('modest');
  const modest = await openai.clientOf('modest');
  expect((await modest.models.list()).data).toEqual([
    { id: 'openai/gpt-4.1-mini', object: 'model', created: 0, owned_by: 'openai' },
  ]);
  expect(await errorOf(modest.models.retrieve('anthropic/claude-sonnet-5-5'))).toMatchObject({ status: 404 });
});

const png =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

test.each(providers)('an image in a data: URL reaches a model of %s, and no other image is taken', async (provider) => {
  const ask = (url: string) =>
    client.chat.completions.create({
      model: `${provider}/some-model`,
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'What is it?' },
            { type: 'image_url', image_url: { url } },
          ],
        },
      ],
    });
  await ask(png);
  expect(JSON.stringify(sent())).toContain(png.slice('data:image/png;base64,'.length));
  const malformed = isPassed(provider) ? [] : ['data:image/png;base64,QU*D'];
  for (const url of ['https://example.com/a.png', 'data:text/plain;base64,QUJD', ...malformed]) {
    expect(await errorOf(ask(url))).toMatchObject({ status: 400, param: 'messages.0.content.1.image_url.url' });
  }
});

const tools = [
  {
    type: 'function',
    function: { name: 'weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } },
  },
] as const;

const chunk = (delta: object, finish: string | null = null) =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
const named = (data: { type: string; [member: string]: unknown }) =>
  `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;

/** A tool call with signed reasoning before it, as each vendor streams it, the input in pieces where it does so. */
const callInPieces: Record<'openai' | 'anthropic' | 'google', string[]> = {
  openai: [
    chunk({
      role: 'assistant',
      tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name: 'weather', arguments: '' } }],
    }),
    chunk({ tool_calls: [{ index: 0, function: { arguments: '{"ci' } }] }),
    chunk({ tool_calls: [{ index: 0, function: { arguments: 'ty":"Łódź"}' } }] }),
    chunk({}, 'tool_calls'),
    `data: ${JSON.stringify({ choices: [], usage: { prompt_tokens: 9, completion_tokens: 8 } })}\n\n`,
    'data: [DONE]\n\n',
  ],
  anthropic: [
    named({ type: 'message_start', message: { usage: { input_tokens: 9, output_tokens: 1 } } }),
    named({ type: 'content_block_start', index: 0, content_block: { type: 'thinking', thinking: '', signature: '' } }),
    named({ type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking: 'The city ' } }),
    named({ type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking: 'is far.' } }),
    named({ type: 'content_block_delta', index: 0, delta: { type: 'signature_delta', signature: 'signed-by-vendor' } }),
    named({ type: 'content_block_stop', index: 0 }),
    named({
      type: 'content_block_start',
      index: 1,
      content_block: { type: 'tool_use', id: 'call_1', name: 'weather', input: {} },
    }),
    named({ type: 'content_block_delta', index: 1, delta: { type: 'input_json_delta', partial_json: '{"ci' } }),
    named({ type: 'content_block_delta', index: 1, delta: { type: 'input_json_delta', partial_json: 'ty":"Łódź"}' } }),
    named({ type: 'content_block_stop', index: 1 }),
    named({ type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 8 } }),
    named({ type: 'message_stop' }),
  ],
  google: [
    `data: ${JSON.stringify({
      candidates: [
        {
          content: {
            parts: [
              {
                functionCall: { id: 'call_1', name: 'weather', args: { city: 'Łódź' } },
                thoughtSignature: 'signed-by-vendor',
              },
            ],
          },
          finishReason: 'STOP',
        },
      ],
      usageMetadata: { promptTokenCount: 9, candidatesTokenCount: 8, totalTokenCount: 17 },
    })}\n\n`,
  ],
};

/** The same in one piece. */
const wholeCall: Record<'openai' | 'anthropic' | 'google', unknown> = {
  openai: {
    choices: [
      {
        message: {
          role: 'assistant',
          tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'weather', arguments: '{"city":"Łódź"}' } }],
        },
        finish_reason: 'tool_calls',
      },
    ],
    usage: { prompt_tokens: 9, completion_tokens: 8 },
  },
  anthropic: {
    content: [
      { type: 'thinking', thinking: 'The city is far.', signature: 'signed-by-vendor' },
      { type: 'tool_use', id: 'call_1', name: 'weather', input: { city: 'Łódź' } },
    ],
    stop_reason: 'tool_use',
    usage: { input_tokens: 9, output_tokens: 8 },
  },
  google: {
    candidates: [
      {
        content: {
          parts: [
            {
              functionCall: { id: 'call_1', name: 'weather', args: { city: 'Łódź' } },
              thoughtSignature: 'signed-by-vendor',
            },
          ],
        },
        finishReason: 'STOP',
      },
    ],
    usageMetadata: { promptTokenCount: 9, candidatesTokenCount: 8, totalTokenCount: 17 },
  },
};

/** What each vendor has to get back of the first turn. */
const calledBack = {
  openai: { role: 'assistant', tool_calls: [{ id: 'call_1', function: { name: 'weather' } }] },
  anthropic: {
    role: 'assistant',
    content: [
      { type: 'thinking', thinking: 'The city is far.', signature: 'signed-by-vendor' },
      { type: 'tool_use', id: 'call_1', name: 'weather', input: { city: 'Łódź' } },
    ],
  },
  google: {
    role: 'model',
    parts: [{ functionCall: { name: 'weather', args: { city: 'Łódź' } }, thoughtSignature: 'signed-by-vendor' }],
  },
} as const;

test.each(['openai', 'anthropic', 'google'] as const)(
  'two turns of tools with reasoning, plain and streamed: %s gets its signature back unchanged, and the client never sees it',
  async (provider) => {
    const model = `${provider}/some-model`;
    for (const streamed of [false, true]) {
      openai.vendor.behave(
        streamed
          ? { kind: 'events', events: callInPieces[provider] }
          : { kind: 'status', status: 200, body: wholeCall[provider] },
      );
      const request = { model, messages: [user], tools: [...tools] };
      const first = streamed
        ? await client.chat.completions.stream(request).finalChatCompletion()
        : await client.chat.completions.create(request);
      const [choice] = first.choices;
      expect(choice?.finish_reason).toBe('tool_calls');
      const [call] = choice?.message.tool_calls ?? [];
      if (call?.type !== 'function' || choice === undefined) throw new Error('no call');
      expect(call.function).toMatchObject({ name: 'weather', arguments: '{"city":"Łódź"}' });
      expect(JSON.stringify(first)).not.toContain('signed-by-vendor');

      openai.vendor.behave({ kind: 'answer', text: 'Rain.' });
      const second = await client.chat.completions.create({
        ...request,
        messages: [user, choice.message, { role: 'tool', tool_call_id: call.id, content: 'wet' }],
      });
      expect(second.choices[0]?.message.content).toBe('Rain.');
      const { messages = [], contents = [] } = openai.vendor.requests.at(-1)?.body ?? {};
      expect([...messages, ...contents][1]).toMatchObject(calledBack[provider]);
    }
  },
);

test('a sealed id is of its tenant alone, another vendor gets no signature, and a forged one is refused', async () => {
  openai.vendor.behave({ kind: 'status', status: 200, body: wholeCall.anthropic });
  const request = { model: 'anthropic/some-model', messages: [user], tools: [...tools] };
  const message = (await client.chat.completions.create(request)).choices[0]?.message;
  const [call] = message?.tool_calls ?? [];
  if (message === undefined || call === undefined) throw new Error('no call');
  const continueWith = (id: string, model: string, by = client) =>
    by.chat.completions.create({
      ...request,
      model,
      messages: [
        user,
        { ...message, tool_calls: [{ ...call, id } as never] },
        { role: 'tool', tool_call_id: id, content: 'wet' },
      ],
    });
  openai.vendor.behave({ kind: 'answer' });
  await continueWith(call.id, 'openai/some-model');
  expect(JSON.stringify(sent())).toContain('call_1');
  expect(JSON.stringify(sent())).not.toContain('signed-by-vendor');
  const param = 'messages.1.tool_calls.0.id';
  for (const forged of [`${call.id}A`, call.id.replace(/.$/, (last) => (last === 'A' ? 'Q' : 'A')), 'call_sealed_x']) {
    expect(await errorOf(continueWith(forged, request.model))).toMatchObject({ status: 400, param });
  }
  await openai.tenantWithKeys('rival');
  const rival = await openai.clientOf('rival');
  expect(await errorOf(continueWith(call.id, request.model, rival))).toMatchObject({ status: 400, param });
});

test('a body of 6 MiB with an image is taken, and one beyond the limit is not', async () => {
  const image = (bytes: number) => ({
    model: 'openai/gpt-4.1',
    messages: [
      {
        role: 'user' as const,
        content: [
          {
            type: 'image_url' as const,
            image_url: { url: `data:image/png;base64,${'A'.repeat(bytes)}`, detail: 'low' as const },
          },
        ],
      },
    ],
  });
  expect((await client.chat.completions.create(image(6 * 1024 * 1024))).choices).toHaveLength(1);
  expect(JSON.stringify(sent()).length).toBeGreaterThan(6 * 1024 * 1024);
  expect(await errorOf(client.chat.completions.create(image(openaiLimits.bodyBytes)))).toMatchObject({ status: 413 });
  const request = { ...image(400), model: 'anthropic/some-model' };
  expect(await errorOf(client.chat.completions.create(request))).toMatchObject({
    status: 400,
    param: 'messages.0.content.0.image_url.detail',
  });
});

test('the client of the Vercel AI SDK streams text and calls tools', async () => {
  const provider = createOpenAICompatible({
    name: 'annals',
    baseURL: `${openai.server.baseUrl}/openai/${tenant}/v1`,
    apiKey: await openai.server.token(tenant),
    includeUsage: true,
  });
  openai.vendor.behave({ kind: 'events', events: callInPieces.anthropic });
  const { stream } = await provider('anthropic/some-model').doStream({
    prompt: [{ role: 'user', content: [{ type: 'text', text: 'Hello' }] }],
    tools: [{ type: 'function', name: 'weather', inputSchema: { type: 'object', properties: {} } }],
  });
  const parts = await Array.fromAsync(stream);
  expect(parts.find(({ type }) => type === 'tool-call')).toMatchObject({ input: '{"city":"Łódź"}' });
  expect(parts.at(-1)).toMatchObject({ type: 'finish', finishReason: { unified: 'tool-calls' } });
});

test.each([
  ['n', { n: 2 }],
  ['logprobs', { logprobs: true }],
  ['audio', { audio: { voice: 'alloy', format: 'wav' } }],
  ['made_up', { made_up: 1 }],
  ['messages.0.name', { messages: [{ ...user, name: 7 }] }],
  ['messages.0.reasoning_content', { messages: [{ role: 'assistant', content: 'x', reasoning_content: [] }] }],
  ['messages.0.reasoning_content', { messages: [{ ...user, reasoning_content: 'x' }] }],
  ['messages.0.role', { messages: [{ role: 'function', content: 'x' }] }],
  ['messages', { messages: [] }],
  ['messages.0.content', { messages: [{ role: 'user' }] }],
  ['messages.0.tool_call_id', { messages: [{ role: 'tool', tool_call_id: 'x', content: '' }] }],
  ['tools.0.type', { tools: [{ type: 'custom', custom: { name: 'x' } }] }],
  ['tools.0.function.name', { tools: [{ type: 'function', function: { name: 'a b' } }] }],
  ['tool_choice', { tool_choice: 'required' }],
  ['tool_choice.function.name', { tools, tool_choice: { type: 'function', function: { name: 'other' } } }],
  ['response_format.json_schema', { response_format: { type: 'json_schema' } }],
  ['temperature', { temperature: '1' }],
  ['stop', { stop: [1] }],
  ['max_tokens', { max_tokens: 0 }],
  ['user', { user: 'x'.repeat(201) }],
  ['user', { user: 'jane\0' }],
  ['model', { model: `self_hosted/${'x'.repeat(189)}` }],
  ['model', { model: 'self_hosted/x\0' }],
  ['stream_options', { stream_options: { include_usage: true } }],
  ['reasoning_effort', { reasoning_effort: 'huge' }],
  ['model', { model: 7 }],
])('400 names %s, and nothing is sent', async (param, members) => {
  const body = { model: 'anthropic/claude-sonnet-4-5', messages: [user], ...members };
  const error = await errorOf(client.chat.completions.create(body as never));
  expect(error).toMatchObject({ status: 400, param, type: 'invalid_request_error' });
  expect(error.message).toContain(param);
  expect(openai.vendor.requests).toEqual([]);
});

test.each(translated)(
  'what agents of clients send back is taken, and never reaches the vendor: %s',
  async (provider) => {
    const call = { id: 'call_1', type: 'function', function: { name: 'weather', arguments: '{"city":"Oslo"}' } };
    const body = {
      model: `${provider}/some-model`,
      messages: [
        { role: 'system', content: 'Be short.', name: 'member-name' },
        { ...user, name: 'member-name' },
        { role: 'assistant', content: null, name: 'member-name', reasoning_content: 'member-text', tool_calls: [call] },
        { role: 'tool', tool_call_id: 'call_1', name: 'member-name', content: 'wet' },
      ],
      tools: [{ type: 'function', function: { ...tools[0]?.function, strict: true } }],
    };
    const { choices } = await client.chat.completions.create(body as never);
    expect(choices[0]?.message.content).toBe('one two three');
    expect(JSON.stringify(sent())).not.toMatch(/member-name|member-text/);
  },
);

test.each([
  ['anthropic/some-model', true, 'strict'],
  ['anthropic/some-model', false, null],
  ['anthropic/claude-sonnet-4-5', true, null],
  ['openai/some-model', true, null],
])('a model that lacks strict is called without it, and the answer says so: %s, %j', async (model, strict, header) => {
  const described = { ...tools[0]?.function, strict };
  const strictTools = ['weather', 'climate'].map((name) => ({
    type: 'function' as const,
    function: { ...described, name },
  }));
  const headers = { 'Idempotency-Key': randomUUID() };
  for (const [body, options] of [
    [{}, {}],
    [{ stream: true }, {}],
    // The second is the stored answer.
    [{}, { headers }],
    [{}, { headers }],
  ] as const) {
    const pending = client.chat.completions.create({ model, messages: [user], tools: strictTools, ...body }, options);
    const answer = await pending.asResponse();
    await answer.text();
    expect(answer.headers.get('annals-left-out')).toBe(header);
    if (strict) expect(JSON.stringify(sent()).includes('"strict":true')).toBe(header === null);
  }
});

test.each([
  ['anthropic/claude-sonnet-4-5', { response_format: { type: 'json_object' } }, 'response_format'],
  ['anthropic/claude-sonnet-4-5', { temperature: 1.5 }, 'temperature'],
  ['google/gemini-2.5-flash', { tools, parallel_tool_calls: false }, 'parallel_tool_calls'],
  ['anthropic/claude-sonnet-4-5', { max_completion_tokens: 999_999 }, 'max_completion_tokens'],
  ['anthropic/claude-opus-5-5', { reasoning_effort: 'none' }, 'reasoning_effort'],
  ['google/gemini-2.5-pro', { reasoning_effort: 'none' }, 'reasoning_effort'],
])('%s: what a model cannot do is 400 and never dropped: %j', async (model, members, param) => {
  const error = await errorOf(client.chat.completions.create({ model, messages: [user], ...members } as never));
  expect(error).toMatchObject({ status: 400, param });
  expect(openai.vendor.requests).toEqual([]);
});

test('usage has the figures that the vendor reported, and no zeros in place of others', async () => {
  const ask = async (usage: object | undefined) => {
    const body = { content: [{ type: 'text', text: 'hi' }], stop_reason: 'end_turn', usage };
    openai.vendor.behave({ kind: 'status', status: 200, body });
    return (await client.chat.completions.create({ model: 'anthropic/some-model', messages: [user] })).usage;
  };
  const whole = { input_tokens: 9, output_tokens: 2 };
  const shown = { prompt_tokens: 9, completion_tokens: 2, total_tokens: 11 };
  expect(await ask(undefined)).toBeUndefined();
  expect(await ask({ input_tokens: 9 })).toBeUndefined();
  expect(await ask(whole)).toEqual(shown);
  const details = { prompt_tokens_details: { cached_tokens: 0 } };
  expect(await ask({ ...whole, cache_read_input_tokens: 0 })).toEqual({ ...shown, ...details });
});

test('every fault has the shape of OpenAI, without a token, of another tenant, at an unknown path', async () => {
  const at = async (path: string, init: object) => {
    const response = await openai.server.call(path, init as never);
    return { status: response.status, body: await response.json() };
  };
  const token = await openai.server.token(tenant);
  const otherToken = await openai.server.token(tenant, { scope: 'usage.usage_read' });
  const post = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{' };
  const address = `/openai/${tenant}/v1/chat/completions`;
  const error = expect.objectContaining({ message: expect.any(String), type: expect.any(String) });
  expect(await at(address, post)).toEqual({ status: 401, body: { error } });
  expect(await at(address, { ...post, token: otherToken })).toEqual({ status: 403, body: { error } });
  expect(await at('/openai/rival/v1/models', { token })).toEqual({ status: 403, body: { error } });
  expect(await at(address, { ...post, token })).toEqual({ status: 400, body: { error } });
  expect(await at(`/openai/${tenant}/v1/completions`, { ...post, token, body: '{}' })).toEqual({
    status: 404,
    body: { error },
  });
  const long = JSON.stringify({ model: 'gpt-4.1', messages: [{ role: 'user', content: 'x'.repeat(4 * 1024 * 1024) }] });
  expect(await at(address, { ...post, token, body: long })).toEqual({ status: 413, body: { error } });
});

test('a user and a model of 200 characters are taken and recorded', async () => {
  const model = `self_hosted/${'x'.repeat(188)}`;
  await client.chat.completions.create({ model, messages: [user], user: 'y'.repeat(200) });
  const token = await openai.server.token(tenant);
  const calls = await openai.server.call(`/usage/${tenant}/calls?q=model:xxx*`, { token });
  expect(await calls.json()).toMatchObject([{ model: 'x'.repeat(188), user: 'y'.repeat(200) }]);
});

test('the SDK retries a 429 of the vendor, and never a call that may have been charged', async () => {
  const retrying = await openai.clientOf(tenant, 2);
  const ask = () => retrying.chat.completions.create({ model: 'openai/gpt-4.1', messages: [user] });
  openai.vendor.behave({ kind: 'status', status: 429, headers: { 'retry-after': '0' } });
  expect(await errorOf(ask())).toMatchObject({ status: 429, type: 'some_error' });
  expect(openai.vendor.requests).toHaveLength(3);
  openai.vendor.requests.length = 0;
  openai.vendor.behave({ kind: 'cut' });
  expect(await errorOf(ask())).toMatchObject({ status: 502, type: 'server_error' });
  expect(openai.vendor.requests).toHaveLength(1);
});

test('a quota that is used up is 429 insufficient_quota, and not retried', async () => {
  await openai.server.createTenant('poor');
  await openai.server.database.pool.query("insert into completion_quota (tenant, input_used) values ('poor', 3000000)");
  const poor = await openai.clientOf('poor', 2);
  const error = await errorOf(poor.chat.completions.create({ model: 'gpt-4.1-mini', messages: [user] }));
  expect(error).toMatchObject({ status: 429, code: 'insufficient_quota', type: 'insufficient_quota' });
  expect(error.headers?.get('x-should-retry')).toBe('false');
});

test("a vendor's account without credit is 429 insufficient_quota too, and not retried", async () => {
  const retrying = await openai.clientOf(tenant, 2);
  openai.vendor.requests.length = 0;
  const headers = { 'retry-after': '0' };
  openai.vendor.behave({ kind: 'status', status: 429, headers, body: { error: { code: 'insufficient_quota' } } });
  const asking = retrying.chat.completions.create({ model: 'openai/gpt-4.1', messages: [user] });
  const error = await errorOf(asking);
  expect(error).toMatchObject({ status: 429, code: 'insufficient_quota', type: 'insufficient_quota' });
  expect(error.headers?.get('x-should-retry')).toBe('false');
  expect(openai.vendor.requests).toHaveLength(1);
});

test('thinking with a budget and the answer keep to the cap together', async () => {
  const ask = (model: string, cap: number | undefined, effort: 'low' | 'high') =>
    client.chat.completions.create({
      model: `anthropic/${model}`,
      messages: [user],
      reasoning_effort: effort,
      ...(cap !== undefined && { max_completion_tokens: cap }),
    });
  openai.vendor.behave({ kind: 'answer', text: 'Hm.' });
  await ask('claude-haiku-4-5', 8_000, 'high');
  expect(sent()).toMatchObject({ max_tokens: 8_000, thinking: { type: 'enabled', budget_tokens: 6_400 } });
  await ask('claude-haiku-4-5', 64_000, 'low');
  expect(sent()).toMatchObject({ max_tokens: 64_000, thinking: { type: 'enabled', budget_tokens: 6_400 } });
  await ask('claude-haiku-4-5', 1_025, 'low');
  expect(sent()).toMatchObject({ max_tokens: 1_025, thinking: { type: 'enabled', budget_tokens: 1_024 } });
  expect(await errorOf(ask('claude-haiku-4-5', 1_024, 'low'))).toMatchObject({
    status: 400,
    param: 'reasoning_effort',
  });
  // One that thinks as much as it likes has no budget.
  await ask('claude-opus-5-5', 1_024, 'low');
  expect(sent()).toMatchObject({ max_tokens: 1_024, thinking: { type: 'adaptive' } });
});

test('a stream that fails after text is an error for its client, without [DONE] and with a cut connection', async () => {
  openai.vendor.behave({ kind: 'events', events: [chunk({ content: 'one ' })], last: 'cut' });
  const texts: string[] = [];
  const read = async () => {
    const stream = await client.chat.completions.create({ model: 'openai/gpt-4.1', messages: [user], stream: true });
    for await (const part of stream) texts.push(part.choices[0]?.delta.content ?? '');
  };
  expect(await errorOf(read())).toMatchObject({ type: 'server_error' });
  expect(texts.join('')).toBe('one ');
  const response = await openai.server.call(`/openai/${tenant}/v1/chat/completions`, {
    token: await openai.server.token(tenant),
    json: { model: 'openai/gpt-4.1', messages: [user], stream: true },
  });
  let text = '';
  const decoder = new TextDecoder();
  const drained = async () => {
    for await (const bytes of response.body ?? []) text += decoder.decode(bytes, { stream: true });
  };
  await expect(drained()).rejects.toThrow();
  expect(text).toContain('"error":');
  expect(text).not.toContain('[DONE]');
});

test('a client that aborts ends the call on an own key; a call is recorded with its client and user', async () => {
  openai.vendor.behave({ kind: 'events', events: [chunk({ content: 'one ' })], last: 'stall' });
  const request = { model: 'openai/abandoned', messages: [user], user: 'jane' };
  const stream = await client.chat.completions.create({ ...request, stream: true });
  for await (const _ of stream) break;
  await eventually(() => openai.vendor.abandoned.length).toBe(1);
  const token = await openai.server.token(tenant);
  const calls = async () =>
    await (await openai.server.call(`/usage/${tenant}/calls?q=model:abandoned`, { token })).json();
  await eventually(calls).toMatchObject([{ operation: 'openai', token: 'own', user: 'jane', cause: 'cancelled' }]);
});

test('a key with models calls these alone, and lists no others', async () => {
  const { db } = openai.server.database;
  const scopes = ['ai.completion_manage'];
  const listed = (await client.models.list()).data.map(({ id }) => id);
  const [first = '', second = ''] = listed.filter((id) => id.startsWith('openai/'));
  const { key, ...shown } = await createKey(db, { tenant, scopes, models: [first, 'self_hosted/llama'] });
  expect(shown.models).toEqual([first, 'self_hosted/llama']);
  const keyed = new OpenAI({ apiKey: key, baseURL: `${openai.server.baseUrl}/openai/${tenant}/v1`, maxRetries: 0 });
  expect((await keyed.models.list()).data.map(({ id }) => id)).toEqual([first]);
  for (const model of [first, first.slice('openai/'.length), 'self_hosted/llama'])
    expect((await keyed.chat.completions.create({ model, messages: [user] })).choices).toHaveLength(1);
  openai.vendor.requests.length = 0;
  for (const model of [second, second.slice('openai/'.length), `${first}x`, 'anthropic/some-model']) {
    expect((await errorOf(keyed.chat.completions.create({ model, messages: [user] }))).status, model).toBe(404);
    expect((await errorOf(keyed.responses.create({ model, input: 'x' }))).status, model).toBe(404);
    expect((await errorOf(keyed.models.retrieve(model))).status, model).toBe(404);
  }
  expect(openai.vendor.requests).toEqual([]);
  // The tenant's other callers have all of them.
  expect((await client.chat.completions.create({ model: second, messages: [user] })).choices).toHaveLength(1);
});

describe('the end user of a call', () => {
  const responseOf = (path: string, bearer: string, headers: Record<string, string>, body: object) =>
    fetch(`${openai.server.baseUrl}/openai/${tenant}/v1/${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });
  const inputs = { 'chat/completions': { messages: [user] }, responses: { input: 'x' } } as const;
  /** Node writes a byte for each character of a header. */
  const bytes = (text: string) => Buffer.from(text).toString('latin1');

  async function userOf(model: string): Promise<unknown> {
    const token = await openai.server.token(tenant);
    const response = await openai.server.call(`/usage/${tenant}/calls?q=model:"${model}"`, { token });
    const calls = (await response.json()) as { user?: string }[];
    expect(calls).toHaveLength(1);
    return calls[0]?.user ?? null;
  }

  test.each([
    ['the header', { 'annals-user': 'jane' }, {}, 'jane'],
    ['the body', {}, { user: 'jane' }, 'jane'],
    ['the header before the body', { 'annals-user': 'jane' }, { user: 'john' }, 'jane'],
    ['200 characters of UTF-8', { 'annals-user': bytes('ü'.repeat(200)) }, {}, 'ü'.repeat(200)],
    ['nobody by empty texts', { 'annals-user': '' }, { user: '' }, null],
  ])('is %s', async (_, headers, body, recorded) => {
    const token = await openai.server.token(tenant);
    for (const [path, input] of Object.entries(inputs)) {
      const model = `m-${randomUUID()}`;
      openai.vendor.behave({ kind: 'answer', usage: { input: 1, output: 1 } });
      const response = await responseOf(path, token, headers, { model: `openai/${model}`, ...input, ...body });
      expect([response.status, await response.text()]).toEqual([200, expect.any(String)]);
      expect(await userOf(model)).toBe(recorded);
    }
  });

  test.each([
    ['201 characters', 'x'.repeat(201), 'must have at most 200 characters'],
    ['no UTF-8', 'a\u00ff', 'must be UTF-8'],
  ])('is 400 with a header of %s', async (_, header, message) => {
    const token = await openai.server.token(tenant);
    const body = { model: 'openai/refused', messages: [user] };
    const response = await responseOf('chat/completions', token, { 'annals-user': header }, body);
    expect([response.status, await response.json()]).toMatchObject([
      400,
      { error: { param: 'annals-user', message: expect.stringContaining(message) } },
    ]);
  });

  test('is that of the key, where it has one: a call that names another is 403, and one that names none has it', async () => {
    const made = { tenant, scopes: ['ai.completion_manage'], user: 'jürgen' };
    const { key } = await createKey(openai.server.database.db, made);
    for (const [path, input] of Object.entries(inputs)) {
      for (const [headers, body, field] of [
        [{ 'annals-user': 'jane' }, {}, 'annals-user'],
        [{}, { user: 'jane' }, 'user'],
        [{ 'annals-user': bytes('jürgen') }, { user: 'jane' }, 'user'],
        [{ 'annals-user': 'jane' }, { user: 'jürgen' }, 'annals-user'],
      ] as const) {
        const response = await responseOf(path, key, headers as Record<string, string>, {
          model: 'openai/refused',
          ...input,
          ...body,
        });
        expect([response.status, await response.json()]).toMatchObject([
          403,
          {
            error: {
              param: field,
              code: 'insufficient_permissions',
              message: expect.stringContaining('must be left out, or be "jürgen"'),
            },
          },
        ]);
      }
      for (const [headers, body] of [
        [{}, {}],
        [{ 'annals-user': bytes('jürgen') }, { user: 'jürgen' }],
      ] as const) {
        const model = `m-${randomUUID()}`;
        openai.vendor.behave({ kind: 'answer', usage: { input: 1, output: 1 } });
        const asked = { model: `openai/${model}`, ...input, ...body };
        expect((await responseOf(path, key, headers as Record<string, string>, asked)).status).toBe(200);
        expect(await userOf(model)).toBe('jürgen');
      }
    }
  });

  test('of a key is limited by its budget, and what requests say of it is not', async () => {
    const limited = `limited${randomUUID().replaceAll('-', '')}`;
    await openai.tenantWithKeys(limited);
    const manage = await openai.server.token(limited, { scope: 'usage.budget_manage' });
    const budget = { period: 'day', limitTokens: 6_000, user: '*' };
    expect((await openai.server.call(`/usage/${limited}/budgets`, { token: manage, json: budget })).status).toBe(201);
    const made = { tenant: limited, scopes: ['ai.completion_manage'], user: 'jane' };
    const { key } = await createKey(openai.server.database.db, made);
    const token = await openai.server.token(limited);
    openai.vendor.behave({ kind: 'answer', usage: { input: 1_000, output: 4_000 } });
    const statusOf = async (bearer: string, cap: number) =>
      (
        await openai.server.call(`/openai/${limited}/v1/chat/completions`, {
          token: bearer,
          json: { model: 'openai/x', messages: [user], user: 'jane', max_tokens: cap },
        })
      ).status;
    expect(await statusOf(key, 4_000)).toBe(200);
    expect(await statusOf(key, 4_000)).toBe(429);
    expect(await statusOf(token, 4_000)).toBe(200);
    expect(await statusOf(key, 10)).toBe(429);
  });
});
