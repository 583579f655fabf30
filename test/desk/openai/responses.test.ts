import { randomUUID } from 'node:crypto';
import OpenAI from 'openai';
import { beforeEach, expect, test } from 'vitest';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { eventually } from '../../support/server/patience.ts';
import { startOpenai } from './openai-server.ts';

const tenant = 'acme';
const model = 'openai/gpt-5.4';

const openai = closeAfterAll(await startOpenai());
await openai.tenantWithKeys(tenant);
const client = await openai.clientOf(tenant);

beforeEach(() => {
  openai.vendor.behave({ kind: 'answer', text: 'one two three', usage: { input: 7, output: 3 } });
  openai.vendor.requests.length = 0;
  openai.vendor.abandoned.length = 0;
});

function sent(): Record<string, unknown> {
  return { ...openai.vendor.requests.at(-1)?.body };
}

async function statusOf(body: object): Promise<{ status: number | undefined; param: string | null | undefined }> {
  const error = await client.responses.create(body as never).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof OpenAI.APIError)) throw new Error('the call succeeded', { cause: error });
  return { status: error.status, param: error.param };
}

test('a response passes through, plain and streamed, is stored nowhere, and is recorded', async () => {
  const plain = await client.responses.create({ model, input: 'Hello', user: 'jane', metadata: { a: 'b' } });
  expect(plain).toMatchObject({ id: 'resp_1', output_text: 'one two three', usage: { input_tokens: 7 } });
  expect(openai.vendor.requests.at(-1)?.bodyText).toBe(
    '{"store":false,"model":"gpt-5.4","input":"Hello","user":"jane","metadata":{"a":"b"}}',
  );
  expect(openai.vendor.requests.at(-1)?.headers.authorization).toBe('Bearer sk-openai');
  const parts: string[] = [];
  const types: string[] = [];
  const stream = await client.responses.create({ model, input: 'Hello', stream: true, max_output_tokens: 99 });
  for await (const part of stream) {
    types.push(part.type);
    if (part.type === 'response.output_text.delta') parts.push(part.delta);
  }
  expect(parts).toEqual(['one ', 'two ', 'three']);
  expect(types.at(-1)).toBe('response.completed');
  expect(openai.vendor.requests.at(-1)?.cap).toBe(99);
  const token = await openai.server.token(tenant);
  const calls = await (await openai.server.call(`/usage/${tenant}/calls?sort=_id:ASC`, { token })).json();
  const call = {
    operation: 'openai',
    model: 'gpt-5.4',
    inputTokens: 7,
    cachedTokens: 2,
    outputTokens: 3,
    reasoningTokens: 1,
  };
  expect(calls).toMatchObject([
    { ...call, user: 'jane' },
    { ...call, firstTokenMs: expect.any(Number) },
  ]);
});

test('the time to the first token counts from a part of the answer, and not from the event before it', async () => {
  const response = { id: 'resp_2', status: 'completed', output: [], usage: { input_tokens: 1, output_tokens: 1 } };
  const delta = { type: 'response.output_text.delta', delta: 'one' };
  const begun = { type: 'response.created', response: {} };
  const completed = { type: 'response.completed', response };
  for (const events of [
    [begun, completed],
    [begun, delta, completed],
  ]) {
    openai.vendor.behave({ kind: 'events', events: events.map((event) => `data: ${JSON.stringify(event)}\n\n`) });
    const stream = await client.responses.create({ model: 'openai/silent', input: 'x', stream: true });
    for await (const _ of stream);
  }
  const token = await openai.server.token(tenant);
  const calls = await openai.server.call(`/usage/${tenant}/calls?q=model:silent&sort=_id:ASC`, { token });
  const found: unknown = await calls.json();
  expect(found).toMatchObject([{ outputTokens: 1 }, { firstTokenMs: expect.any(Number) }]);
  expect(found).not.toMatchObject([{ firstTokenMs: expect.any(Number) }, {}]);
});

test('functions and custom tools pass, hosted tools are left out and logged, and reasoning comes back as it went', async () => {
  const tools = [
    { type: 'function', name: 'weather', parameters: { type: 'object' }, strict: false },
    { type: 'namespace', name: 'shop', tools: [{ type: 'function', name: 'price', parameters: { type: 'object' } }] },
    { type: 'custom', name: 'apply_patch', format: { type: 'grammar', syntax: 'lark', definition: 'start: "x"' } },
  ];
  const input = [
    { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Hello' }] },
    { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'sealed-by-vendor' },
    { type: 'custom_tool_call', call_id: 'c1', name: 'apply_patch', input: '*** Begin' },
    { type: 'custom_tool_call_output', call_id: 'c1', output: 'done' },
  ];
  const include = ['reasoning.encrypted_content'];
  openai.vendor.behave({
    kind: 'answer',
    toolCall: { id: 'c2', name: 'weather', input: {} },
    usage: { input: 1, output: 1 },
  });
  const request = {
    model,
    input,
    include,
    tools: [...tools, { type: 'web_search' }, { type: 'namespace', name: 'web', tools: [{ type: 'web_search' }] }],
    reasoning: { effort: 'low' },
  };
  const { output } = await client.responses.create(request as never);
  expect(output[0]).toMatchObject({ type: 'function_call', call_id: 'c2' });
  expect(sent()).toMatchObject({ input, include, tools, reasoning: { effort: 'low' } });
  expect(openai.server.logLines.filter((line) => line.includes('hosted tools')).join()).toContain('web_search');
});

test.each([
  ['no tool', undefined, null],
  ['a function', [{ type: 'function', name: 'f', parameters: { type: 'object' } }], null],
  ['one hosted tool', [{ type: 'web_search' }], 'web_search'],
  [
    'several, one of them twice',
    [
      { type: 'web_search' },
      { type: 'function', name: 'f', parameters: { type: 'object' } },
      { type: 'mcp', server_label: 'shop' },
      { type: 'web_search', search_context_size: 'low' },
      { type: 'namespace', name: 'web', tools: [{ type: 'web_search' }] },
    ],
    'web_search, mcp, namespace',
  ],
])(
  'the answer names the hosted tools that were left out, plain, streamed and repeated: %s',
  async (_, tools, header) => {
    const repeated = { headers: { 'Idempotency-Key': randomUUID() } };
    for (const [stream, options] of [
      [false, {}],
      [true, {}],
      [false, repeated],
      [false, repeated],
    ] as const) {
      const request = { model, input: 'Hello', tools, tool_choice: 'auto', stream };
      const answer = await client.responses.create(request as never, options).asResponse();
      await answer.text();
      expect(answer.headers.get('annals-left-out')).toBe(header);
    }
  },
);

test.each([
  ['store', { store: true }],
  ['previous_response_id', { previous_response_id: 'resp_1' }],
  ['background', { background: true }],
  ['conversation', { conversation: 'conv_1' }],
  ['prompt', { prompt: { id: 'pmpt_1' } }],
  ['input.0.type', { input: [{ type: 'item_reference', id: 'x' }] }],
  [
    'input.0.content.0.image_url',
    { input: [{ role: 'user', content: [{ type: 'input_image', image_url: 'https://example.com/a.png' }] }] },
  ],
  ['input.0.type', { input: [{ id: 'msg_1' }] }],
  ['input.0.type', { input: [{ type: 'computer_call_output', call_id: 'c', output: {} }] }],
  ['input.0.type', { input: [{ type: 'web_search_call', id: 'ws_1', status: 'completed' }] }],
  ['input.0.content.0.type', { input: [{ role: 'user', content: [{ type: 'computer_screenshot' }] }] }],
  ['input.0.content.0.file_url', { input: [{ role: 'user', content: [{ type: 'input_file', file_url: 'x' }] }] }],
  ['tools.0.type', { tools: [{ type: 'made_up' }] }],
  ['tools.0.container', { tools: [{ type: 'code_interpreter', container: { type: 'auto' } }] }],
  ['tools.0.vector_store_ids', { tools: [{ type: 'file_search', vector_store_ids: ['vs_1'] }] }],
  ['tool_choice.tools.0.type', { tool_choice: { type: 'allowed_tools', tools: [{ type: 'web_search' }] } }],
  ['instructions', { instructions: [{ role: 'user', content: 'Hello' }] }],
  ['model', { model: `openai/${'x'.repeat(194)}` }],
  ['model', { model: 'openai/\ud800' }],
  ['user', { user: 'x'.repeat(201) }],
  ['input.0.content.0.file_id', { input: [{ role: 'user', content: [{ type: 'input_file', file_id: 'f' }] }] }],
  ['tool_choice.type', { tool_choice: { type: 'web_search' } }],
  ['tool_choice', { tool_choice: 'required', tools: [{ type: 'web_search' }] }],
  ['tools.1.type', { tools: [{ type: 'web_search' }, { type: 'x'.repeat(65) }] }],
  ['tools.0.type', { tools: [{ type: 'web_search\r\nset-cookie: a=b' }] }],
  ['tools.0.type', { tools: [{ type: 'web_search, mcp' }] }],
  ['input', { input: null }],
  ['model', { model: 'anthropic/claude-sonnet-5-5' }],
])('400 names %s, and nothing is sent', async (param, members) => {
  expect(await statusOf({ model, input: 'Hello', ...members })).toEqual({ status: 400, param });
  expect(openai.vendor.requests).toEqual([]);
});

test('with the shared token a response is reserved and settled, and a file is refused', async () => {
  await openai.server.createTenant('sharing');
  const sharing = await openai.clientOf('sharing');
  const { quota } = openai.server.context.completions;
  const shared = 'gpt-4.1-mini';
  await sharing.responses.create({ model: shared, input: 'Hello' });
  expect(openai.vendor.requests.at(-1)).toMatchObject({ cap: 4_096, headers: { authorization: 'Bearer sk-shared' } });
  expect((await quota.state('sharing')).used).toEqual({ input: 7, output: 3 });
  openai.vendor.behave({ kind: 'answer', usage: undefined });
  await sharing.responses.create({ model: shared, input: 'Hello', max_output_tokens: 50 });
  const bound = (openai.vendor.requests.at(-1)?.bodyText ?? '').length + 64;
  expect((await quota.state('sharing')).used).toEqual({ input: 7 + bound, output: 53 });
  const file = { type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,AAAA' } as const;
  const input = [{ role: 'user' as const, content: [file] }];
  await expect(sharing.responses.create({ model: shared, input })).rejects.toMatchObject({
    status: 400,
    param: 'input',
  });
  await client.responses.create({ model, input });
});

test('a stream that fails is an error for its client, with the text of the vendor on an own key alone', async () => {
  const failed = {
    type: 'response.failed',
    response: { error: { code: 'server_error', message: 'text of the vendor' } },
  };
  const delta = { type: 'response.output_text.delta', delta: 'one ' };
  await openai.server.createTenant('failing');
  const sharing = await openai.clientOf('failing');
  for (const events of [[delta, failed], [delta]]) {
    openai.vendor.behave({ kind: 'events', events: events.map((event) => `data: ${JSON.stringify(event)}\n\n`) });
    const read = async (by: OpenAI, named: string) => {
      const seen: unknown[] = [];
      const stream = await by.responses.create({ model: named, input: 'x', stream: true });
      const error: unknown = await (async () => {
        for await (const part of stream) seen.push(part);
      })().catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(Error);
      expect(seen[0]).toEqual(delta);
      return JSON.stringify(seen) + String(error);
    };
    expect((await read(client, model)).includes('text of the vendor')).toBe(events.includes(failed));
    expect(await read(sharing, 'gpt-4.1-mini')).not.toContain('text of the vendor');
  }
});

test('a client that leaves ends the call on an own key', async () => {
  const delta = { type: 'response.output_text.delta', delta: 'one ' };
  openai.vendor.behave({ kind: 'events', events: [`data: ${JSON.stringify(delta)}\n\n`], last: 'stall' });
  for await (const _ of await client.responses.create({ model, input: 'x', stream: true })) break;
  await eventually(() => openai.vendor.abandoned.length).toBe(1);
});
