import type OpenAI from 'openai';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { errorOf } from './errors.ts';
import { type OpenaiServer, providers, startOpenai } from './openai-server.ts';

const tenant = 'acme';
const user = { role: 'user', content: 'Hello' } as const;
const translated = ['anthropic', 'google'] as const;
const tools = [
  { type: 'function', function: { name: 'pay', parameters: { type: 'object', properties: {} } } },
] as const;

let openai: OpenaiServer;
let client: OpenAI;

beforeAll(async () => {
  openai = await startOpenai();
  await openai.tenantWithKeys(tenant);
  client = await openai.clientOf(tenant);
});

beforeEach(() => {
  openai.vendor.behave({ kind: 'answer', text: 'one two three', usage: { input: 7, output: 3 } });
  openai.vendor.requests.length = 0;
});

afterAll(() => openai.close());

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
  const args = '{"id":9007199254740993,"price":1.10,"big":1e400,"2":{"b":-0,"a":[0.0]},"1":"\\u00e9 1.10 \\"é\\""}';

  const whole: Record<(typeof providers)[number], string> = {
    openai: `{"choices":[{"message":{"tool_calls":[{"id":"c1","type":"function","function":{"name":"pay","arguments":${JSON.stringify(args)}}}]},"finish_reason":"tool_calls"}]}`,
    self_hosted: `{"choices":[{"message":{"tool_calls":[{"id":"c1","function":{"name":"pay","arguments": ${args}}}]},"finish_reason":"tool_calls"}]}`,
    anthropic: `{"content":[{"type":"tool_use","id":"c1","name":"pay","input": ${args}}],"stop_reason":"tool_use"}`,
    google: `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"pay","args" :\n${args}}}]},"finishReason":"STOP"}]}`,
  };

  test.each(providers)('of %s reach the client with every digit, and go back so', async (provider) => {
    answerJson(whole[provider]);
    expect(argumentsOf(await ask(provider))).toEqual([args]);
    openai.vendor.behave({ kind: 'answer' });
    await ask(provider, called(args));
    const sent = openai.vendor.requests.at(-1)?.bodyText;
    expect(sent).toContain(translated.some((name) => name === provider) ? args : JSON.stringify(args));
  });

  test.each(providers)('of a stream of %s have every digit too', async (provider) => {
    const event = (data: string) => `data: ${data}\n\n`;
    const half = args.length / 2;
    const pieces = [args.slice(0, half), args.slice(half)].map((piece) => JSON.stringify(piece));
    const block = (type: string, more: string) => event(`{"type":"${type}","index":0${more}}`);
    const events: Record<(typeof providers)[number], string[]> = {
      openai: [
        event('{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"pay"}}]}}]}'),
        ...pieces.map((piece) =>
          event(`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":${piece}}}]}}]}`),
        ),
        event('{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}'),
      ],
      self_hosted: [event(whole.self_hosted.replace('"message"', '"delta"'))],
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

  test.each(providers)('that are left out are an empty object for %s', async (provider) => {
    await ask(provider, called(''));
    expect(openai.vendor.requests.at(-1)?.bodyText).toMatch(/"(arguments|input|args)":("\{\}"|\{\})/);
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
