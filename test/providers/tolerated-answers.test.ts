import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { afterAll, describe, expect, test } from 'vitest';
import { answerLimits } from '../../src/providers/answer-limits.ts';
import type { Answer } from '../../src/providers/port.ts';
import type { Behaviour } from '../support/vendor/vendor-server.ts';
import { all, callOf, type StreamEvent, startModels, vendors } from './vendor-models.ts';

const { vendor, models, close } = await startModels();

afterAll(() => close());

const [openai, anthropic, google] = vendors;
const call = { name: 'look', input: '{"q":"x"}' };
const usage = { inputTokens: 10, outputTokens: 5 };
const figures = { prompt_tokens: '10', completion_tokens: '5' };
const named = { name: 'look', arguments: '{"q":"x"}' };

describe('an answer in one piece of a server that writes the format in its own way is used', () => {
  test.each<[string, object, Partial<Answer>]>([
    ['a choice without index', { choices: [{ message: { content: 'hi' }, finish_reason: 'stop' }] }, { text: 'hi' }],
    ['no finish reason', { choices: [{ index: 0, message: { content: 'hi' } }] }, { text: 'hi', finishReason: 'stop' }],
    ['another role', { choices: [{ index: 0, message: { role: 'bot', content: 'hi' } }] }, { text: 'hi' }],
    [
      'content in parts',
      choiceOf({
        content: [
          { type: 'text', text: 'h' },
          { type: 'text', text: 'i' },
        ],
      }),
      { text: 'hi' },
    ],
    ['annotations of its own', choiceOf({ content: 'hi', annotations: [{ type: 'file' }] }), { text: 'hi' }],
    ['usage as texts', { ...choiceOf({ content: 'hi' }), usage: figures }, { text: 'hi', usage }],
    ['a tool call without type', choiceOf({ tool_calls: [{ id: 'c1', function: named }] }), calls('c1')],
    [
      'arguments as an object',
      choiceOf({ tool_calls: [{ id: 'c1', function: { name: 'look', arguments: { q: 'x' } } }] }),
      calls('c1'),
    ],
    [
      'no arguments',
      choiceOf({ tool_calls: [{ id: 'c1', type: 'function', function: { name: 'look' } }] }),
      { toolCalls: [{ id: 'c1', name: 'look', input: '{}' }] },
    ],
  ])('%s', async (_what, body, expected) => {
    vendor.behave({ kind: 'status', status: 200, body });
    expect(await models.call(callOf(openai))).toMatchObject(expected);
  });

  test('blocks and parts of unknown types are passed over', async () => {
    const content = [
      { type: 'riddle', riddle: 1 },
      { type: 'text', text: 'hi' },
    ];
    vendor.behave({ kind: 'status', status: 200, body: { type: 'message', content, stop_reason: 'end_turn' } });
    expect(await models.call(callOf(anthropic))).toMatchObject({ text: 'hi', finishReason: 'stop' });
    const parts = [{ riddle: { hard: true } }, { text: 'hi' }];
    vendor.behave({
      kind: 'status',
      status: 200,
      body: { candidates: [{ content: { parts }, finishReason: 'STOP' }] },
    });
    expect(await models.call(callOf(google))).toMatchObject({ text: 'hi', finishReason: 'stop' });
  });
});

describe('a stream of a server that writes the format in its own way is used', () => {
  const end = [data({ choices: [{ delta: {}, finish_reason: 'stop' }] }), 'data: [DONE]\n\n'];

  test.each<[string, string[], Partial<Answer>]>([
    ['no index of choices', [data({ choices: [{ delta: { content: 'hi' } }] }), ...end], { text: 'hi' }],
    ['content in parts', [delta({ content: [{ type: 'text', text: 'hi' }] }), ...end], { text: 'hi' }],
    ['no finish reason', [delta({ content: 'hi' }), 'data: [DONE]\n\n'], { text: 'hi', finishReason: 'stop' }],
    ['no [DONE]', [delta({ content: 'hi' }), ...end.slice(0, 1)], { text: 'hi', finishReason: 'stop' }],
    ['no empty line after [DONE]', [delta({ content: 'hi' }), 'data: [DONE]'], { text: 'hi' }],
    ['usage as texts', [delta({ content: 'hi' }), data({ usage: figures }), ...end], { text: 'hi', usage }],
    [
      'events of other types',
      [delta({ content: 'hi' }), 'event: ping\ndata: now\n\n', data({ type: 'x' }), ...end],
      { text: 'hi' },
    ],
    [
      'the whole tool call as an object, without index and type',
      [delta({ tool_calls: [{ id: 'c1', function: { name: 'look', arguments: { q: 'x' } } }] }), ...end],
      calls('c1'),
    ],
    [
      'pieces of tool calls without index',
      [
        delta({ tool_calls: [{ id: 'c1', function: { name: 'look', arguments: '{"q"' } }] }),
        delta({ tool_calls: [{ function: { arguments: ':"x"}' } }] }),
        delta({ tool_calls: [{ id: 'c2', function: { name: 'look', arguments: '{"q"' } }] }),
        delta({ tool_calls: [{ id: 'c2', function: { arguments: ':"x"}' } }] }),
        ...end,
      ],
      calls('c1', 'c2'),
    ],
  ])('%s', async (_what, events, expected) => {
    vendor.behave({ kind: 'events', events });
    expect(await answerOfStream()).toMatchObject(expected);
  });

  test('tool calls without ids get some', async () => {
    const piece = { function: { name: 'look', arguments: '{}' } };
    vendor.behave({ kind: 'events', events: [delta({ tool_calls: [piece, piece] }), ...end] });
    const ids = (await answerOfStream())?.toolCalls.map(({ id }) => id) ?? [];
    expect(new Set(ids).size).toBe(2);
  });

  test('a server that does not stream is read as well', async () => {
    vendor.behave({ kind: 'status', status: 200, body: { ...choiceOf({ content: 'hi' }), usage: figures } });
    expect(await answerOfStream()).toMatchObject({ text: 'hi', usage });
  });

  test('anthropic: events, blocks and pieces of unknown types are passed over', async () => {
    const events = [
      { type: 'message_start', message: { usage: { input_tokens: '10', output_tokens: 1 } } },
      { type: 'riddle_start', hard: true },
      { type: 'content_block_start', index: 0, content_block: { type: 'riddle' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'no' } },
      { type: 'content_block_stop', index: 0 },
      { type: 'content_block_start', index: 1, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 1, delta: { type: 'riddle_delta' } },
      { type: 'content_block_delta', index: 1, delta: { type: 'text_delta', text: 'hi' } },
      { type: 'content_block_stop', index: 1 },
      { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 5 } },
      { type: 'message_stop' },
    ];
    vendor.behave({ kind: 'events', events: events.map(data) });
    expect(await answerOfStream(anthropic)).toMatchObject({ text: 'hi', finishReason: 'stop', usage });
  });

  test('google: parts of unknown kinds are passed over', async () => {
    const first = { candidates: [{ content: { parts: [{ riddle: 1 }, { text: 'hi' }] } }] };
    const last = {
      candidates: [{ content: {}, finishReason: 'STOP' }],
      usageMetadata: { promptTokenCount: '10', candidatesTokenCount: 5 },
    };
    vendor.behave({ kind: 'events', events: [data({ riddle: 1 }), data(first), data(last)] });
    expect(await answerOfStream(google)).toMatchObject({ text: 'hi', finishReason: 'stop', usage });
  });
});

test('text and usage after [DONE] are not read, and the connection is used again', async () => {
  const done = [
    'data: [DONE]\n\n',
    delta({ content: 'after' }),
    data({ choices: [], usage: { prompt_tokens: 99, completion_tokens: 99 } }),
  ];
  vendor.behave({ kind: 'events', events: [delta({ content: 'hi' }), data({ choices: [], usage: figures }), ...done] });
  const events = await all(models, callOf(openai));
  expect(textOf(events)).toBe('hi');
  expect(events.at(-1)).toMatchObject({ answer: { text: 'hi', usage } });
  await answerOfStream();
  const [before, after] = vendor.requests.slice(-2).map(({ connection }) => connection);
  expect(after).toBe(before);
});

test('a stream that stays open after [DONE] has ended', async () => {
  vendor.behave({ kind: 'events', events: [delta({ content: 'hi' }), 'data: [DONE]\n\n'], last: 'stall' });
  expect(await answerOfStream()).toMatchObject({ text: 'hi' });
});

describe('a stream that ends without the vendor saying so is cut, and its cost unknown', () => {
  const block = { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'hi' } };
  const started = { type: 'message_start', message: { usage: { input_tokens: 10, output_tokens: 1 } } };
  const text = { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } };
  const part = {
    candidates: [{ content: { parts: [{ text: 'hi' }] } }],
    usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 1 },
  };

  test.each([
    [
      'openai',
      openai,
      [delta({ content: 'hi' }), data({ choices: [], usage: { prompt_tokens: 10, completion_tokens: 1 } })],
    ],
    ['anthropic', anthropic, [started, text, block].map(data)],
    ['google', google, [data(part)]],
  ] as const)('%s', async (_name, of, events) => {
    vendor.behave({ kind: 'events', events });
    const reported = { inputTokens: 10, outputTokens: 1 };
    await expect(all(models, callOf(of))).rejects.toMatchObject({
      fault: 'broken',
      usage: 'unknown',
      isForeign: false,
      reported,
    });
  });
});

describe('an error in an answer of 200 is what it says, of unknown cost', () => {
  test.each([
    ['a number', { error: { code: 429, message: 'x' } }, 'rate_limited'],
    ['a number as a text', { error: { code: '503' } }, 'unavailable'],
    ['a code', { error: { code: 'model_not_found' } }, 'model_unknown'],
    ['a type', { error: { type: 'rate_limit_error' } }, 'rate_limited'],
    ['a text', { error: 'the model has crashed' }, 'unavailable'],
    ['an object that is one', { object: 'error', code: 400, message: 'x' }, 'request_refused'],
  ])('%s', async (_what, body, fault) => {
    vendor.behave({ kind: 'status', status: 200, body });
    const expected = { fault, usage: 'unknown', isForeign: false };
    await expect(models.call(callOf(openai))).rejects.toMatchObject(expected);
    await expect(all(models, callOf(openai))).rejects.toMatchObject(expected);
    vendor.behave({ kind: 'events', events: [delta({ content: 'hi' }), data(body)] });
    await expect(all(models, callOf(openai))).rejects.toMatchObject(expected);
  });

  test('anthropic: an overloaded server in the middle of a stream', async () => {
    vendor.behave({ kind: 'events', events: [data({ type: 'error', error: { type: 'overloaded_error' } })] });
    await expect(all(models, callOf(anthropic))).rejects.toMatchObject({ fault: 'unavailable', usage: 'unknown' });
  });
});

test.each<[string, Behaviour, boolean]>([
  ['a page', { kind: 'garbage' }, true],
  ['other JSON', { kind: 'status', status: 200, body: { hello: 'world' } }, true],
  ['an answer without a choice', { kind: 'status', status: 200, body: { choices: [] } }, false],
  ['an answer that is cut', { kind: 'cut' }, false],
])('%s is of another kind of server: %4$s', async (_what, behaviour, isForeign) => {
  vendor.behave(behaviour);
  await expect(models.call(callOf(openai))).rejects.toMatchObject({ fault: 'broken', isForeign });
  await expect(all(models, callOf(openai))).rejects.toMatchObject({ fault: 'broken', isForeign });
});

describe('an answer that comes packed', () => {
  const packers = { gzip: gzipSync, br: brotliCompressSync, deflate: deflateSync, zstd: zstdCompressSync };
  const whole = JSON.stringify(choiceOf({ content: 'hi' }));
  const stream = delta({ content: 'hi' }) + data({ choices: [{ delta: {}, finish_reason: 'stop' }] });

  test.each(Object.entries(packers))('with %s is unpacked', async (encoding, pack) => {
    const headers = { 'content-encoding': encoding };
    vendor.behave({ kind: 'bytes', headers, body: pack(Buffer.from(whole)) });
    expect(await models.call(callOf(openai))).toMatchObject({ text: 'hi' });
    expect(vendor.requests.at(-1)?.headers['accept-encoding']).toBe('identity');
    vendor.behave({ kind: 'bytes', headers, body: pack(Buffer.from(stream)) });
    expect(await answerOfStream()).toMatchObject({ text: 'hi' });
    vendor.behave({ kind: 'bytes', headers, body: pack(Buffer.from(whole)).subarray(0, -6) });
    await expect(models.call(callOf(openai))).rejects.toMatchObject({ fault: 'broken', isForeign: false });
  });

  test('may have no more bytes than one that does not', async () => {
    const body = gzipSync(Buffer.from(JSON.stringify(choiceOf({ content: 'a'.repeat(answerLimits.wholeBytes) }))));
    vendor.behave({ kind: 'bytes', headers: { 'content-encoding': 'gzip' }, body });
    await expect(models.call(callOf(openai))).rejects.toMatchObject({ fault: 'broken', usage: 'unknown' });
  });
});

test.each([
  ['as large', 10, 5],
  ['larger', 11, 6],
])(
  'parts of a count that are %s than the whole are reported as the whole, and missing ones not at all',
  async (_size, cached, reasoning) => {
    const ask = async (of: (typeof vendors)[number], body: object) => {
      vendor.behave({ kind: 'status', status: 200, body });
      return (await models.call(callOf(of))).usage;
    };
    const whole = { prompt_tokens: 10, completion_tokens: 5 };
    const chat = choiceOf({ content: 'hi' });
    expect(await ask(openai, { ...chat, usage: whole })).toEqual(usage);
    const parts = {
      prompt_tokens_details: { cached_tokens: cached },
      completion_tokens_details: { reasoning_tokens: reasoning },
    };
    const counted = { ...usage, cachedTokens: 10, reasoningTokens: 5 };
    expect(await ask(openai, { ...chat, usage: { ...whole, ...parts } })).toEqual(counted);
    const candidates = [{ content: { parts: [{ text: 'hi' }] }, finishReason: 'STOP' }];
    const usageMetadata = { promptTokenCount: 10, cachedContentTokenCount: cached, candidatesTokenCount: 5 };
    expect(await ask(google, { candidates, usageMetadata })).toEqual({ ...usage, cachedTokens: 10 });
  },
);

test('google: the signature of a thought goes back with the call that it came with', async () => {
  const parts = [{ functionCall: { name: 'look', args: { q: 'x' } }, thoughtSignature: 'signed' }];
  const body = { candidates: [{ content: { parts }, finishReason: 'STOP' }] };
  for (const streaming of [false, true]) {
    vendor.behave(streaming ? { kind: 'events', events: [data(body)] } : { kind: 'status', status: 200, body });
    const answer = streaming ? await answerOfStream(google) : await models.call(callOf(google));
    const toolCalls = answer?.toolCalls ?? [];
    expect(toolCalls).toMatchObject([{ ...call, signature: 'signed' }]);
    const results = toolCalls.map(({ id, name }) => ({ id, name, output: 'found' }));
    vendor.behave({ kind: 'answer' });
    await models.call(
      callOf(google, {
        messages: [
          { role: 'user', content: 'question' },
          { role: 'assistant', content: '', toolCalls },
          { role: 'tool', results },
        ],
      }),
    );
    expect(JSON.stringify(vendor.requests.at(-1)?.body.contents?.[1])).toContain('"thoughtSignature":"signed"');
  }
});

function data(event: object): string {
  return `data: ${JSON.stringify(event)}\n\n`;
}

function delta(of: object): string {
  return data({ choices: [{ index: 0, delta: of, finish_reason: null }] });
}

function choiceOf(message: object): object {
  return { choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason: 'stop' }] };
}

function calls(...ids: string[]): Partial<Answer> {
  return { toolCalls: ids.map((id) => ({ id, ...call })) };
}

async function answerOfStream(of: (typeof vendors)[number] = openai): Promise<Answer | undefined> {
  const last = (await all(models, callOf(of))).at(-1);
  return last?.type === 'answer' ? last.answer : undefined;
}

function textOf(events: readonly StreamEvent[]): string {
  return events.map((event) => (event.type === 'text' ? event.text : '')).join('');
}
