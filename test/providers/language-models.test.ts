import { afterAll, afterEach, expect, test } from 'vitest';
import type { ModelCall } from '../../src/providers/port.ts';
import { all, callOf, startModels, vendors } from './vendor-models.ts';

const { vendor, models, close } = await startModels();

afterEach(() => {
  vendor.behave({ kind: 'answer' });
  vendor.requests.length = 0;
});

afterAll(() => close());

test.each(vendors)('$provider: key, model, cap and text go where the vendor reads them', async (of) => {
  vendor.behave({ kind: 'answer', text: 'Good day', usage: { input: 12, output: 3 } });
  const answer = await models.call(callOf(of, { maxTokens: 77 }));
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
  await models.call(callOf(vendors[0], { messages: conversation }));
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
  await models.call(callOf(vendors[1], { messages: conversation }));
  const { system, messages = [] } = vendor.requests[0]?.body ?? {};
  expect(system).toMatchObject([{ text: 'first rule' }, { text: 'second rule' }]);
  expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user']);
});

test('google: system messages become the system instruction, the turns stay in order', async () => {
  await models.call(callOf(vendors[2], { messages: conversation }));
  const { systemInstruction, contents = [] } = vendor.requests[0]?.body ?? {};
  expect(systemInstruction?.parts.map(({ text }) => text)).toEqual(['first rule', 'second rule']);
  expect(contents.map(({ role }) => role)).toEqual(['user', 'model', 'user']);
});

test.each(vendors.slice(1))('$provider: instructions alone are sent as a turn to answer to', async (of) => {
  await models.call(callOf(of, { messages: [{ role: 'system', content: 'say hello' }] }));
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
  const answer = await models.call(callOf(of, { tools }));
  expect(answer.finishReason).toBe('tool-calls');
  expect(answer.toolCalls).toMatchObject([{ name: 'find', input: '{"q":"x"}' }]);
  expect(vendor.requests[0]?.body.tools).toHaveLength(1);

  vendor.behave({ kind: 'answer' });
  const [{ id, name } = { id: '', name: '' }] = answer.toolCalls;
  await models.call(
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
    const events = await all(models, callOf(of));
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
  const [last] = (await all(models, callOf(of, { tools }))).slice(-1);
  expect(last).toMatchObject({
    type: 'answer',
    answer: { finishReason: 'tool-calls', toolCalls: [{ name: 'find', input: '{"q":"x"}' }] },
  });
});

test('connections are kept alive between calls', async () => {
  for (let call = 0; call < 5; call += 1) await models.call(callOf(vendors[0]));
  expect(new Set(vendor.requests.map(({ connection }) => connection)).size).toBe(1);
});

test('a self-hosted server is called in the chat format at the address of the call', async () => {
  const baseUrl = `${vendor.baseUrl}/v1/`;
  const answer = await models.call({
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
    expect(await models.call(call)).not.toHaveProperty('droppedSettings');
    expect(vendor.requests[0]?.body).toMatchObject({ model, temperature: 0.5, max_tokens: 100, messages });
    expect(vendor.requests[0]?.headers.authorization).toBe('Bearer sk-key');
  },
);

test('a setting that the model does not take is dropped, and the answer says so', async () => {
  const call = callOf(vendors[0], { temperature: 0.5 });
  expect(await models.call(call)).toMatchObject({ droppedSettings: ['temperature'] });
  expect(vendor.requests[0]?.body).not.toHaveProperty('temperature');
  expect((await all(models, call)).at(-1)).toMatchObject({ answer: { droppedSettings: ['temperature'] } });
  expect(await models.call({ ...call, model: 'gpt-4o' })).not.toHaveProperty('droppedSettings');
  expect(vendor.requests[2]?.body).toMatchObject({ temperature: 0.5 });
});
