import type OpenAI from 'openai';
import { beforeEach, describe, expect, test } from 'vitest';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { errorOf } from './errors.ts';
import { startOpenai } from './openai-server.ts';

const tenant = 'acme';
const user = { role: 'user', content: 'Hello' } as const;
const translated = ['anthropic', 'google'] as const;
const tools = [
  { type: 'function', function: { name: 'pay', parameters: { type: 'object', properties: {} } } },
] as const;

const openai = closeAfterAll(await startOpenai());
await openai.tenantWithKeys(tenant);
const client = await openai.clientOf(tenant);

beforeEach(() => {
  openai.vendor.behave({ kind: 'answer', text: 'one two three', usage: { input: 7, output: 3 } });
  openai.vendor.requests.length = 0;
});

type Messages = OpenAI.ChatCompletionMessageParam[];

function ask(provider: string, messages: Messages = [user]) {
  return client.chat.completions.create({ model: `${provider}/some-model`, messages, tools: [...tools] });
}

function answerJson(text: string): void {
  openai.vendor.behave({ kind: 'bytes', headers: { 'content-type': 'application/json' }, body: Buffer.from(text) });
}

/** Messages of a client that calls a tool with these arguments, and has its result. */
function called(args: string): Messages {
  return [
    user,
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'c1', type: 'function', function: { name: 'pay', arguments: args } }],
    },
    { role: 'tool', tool_call_id: 'c1', content: 'paid' },
  ];
}

function argumentsOf({ choices: [choice] }: OpenAI.ChatCompletion): string[] {
  return (choice?.message.tool_calls ?? []).map((call) => (call.type === 'function' ? call.function.arguments : ''));
}

describe('arguments of tools', () => {
  const args =
    '{"id":9007199254740993,"price":1.10,"sum":12345678901234567890.10,"one":1.0,"big":1e400,"2":{"b":-0,"a":[0.0]},' +
    '"1":"\\u00e9 1.10 \\"é\\"","twice":1,"twice":2.0}';

  const whole: Record<(typeof translated)[number], string> = {
    anthropic: `{"content":[{"type":"tool_use","id":"c1","name":"pay","input": ${args}}],"stop_reason":"tool_use"}`,
    google: `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"pay","args" :\n${args}}}]},"finishReason":"STOP"}]}`,
  };

  test.each(translated)('of %s reach the client with every digit, and go back so', async (provider) => {
    answerJson(whole[provider]);
    expect(argumentsOf(await ask(provider))).toEqual([args]);
    openai.vendor.behave({ kind: 'answer' });
    await ask(provider, called(args));
    expect(openai.vendor.requests.at(-1)?.bodyText).toContain(args);
  });

  test.each(translated)('of a stream of %s have every digit too', async (provider) => {
    const event = (data: string) => `data: ${data}\n\n`;
    const half = args.length / 2;
    const pieces = [args.slice(0, half), args.slice(half)].map((piece) => JSON.stringify(piece));
    const block = (type: string, more: string) => event(`{"type":"${type}","index":0${more}}`);
    const events: Record<(typeof translated)[number], string[]> = {
      anthropic: [
        event('{"type":"message_start","message":{}}'),
        block('content_block_start', ',"content_block":{"type":"tool_use","id":"c1","name":"pay","input":{}}'),
        ...pieces.map((piece) =>
          block('content_block_delta', `,"delta":{"type":"input_json_delta","partial_json":${piece}}`),
        ),
        block('content_block_stop', ''),
        event('{"type":"message_delta","delta":{"stop_reason":"tool_use"}}'),
        event('{"type":"message_stop"}'),
      ],
      google: [event(whole.google.replace('\n', ''))],
    };
    openai.vendor.behave({ kind: 'events', events: events[provider] });
    const chunks = await Array.fromAsync(
      await client.chat.completions.create({
        model: `${provider}/some-model`,
        messages: [user],
        tools: [...tools],
        stream: true,
      }),
    );
    const streamed = chunks.flatMap(({ choices }) => choices[0]?.delta.tool_calls ?? []);
    expect(streamed.map((call) => call.function?.arguments ?? '').join('')).toBe(args);
  });

  test.each(['{"a":', '7', '[]', '"x"', 'x'])(
    'that are no object, %s, are 400 for a vendor that takes objects, and otherwise pass',
    async (cut) => {
      for (const provider of translated) {
        const param = 'messages.1.tool_calls.0.function.arguments';
        expect(await errorOf(ask(provider, called(cut)))).toMatchObject({ status: 400, param });
      }
      expect(openai.vendor.requests).toEqual([]);
      for (const provider of ['openai', 'self_hosted']) {
        await ask(provider, called(cut));
        expect(openai.vendor.requests.at(-1)?.bodyText).toContain(`"arguments":${JSON.stringify(cut)}`);
      }
    },
  );

  test.each(translated)('that are left out are an empty object for %s', async (provider) => {
    await ask(provider, called(''));
    expect(openai.vendor.requests.at(-1)?.bodyText).toMatch(/"(input|args)":\{\}/);
  });

  test('that the cap of tokens cuts off pass as they are, with the reason length', async () => {
    const cut = '{"id":900719925474';
    const event = (data: object) => `data: ${JSON.stringify(data)}\n\n`;
    const block = (type: string, more: object) => event({ type, index: 0, ...more });
    const begin = [
      event({ type: 'message_start', message: {} }),
      block('content_block_start', { content_block: { type: 'tool_use', id: 'c1', name: 'pay', input: {} } }),
      block('content_block_delta', { delta: { type: 'input_json_delta', partial_json: cut } }),
    ];
    const end =
      event({ type: 'message_delta', delta: { stop_reason: 'max_tokens' } }) + event({ type: 'message_stop' });
    for (const events of [
      [...begin, end],
      [...begin, block('content_block_stop', {}), end],
    ]) {
      openai.vendor.behave({ kind: 'events', events });
      const stream = await client.chat.completions.create({
        model: 'anthropic/some-model',
        messages: [user],
        tools: [...tools],
        stream: true,
      });
      const chunks = await Array.fromAsync(stream);
      const streamed = chunks.flatMap(({ choices }) => choices[0]?.delta.tool_calls ?? []);
      expect(streamed.map((call) => call.function?.arguments ?? '').join('')).toBe(cut);
      expect(chunks.at(-1)?.choices[0]?.finish_reason).toBe('length');
    }
    answerJson(
      JSON.stringify({
        choices: [
          {
            message: { tool_calls: [{ id: 'c1', type: 'function', function: { name: 'pay', arguments: cut } }] },
            finish_reason: 'length',
          },
        ],
      }),
    );
    const answer = await ask('self_hosted');
    expect(argumentsOf(answer)).toEqual([cut]);
    expect(answer.choices[0]?.finish_reason).toBe('length');
  });
});

describe('texts', () => {
  const parts = (...texts: string[]) => texts.map((text) => ({ type: 'text' as const, text }));

  test('of several parts stay apart in every role', async () => {
    const messages: Messages = [
      { role: 'system', content: parts('a', 'b') },
      { role: 'user', content: parts('c', 'd') },
      {
        role: 'assistant',
        content: parts('e', 'f'),
        tool_calls: [{ id: 'c1', type: 'function', function: { name: 'pay', arguments: '{}' } }],
      },
      { role: 'tool', tool_call_id: 'c1', content: parts('g', 'h') },
    ];
    await ask('anthropic', messages);
    expect(openai.vendor.requests.at(-1)?.body).toMatchObject({
      system: parts('a', 'b'),
      messages: [
        { content: parts('c', 'd') },
        { content: [...parts('e', 'f'), { type: 'tool_use' }] },
        { content: [{ type: 'tool_result', content: parts('g', 'h') }] },
      ],
    });
    await ask('google', messages);
    expect(openai.vendor.requests.at(-1)?.body).toMatchObject({
      systemInstruction: { parts: [{ text: 'a' }, { text: 'b' }] },
      contents: [
        { parts: [{ text: 'c' }, { text: 'd' }] },
        { parts: [{ text: 'e' }, { text: 'f' }, {}] },
        { parts: [{ functionResponse: { response: { content: ['g', 'h'] } } }] },
      ],
    });
  });

  test.each(translated)('that are empty do not go to %s', async (provider) => {
    await ask(provider, [
      { role: 'system', content: parts('', 'a') },
      { role: 'user', content: parts('', 'x') },
      { role: 'assistant', content: parts('', 'y') },
      { role: 'assistant', content: '' },
      { role: 'user', content: parts('z', '') },
    ]);
    expect(openai.vendor.requests.at(-1)?.bodyText).not.toContain('"text":""');
    expect(openai.vendor.requests.at(-1)?.text).toBe('axyz');
  });

  test.each<[string, Messages]>([
    ['messages.0.content', [{ role: 'user', content: '' }]],
    ['messages.0.content', [{ role: 'user', content: parts('', '') }]],
    [
      'messages.1.content',
      [
        { role: 'system', content: parts('', '') },
        { role: 'user', content: '' },
      ],
    ],
    ['messages.2.content', [user, { role: 'assistant', content: 'Hi' }, { role: 'user', content: parts('') }]],
    ['messages.3.content', [...called('{}').slice(0, 3), { role: 'user', content: '' }]],
  ])('400 names %s, which has nothing to answer', async (param, messages) => {
    for (const provider of translated) {
      expect(await errorOf(ask(provider, messages))).toMatchObject({ status: 400, param });
    }
    expect(openai.vendor.requests).toEqual([]);
    await ask('self_hosted', messages);
    expect(openai.vendor.requests).toHaveLength(1);
  });
});

describe('an answer ends as the vendor says', () => {
  /** An answer of a vendor that ends for this reason, and the same as a stream. */
  const endings: Record<'anthropic' | 'google', (reason: string) => { whole: object; events: object[] }> = {
    anthropic: (reason) => ({
      whole: { content: [{ type: 'text', text: 'Hm' }], stop_reason: reason },
      events: [
        { type: 'message_start', message: {} },
        { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
        { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hm' } },
        { type: 'content_block_stop', index: 0 },
        { type: 'message_delta', delta: { stop_reason: reason } },
        { type: 'message_stop' },
      ],
    }),
    google: (reason) => {
      const whole = { candidates: [{ content: { parts: [{ text: 'Hm' }] }, finishReason: reason }] };
      return { whole, events: [whole] };
    },
  };
  const reasons = {
    anthropic: {
      stop: ['end_turn', 'stop_sequence'],
      length: ['max_tokens', 'model_context_window_exceeded', 'pause_turn', 'compaction', 'made_up'],
    },
    google: {
      stop: ['STOP'],
      length: ['MAX_TOKENS', 'OTHER', 'FINISH_REASON_UNSPECIFIED', 'MADE_UP'],
      content_filter: ['SAFETY', 'RECITATION', 'LANGUAGE', 'BLOCKLIST', 'PROHIBITED_CONTENT', 'SPII', 'IMAGE_SAFETY'],
    },
  };
  const failures = [
    'MALFORMED_FUNCTION_CALL',
    'UNEXPECTED_TOOL_CALL',
    'TOO_MANY_TOOL_CALLS',
    'MISSING_THOUGHT_SIGNATURE',
    'MALFORMED_RESPONSE',
  ];
  const dataOf = (events: readonly object[]) => events.map((event) => `data: ${JSON.stringify(event)}\n\n`);

  test.each(
    Object.entries(reasons).flatMap(([provider, by]) =>
      Object.entries(by).flatMap(([finishReason, list]) =>
        list.map((reason) => [provider as 'google', reason, finishReason] as const),
      ),
    ),
  )('%s: %s is %s', async (provider, reason, finishReason) => {
    const { whole, events } = endings[provider](reason);
    answerJson(JSON.stringify(whole));
    const [choice] = (await ask(provider)).choices;
    expect(choice).toMatchObject({ message: { content: 'Hm', refusal: null }, finish_reason: finishReason });
    openai.vendor.behave({ kind: 'events', events: dataOf(events) });
    const stream = await client.chat.completions.create({
      model: `${provider}/some-model`,
      messages: [user],
      stream: true,
    });
    expect((await Array.fromAsync(stream)).at(-1)?.choices[0]?.finish_reason).toBe(finishReason);
  });

  test.each(failures)('google: %s is an error, with text or without', async (reason) => {
    const usageMetadata = { promptTokenCount: 7, candidatesTokenCount: 3 };
    for (const content of [{}, { parts: [{ text: 'Hm' }] }]) {
      const body = { candidates: [{ content, finishReason: reason }], usageMetadata };
      answerJson(JSON.stringify(body));
      const error = await errorOf(ask('google'));
      expect(error).toMatchObject({ status: 502 });
      expect(error.headers?.get('x-should-retry')).toBe('false');
      openai.vendor.behave({ kind: 'events', events: dataOf([body]) });
      const read = async () =>
        await Array.fromAsync(
          await client.chat.completions.create({ model: 'google/some-model', messages: [user], stream: true }),
        );
      expect(await errorOf(read())).toMatchObject({ type: 'server_error' });
    }
  });

  test('google: a prompt that the filter blocks is content_filter', async () => {
    const blocked = { promptFeedback: { blockReason: 'SAFETY' } };
    answerJson(JSON.stringify(blocked));
    expect((await ask('google')).choices[0]?.finish_reason).toBe('content_filter');
    openai.vendor.behave({ kind: 'events', events: dataOf([blocked]) });
    const stream = await client.chat.completions.create({ model: 'google/some-model', messages: [user], stream: true });
    expect((await Array.fromAsync(stream)).at(-1)?.choices[0]?.finish_reason).toBe('content_filter');
  });
});

describe('a refusal is one for the client', () => {
  const format = { type: 'json_schema', json_schema: { name: 'sum', schema: { type: 'object' } } } as const;
  const dataOf = (events: readonly object[]) => events.map((event) => `data: ${JSON.stringify(event)}\n\n`);
  const stopped = { stop_reason: 'refusal', stop_details: { type: 'refusal', explanation: 'It is too risky.' } };
  const vendors = [
    [
      'anthropic',
      { content: [], ...stopped },
      [{ type: 'message_start', message: {} }, { type: 'message_delta', delta: stopped }, { type: 'message_stop' }],
      'It is too risky.',
    ],
    [
      'anthropic',
      { content: [], stop_reason: 'refusal' },
      [
        { type: 'message_start', message: {} },
        { type: 'message_delta', delta: { stop_reason: 'refusal' } },
        { type: 'message_stop' },
      ],
      'The model refused to answer.',
    ],
  ] as const;

  test.each(vendors)('%s: parse() does not throw, plain and streamed', async (provider, whole, events, refusal) => {
    const request = { model: `${provider}/claude-sonnet-4-5`, messages: [user], response_format: format };
    answerJson(JSON.stringify(whole));
    const [choice] = (await client.chat.completions.parse(request)).choices;
    expect(choice).toMatchObject({ message: { content: null, refusal, parsed: null }, finish_reason: 'stop' });
    openai.vendor.behave({ kind: 'events', events: dataOf(events) });
    const [streamed] = (await client.chat.completions.stream(request).finalChatCompletion()).choices;
    expect(streamed).toMatchObject({ message: { refusal, parsed: null }, finish_reason: 'stop' });
    expect(streamed?.message.content || null).toBeNull();
  });

  test.each(translated)('and goes back to %s as what the model said', async (provider) => {
    await ask(provider, [user, { role: 'assistant', content: null, refusal: 'I cannot.' }, user]);
    expect(openai.vendor.requests.at(-1)?.text).toBe('HelloI cannot.Hello');
  });
});

describe('reasoning that the vendor shows', () => {
  const event = (data: object) => `data: ${JSON.stringify(data)}\n\n`;
  const thought = 'The city is far.';
  const vendors = {
    anthropic: {
      whole: {
        content: [
          { type: 'thinking', thinking: 'The city ', signature: 'signed' },
          { type: 'redacted_thinking', data: 'hidden' },
          { type: 'thinking', thinking: 'is far.', signature: 'signed' },
          { type: 'text', text: 'Rain.' },
        ],
        stop_reason: 'end_turn',
      },
      events: [
        { type: 'message_start', message: {} },
        { type: 'content_block_start', index: 0, content_block: { type: 'thinking', thinking: '', signature: '' } },
        { type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking: 'The city ' } },
        { type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking: 'is far.' } },
        { type: 'content_block_delta', index: 0, delta: { type: 'signature_delta', signature: 'signed' } },
        { type: 'content_block_stop', index: 0 },
        { type: 'content_block_start', index: 1, content_block: { type: 'text', text: '' } },
        { type: 'content_block_delta', index: 1, delta: { type: 'text_delta', text: 'Rain.' } },
        { type: 'content_block_stop', index: 1 },
        { type: 'message_delta', delta: { stop_reason: 'end_turn' } },
        { type: 'message_stop' },
      ],
    },
    google: {
      whole: {
        candidates: [
          { content: { parts: [{ text: thought, thought: true }, { text: 'Rain.' }] }, finishReason: 'STOP' },
        ],
      },
      events: [
        { candidates: [{ content: { parts: [{ text: 'The city ', thought: true }] } }] },
        { candidates: [{ content: { parts: [{ text: 'is far.', thought: true }] } }] },
        { candidates: [{ content: { parts: [{ text: 'Rain.' }] }, finishReason: 'STOP' }] },
      ],
    },
  };

  test.each(translated)('is reasoning_content, before the text: %s', async (provider) => {
    const { whole, events } = vendors[provider];
    answerJson(JSON.stringify(whole));
    const [choice] = (await ask(provider)).choices;
    expect(choice?.message).toMatchObject({ content: 'Rain.', reasoning_content: thought });
    expect(JSON.stringify(choice)).not.toMatch(/signed|hidden/);
    openai.vendor.behave({ kind: 'events', events: events.map(event) });
    const stream = await client.chat.completions.create({
      model: `${provider}/some-model`,
      messages: [user],
      stream: true,
    });
    const deltas = (await Array.fromAsync(stream)).flatMap(({ choices }) => choices.map(({ delta }) => delta));
    const texts = deltas.map((delta) =>
      'reasoning_content' in delta ? `(${delta.reasoning_content})` : delta.content,
    );
    expect(texts.filter((text) => text)).toEqual(['(The city )', '(is far.)', 'Rain.']);
    openai.vendor.behave({ kind: 'answer' });
    await ask(provider, [user, { role: 'assistant', content: 'Rain.', reasoning_content: thought } as never, user]);
    expect(openai.vendor.requests.at(-1)?.bodyText).not.toContain(thought);
  });

  test('is left out where there is none, and asked for with an effort', async () => {
    for (const provider of translated)
      expect((await ask(provider)).choices[0]?.message).not.toHaveProperty('reasoning_content');
    const sentWith = async (model: string, effort: 'low' | 'none' | undefined) => {
      const reasoning = effort && { reasoning_effort: effort };
      await client.chat.completions.create({ model, messages: [user], ...reasoning, max_tokens: 4_000 });
      return JSON.parse(openai.vendor.requests.at(-1)?.bodyText ?? '');
    };
    const gemini = 'google/gemini-2.5-flash';
    expect((await sentWith(gemini, 'low')).generationConfig.thinkingConfig).toMatchObject({ includeThoughts: true });
    expect((await sentWith(gemini, 'none')).generationConfig.thinkingConfig).not.toHaveProperty('includeThoughts');
    expect((await sentWith(gemini, undefined)).generationConfig).not.toHaveProperty('thinkingConfig');
    const claude = 'anthropic/claude-opus-4-7';
    expect(await sentWith(claude, 'low')).toMatchObject({
      max_tokens: 4_000,
      thinking: { type: 'adaptive', display: 'summarized' },
      output_config: { effort: 'low' },
    });
    expect((await sentWith(claude, 'none')).thinking).toEqual({ type: 'disabled' });
    expect((await sentWith('anthropic/claude-sonnet-4-5', 'low')).thinking).toMatchObject({ type: 'enabled' });
  });
});

test.each(translated)('figures that %s does not report are left out', async (provider) => {
  const ending = {
    anthropic: (usage: object) => ({ content: [{ type: 'text', text: 'Hm' }], stop_reason: 'end_turn', usage }),
    google: (usageMetadata: object) => ({
      candidates: [{ content: { parts: [{ text: 'Hm' }] }, finishReason: 'STOP' }],
      usageMetadata,
    }),
  }[provider];
  const both = { input_tokens: 7, output_tokens: 3, promptTokenCount: 7, candidatesTokenCount: 3 };
  const usages: [object, object | undefined][] = [
    [both, { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 }],
    [
      { ...both, output_tokens_details: { thinking_tokens: 2 }, candidatesTokenCount: 1, thoughtsTokenCount: 2 },
      {
        prompt_tokens: 7,
        completion_tokens: 3,
        total_tokens: 10,
        completion_tokens_details: { reasoning_tokens: 2 },
      },
    ],
    [{ input_tokens: 7, promptTokenCount: 7 }, undefined],
    [{}, undefined],
  ];
  for (const [reported, usage] of usages) {
    answerJson(JSON.stringify(ending(reported)));
    expect((await ask(provider)).usage).toEqual(usage);
  }
});

describe('a strict schema', () => {
  const inner = (keywords: object) => ({
    type: 'object',
    properties: { price: keywords },
    required: ['price'],
    additionalProperties: false,
  });
  const strictAsk = (model: string, schema: object, { kind, strict = true }: { kind: string; strict?: boolean }) =>
    client.chat.completions.create({
      model,
      messages: [user],
      ...(kind === 'tools'
        ? { tools: [{ type: 'function', function: { name: 'pay', parameters: schema, strict } }] }
        : { response_format: { type: 'json_schema', json_schema: { name: 'sum', schema, strict } } }),
    } as never);
  const claude = 'anthropic/claude-sonnet-4-5';
  const gemini = 'google/gemini-2.5-flash';
  const places = { tools: 'tools.0.function.parameters', format: 'response_format.json_schema.schema' };

  test.each<readonly [string, keyof typeof places, string, object]>([
    ...['minimum', 'maximum', 'exclusiveMinimum', 'multipleOf'].map(
      (name) => [claude, 'tools', name, { type: 'number', [name]: 1 }] as const,
    ),
    ...['minLength', 'maxLength'].map((name) => [claude, 'tools', name, { type: 'string', [name]: 1 }] as const),
    [claude, 'tools', 'minItems', { type: 'array', items: { type: 'string' }, minItems: 2 }],
    [claude, 'tools', 'maxItems', { type: 'array', items: { type: 'string' }, maxItems: 2 }],
    [claude, 'tools', 'oneOf', { oneOf: [{ type: 'string' }] }],
    [claude, 'tools', 'format', { type: 'string', format: 'color' }],
    [claude, 'tools', '$ref', { $ref: 'https://example.com/schema' }],
    [claude, 'tools', 'additionalProperties', { type: 'object', additionalProperties: true }],
    [claude, 'format', 'minimum', { type: 'number', minimum: 1 }],
    [claude, 'format', 'pattern', { type: 'string', pattern: '^a' }],
    [claude, 'format', 'minItems', { type: 'array', items: { type: 'string' }, minItems: 1 }],
    ...(['tools', 'format'] as const).flatMap((kind) => [
      [gemini, kind, 'pattern', { type: 'string', pattern: '^a' }] as const,
      [gemini, kind, 'maxLength', { type: 'string', maxLength: 7 }] as const,
      [gemini, kind, 'oneOf', { oneOf: [{ type: 'string' }] }] as const,
      [gemini, kind, 'allOf', { allOf: [{ type: 'string' }] }] as const,
      [gemini, kind, 'format', { type: 'string', format: 'uuid' }] as const,
    ]),
  ])('of %s, in %s: 400 names %s, and without strict it goes', async (model, kind, name, keywords) => {
    const param = `${places[kind]}.properties.price.${name}`;
    const error = await errorOf(strictAsk(model, inner(keywords), { kind }));
    expect(error).toMatchObject({ status: 400, param });
    expect(openai.vendor.requests).toEqual([]);
    await strictAsk(model, inner(keywords), { kind, strict: false });
    expect(openai.vendor.requests).toHaveLength(1);
  });

  test('may have members with the names of keywords', async () => {
    const schema = { ...inner({ type: 'string' }), properties: { pattern: { type: 'string' }, if: { type: 'null' } } };
    for (const model of [claude, gemini]) {
      for (const kind of ['tools', 'format']) await strictAsk(model, schema, { kind });
    }
    expect(openai.vendor.requests).toHaveLength(4);
  });

  const withinRules = inner({
    anyOf: [
      { type: 'array', items: { type: 'string', enum: ['a', 'b'], description: 'One.' } },
      { type: 'string', format: 'date-time' },
      { $ref: '#/$defs/sum' },
      { type: 'null' },
    ],
  });

  test.each([claude, gemini])('of %s goes with what the vendor enforces', async (model) => {
    const schema = { ...withinRules, $defs: { sum: inner({ const: 'x' }) } };
    for (const kind of ['tools', 'format']) {
      await strictAsk(model, schema, { kind });
      expect(openai.vendor.requests.at(-1)?.bodyText).toMatch(/"(?:const":"x"|enum":\["x"\])/);
    }
    const bounded: Record<string, object> = {
      [claude]: { type: 'array', items: { type: 'string', pattern: '^a' }, minItems: 1 },
      [gemini]: { type: 'array', items: { type: 'number', minimum: 1, maximum: 2 }, minItems: 2, maxItems: 3 },
    };
    await strictAsk(model, inner(bounded[model] ?? {}), { kind: 'tools' });
    expect(openai.vendor.requests.at(-1)?.bodyText).toContain('"minItems"');
  });

  test('for an answer, where the model enforces none, is left out, and the answer says so', async () => {
    const headerOf = async (model: string, strict: boolean) => {
      const pending = strictAsk(model, inner({ type: 'string' }), { kind: 'format', strict });
      return (await (pending as unknown as { asResponse(): Promise<Response> }).asResponse()).headers.get(
        'annals-left-out',
      );
    };
    expect(await headerOf('anthropic/some-model', true)).toBe('strict');
    expect(await headerOf('anthropic/some-model', false)).toBeNull();
    for (const model of [claude, gemini]) expect(await headerOf(model, true)).toBeNull();
  });
});
