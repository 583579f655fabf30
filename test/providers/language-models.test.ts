import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { freePort } from '../../src/db/embedded/free-port.ts';
import { createLanguageModels } from '../../src/providers/language-models.ts';
import { type LanguageModels, type ModelCall, ProviderError, type StreamEvent } from '../../src/providers/port.ts';
import { createTransport, type Transport } from '../../src/providers/transport.ts';
import { comesTrueWithin, eventually } from '../support/server/patience.ts';
import { startVendor, type Vendor, vendorSecret } from '../support/vendor/vendor-server.ts';

let vendor: Vendor;
let transport: Transport;
let models: LanguageModels;

const vendors = [
  { provider: 'openai', model: 'gpt-5.4-mini', keyHeader: 'authorization', key: 'Bearer sk-key' },
  { provider: 'anthropic', model: 'claude-haiku-5-5', keyHeader: 'x-api-key', key: 'sk-key' },
  { provider: 'google', model: 'gemini-3.8-flash', keyHeader: 'x-goog-api-key', key: 'sk-key' },
] as const;

beforeAll(async () => {
  vendor = await startVendor();
  transport = createTransport();
  const baseUrls = { openai: vendor.baseUrl, anthropic: `${vendor.baseUrl}/v1`, google: vendor.baseUrl };
  models = createLanguageModels({ baseUrls, transports: { vendors: transport, selfHosted: transport } });
});

afterEach(() => {
  vendor.behave({ kind: 'answer' });
  vendor.requests.length = 0;
});

afterAll(async () => {
  transport.close();
  await vendor.close();
});

test.each(vendors)('$provider: key, model, cap and text go where the vendor reads them', async (of) => {
  vendor.behave({ kind: 'answer', text: 'Good day', usage: { input: 12, output: 3 } });
  const answer = await models.generate(callOf(of, { maxTokens: 77 }));
  expect(answer).toEqual({
    text: 'Good day',
    toolCalls: [],
    finishReason: 'stop',
    usage: { inputTokens: 12, outputTokens: 3 },
  });
  expect(vendor.requests).toMatchObject([{ format: of.provider, model: of.model, cap: 77, streaming: false }]);
  expect(vendor.requests[0]?.headers[of.keyHeader]).toBe(of.key);
});

const conversation: ModelCall['messages'] = [
  { role: 'system', content: 'first rule' },
  { role: 'user', content: 'question' },
  { role: 'system', content: 'second rule' },
  { role: 'assistant', content: 'answer' },
  { role: 'user', content: 'another' },
];

test('openai: system messages stay where they are', async () => {
  await models.generate(callOf(vendors[0], { messages: conversation }));
  const sent = vendor.requests[0]?.body.messages?.map(({ role, content }) => [role, content]);
  expect(sent).toEqual([
    ['developer', 'first rule'],
    ['user', 'question'],
    ['developer', 'second rule'],
    ['assistant', 'answer'],
    ['user', 'another'],
  ]);
});

test('anthropic: system messages become the system field, the turns stay in order', async () => {
  await models.generate(callOf(vendors[1], { messages: conversation }));
  const { system, messages = [] } = vendor.requests[0]?.body ?? {};
  expect(system?.map(({ text }) => text)).toEqual(['first rule', 'second rule']);
  expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user']);
});

test('google: system messages become the system instruction, the turns stay in order', async () => {
  await models.generate(callOf(vendors[2], { messages: conversation }));
  const { systemInstruction, contents = [] } = vendor.requests[0]?.body ?? {};
  expect(systemInstruction?.parts.map(({ text }) => text)).toEqual(['first rule', 'second rule']);
  expect(contents.map(({ role }) => role)).toEqual(['user', 'model', 'user']);
});

test.each(vendors.slice(1))('$provider: instructions alone are sent as a turn to answer to', async (of) => {
  await models.generate(callOf(of, { messages: [{ role: 'system', content: 'say hello' }] }));
  const { messages, contents, system, systemInstruction } = vendor.requests[0]?.body ?? {};
  expect((messages ?? contents)?.map(({ role }) => role)).toEqual(['user']);
  expect(system ?? systemInstruction).toBeUndefined();
});

test.each(vendors)('$provider: tools are offered, called, and their results sent back', async (of) => {
  vendor.behave({
    kind: 'answer',
    toolCall: { id: 'c1', name: 'find', input: { q: 'x' } },
    usage: { input: 9, output: 4 },
  });
  const tools = [
    { name: 'find', description: 'Finds.', inputSchema: { type: 'object', properties: { q: { type: 'string' } } } },
  ];
  const answer = await models.generate(callOf(of, { tools }));
  expect(answer.finishReason).toBe('tool-calls');
  expect(answer.toolCalls).toMatchObject([{ name: 'find', input: '{"q":"x"}' }]);
  expect(vendor.requests[0]?.body.tools).toHaveLength(1);

  vendor.behave({ kind: 'answer' });
  const [{ id, name } = { id: '', name: '' }] = answer.toolCalls;
  await models.generate(
    callOf(of, {
      tools,
      messages: [
        { role: 'user', content: 'question' },
        { role: 'assistant', content: '', toolCalls: answer.toolCalls },
        { role: 'tool', results: [{ id, name, output: 'found it' }] },
      ],
    }),
  );
  expect(JSON.stringify(vendor.requests[1]?.body)).toContain('found it');
});

test.each(vendors)(
  '$provider: a stream gives its text piece by piece, then the whole answer with usage',
  async (of) => {
    vendor.behave({ kind: 'answer', text: 'one two three', usage: { input: 8, output: 6 } });
    const events = await all(models.stream(callOf(of)));
    const answer = {
      text: 'one two three',
      toolCalls: [],
      finishReason: 'stop',
      usage: { inputTokens: 8, outputTokens: 6 },
    };
    expect(events.at(-1)).toEqual({ type: 'answer', answer });
    const pieces = events.slice(0, -1);
    expect(pieces.length).toBeGreaterThan(1);
    expect(pieces.map((event) => (event.type === 'text' ? event.text : '')).join('')).toBe('one two three');
  },
);

test.each(vendors)('$provider: a stream gives tool calls with the answer', async (of) => {
  vendor.behave({
    kind: 'answer',
    toolCall: { id: 'c1', name: 'find', input: { q: 'x' } },
    usage: { input: 9, output: 4 },
  });
  const tools = [{ name: 'find', description: 'Finds.', inputSchema: { type: 'object', properties: {} } }];
  const [last] = (await all(models.stream(callOf(of, { tools })))).slice(-1);
  expect(last).toMatchObject({
    type: 'answer',
    answer: { finishReason: 'tool-calls', toolCalls: [{ name: 'find', input: '{"q":"x"}' }] },
  });
});

const failures = [
  ['401', { kind: 'status', status: 401 }, { fault: 'key_refused', usage: 'none', status: 401 }],
  ['403', { kind: 'status', status: 403 }, { fault: 'key_refused', usage: 'none', status: 403 }],
  ['404', { kind: 'status', status: 404 }, { fault: 'model_unknown', usage: 'none', status: 404 }],
  ['400', { kind: 'status', status: 400 }, { fault: 'request_refused', usage: 'none', status: 400 }],
  [
    '429 with Retry-After',
    { kind: 'status', status: 429, headers: { 'retry-after': '17' } },
    { fault: 'rate_limited', usage: 'none', status: 429, retryAfter: '17' },
  ],
  ['500', { kind: 'status', status: 500 }, { fault: 'unavailable', usage: 'none', status: 500 }],
  ['503', { kind: 'status', status: 503 }, { fault: 'unavailable', usage: 'none', status: 503 }],
  ['504 of a gateway', { kind: 'status', status: 504 }, { fault: 'unavailable', usage: 'unknown', status: 504 }],
  [
    'a redirect',
    { kind: 'status', status: 307, headers: { location: '/elsewhere' } },
    { fault: 'unavailable', usage: 'none', status: 307 },
  ],
  ['not JSON', { kind: 'garbage' }, { fault: 'broken', usage: 'unknown' }],
  ['cut in the middle', { kind: 'cut' }, { fault: 'broken', usage: 'unknown' }],
] as const;

for (const of of vendors) {
  test.each(failures)(`${of.provider}: %s`, async (_what, behaviour, expected) => {
    vendor.behave(behaviour);
    for (const attempt of [() => models.generate(callOf(of)), () => all(models.stream(callOf(of)))]) {
      const error = await attempt().catch((thrown) => thrown);
      expect(error).toBeInstanceOf(ProviderError);
      expect(error).toMatchObject(expected);
      expect(`${error.stack}${JSON.stringify(error)}${String(error.cause)}`).not.toContain(vendorSecret);
    }
  });

  test(`${of.provider}: a refusal is sent once and its connection used again`, async () => {
    vendor.behave({ kind: 'status', status: 500 });
    await models.generate(callOf(of)).catch(() => {});
    await models.generate(callOf(of)).catch(() => {});
    expect(vendor.requests).toHaveLength(2);
    expect(vendor.requests[0]?.connection).toBe(vendor.requests[1]?.connection);
  });

  test(`${of.provider}: slower than the limit is a timeout, of unknown cost, and closes the connection`, async () => {
    vendor.behave({ kind: 'hang' });
    const before = vendor.abandoned.length;
    const error = await models
      .generate(callOf(of, { times: { silence: 100, total: 600_000 } }))
      .catch((thrown) => thrown);
    expect(error).toMatchObject({ fault: 'timeout', usage: 'unknown' });
    await eventually(() => vendor.abandoned.length).toBe(before + 1);
  });

  test(`${of.provider}: the caller's signal closes the connection within 200 ms`, async () => {
    vendor.behave({ kind: 'hang' });
    const controller = new AbortController();
    const failed = models.generate(callOf(of, { signal: controller.signal })).catch((thrown) => thrown);
    await eventually(() => vendor.requests.length).toBe(1);
    const before = vendor.abandoned.length;
    controller.abort();
    expect(await comesTrueWithin(200, () => vendor.abandoned.length > before)).toBe(true);
    expect(vendor.abandoned).toHaveLength(before + 1);
    expect(await failed).toMatchObject({ fault: 'aborted', usage: 'unknown' });
  });

  test(`${of.provider}: leaving a stream early closes its connection`, async () => {
    vendor.behave({ kind: 'stall' });
    const before = vendor.abandoned.length;
    for await (const _event of models.stream(callOf(of))) break;
    await eventually(() => vendor.abandoned.length).toBe(before + 1);
  });
}

test.each(vendors)('$provider: an answer larger than asked is told as the vendor counted it', async (of) => {
  vendor.behave({ kind: 'answer', usage: { input: 5_000, output: 9_999 } });
  const { usage } = await models.generate(callOf(of, { maxTokens: 16 }));
  expect(usage).toEqual({ inputTokens: 5_000, outputTokens: 9_999 });
});

test.each([vendors[0], vendors[2]])('$provider: usage that is missing is unknown, not zero', async (of) => {
  vendor.behave({ kind: 'answer', usage: undefined });
  const { text, usage } = await models.generate(callOf(of));
  expect({ text, usage }).toEqual({
    text: 'Hello there',
    usage: { inputTokens: undefined, outputTokens: undefined },
  });
});

test('anthropic: an answer without usage is none of its format, and of unknown cost', async () => {
  vendor.behave({ kind: 'answer', usage: undefined });
  await expect(models.generate(callOf(vendors[1]))).rejects.toMatchObject({ fault: 'broken', usage: 'unknown' });
});

test('a refusal that has figures costs what they say', async () => {
  const body = { error: { message: vendorSecret }, usage: { prompt_tokens: 7, completion_tokens: 2 } };
  vendor.behave({ kind: 'status', status: 400, body });
  await expect(models.generate(callOf(vendors[0]))).rejects.toMatchObject({
    usage: { inputTokens: 7, outputTokens: 2 },
  });
});

test('where nobody listens the call never left and costs nothing', async () => {
  const baseUrl = `http://127.0.0.1:${await freePort()}`;
  await expect(models.generate(callOf(vendors[0], { baseUrl }))).rejects.toMatchObject({
    fault: 'unreachable',
    usage: 'none',
  });
});

test('a call that was given up before it left costs nothing', async () => {
  const signal = AbortSignal.abort();
  await expect(models.generate(callOf(vendors[0], { signal }))).rejects.toMatchObject({
    fault: 'aborted',
    usage: 'none',
  });
  expect(vendor.requests).toEqual([]);
});

test('a Retry-After that is neither seconds nor a date is not passed on', async () => {
  vendor.behave({ kind: 'status', status: 429, headers: { 'retry-after': vendorSecret } });
  const error = await models.generate(callOf(vendors[0])).catch((thrown) => thrown);
  expect(error.retryAfter).toBeUndefined();
});

test('connections are kept alive between calls', async () => {
  for (let call = 0; call < 5; call += 1) await models.generate(callOf(vendors[0]));
  expect(new Set(vendor.requests.map(({ connection }) => connection)).size).toBe(1);
});

test('a self-hosted server is asked in the chat format at the address of the call', async () => {
  const baseUrl = `${vendor.baseUrl}/v1/`;
  const answer = await models.generate({
    ...callOf(vendors[0]),
    provider: 'self_hosted',
    model: 'llama3',
    baseUrl,
    apiKey: '',
  });
  expect(answer.text).toBe('Hello there');
  expect(vendor.requests).toMatchObject([{ format: 'openai', model: 'llama3' }]);
  expect(vendor.requests[0]?.headers).not.toHaveProperty('authorization');
});

test.each(['gpt-5', 'o3-mini', '"quoted" model'])(
  'nothing is guessed from the name of a self-hosted %s',
  async (model) => {
    const baseUrl = `${vendor.baseUrl}/v1`;
    const messages: ModelCall['messages'] = [
      { role: 'system', content: 'rule' },
      { role: 'user', content: '"model":"model-of-the-server"' },
    ];
    const call = {
      ...callOf(vendors[0], { messages }),
      provider: 'self_hosted' as const,
      model,
      baseUrl,
      temperature: 0.5,
    };
    expect(await models.generate(call)).not.toHaveProperty('droppedSettings');
    expect(vendor.requests[0]?.body).toMatchObject({ model, temperature: 0.5, max_tokens: 100, messages });
    expect(vendor.requests[0]?.headers.authorization).toBe('Bearer sk-key');
  },
);

test('a setting that the model does not take is dropped, and the answer says so', async () => {
  const call = callOf(vendors[0], { temperature: 0.5 });
  expect(await models.generate(call)).toMatchObject({ droppedSettings: ['temperature'] });
  expect(vendor.requests[0]?.body).not.toHaveProperty('temperature');
  expect((await all(models.stream(call))).at(-1)).toMatchObject({ answer: { droppedSettings: ['temperature'] } });
  expect(await models.generate({ ...call, model: 'gpt-4o' })).not.toHaveProperty('droppedSettings');
  expect(vendor.requests[2]?.body).toMatchObject({ temperature: 0.5 });
});

const refusals = [
  ['openai', 400, { error: { code: 'context_length_exceeded' } }, 'context_length_exceeded'],
  ['openai', 400, { error: { code: 'content_filter' } }, 'content_filtered'],
  ['openai', 429, { error: { code: 'insufficient_quota', type: 'insufficient_quota' } }, 'quota_exhausted'],
  ['openai', 429, { error: { code: 'rate_limit_exceeded' } }, 'rate_limited'],
  ['anthropic', 400, { error: { message: 'prompt is too long: 9 tokens > 8 maximum' } }, 'context_length_exceeded'],
  ['anthropic', 413, { error: { message: 'Request exceeds the maximum size' } }, 'context_length_exceeded'],
  ['anthropic', 400, { error: { message: 'max_tokens: must be less' } }, 'request_refused'],
  ['google', 400, { error: { message: 'The input token count (9) exceeds the maximum' } }, 'context_length_exceeded'],
  ['google', 400, { error: { message: 'Invalid JSON payload' } }, 'request_refused'],
] as const;

test.each(refusals)('%s: a %i of %j is told as %4$s', async (provider, status, body, fault) => {
  const of = vendors.find((one) => one.provider === provider) ?? vendors[0];
  vendor.behave({ kind: 'status', status, body });
  expect(await models.generate(callOf(of)).catch((error) => error)).toMatchObject({ fault, usage: 'none' });
});

function callOf(of: (typeof vendors)[number], more: Partial<ModelCall> = {}): ModelCall {
  return {
    provider: of.provider,
    model: of.model,
    apiKey: 'sk-key',
    messages: [{ role: 'user', content: 'question' }],
    maxTokens: 100,
    times: { silence: 10_000, total: 600_000 },
    ...more,
  };
}

async function all(events: AsyncIterable<StreamEvent>): Promise<StreamEvent[]> {
  const collected: StreamEvent[] = [];
  for await (const event of events) collected.push(event);
  return collected;
}
