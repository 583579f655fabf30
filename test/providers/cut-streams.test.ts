import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { streamed } from '../../src/providers/answer-body.ts';
import { answerLimits } from '../../src/providers/answer-limits.ts';
import type { FetchOptions, HttpExchange } from '../../src/providers/http-exchange.ts';
import { createLanguageModels } from '../../src/providers/language-models.ts';
import { type Answer, type ModelCall, type PassedOperation, ProviderError } from '../../src/providers/port.ts';
import { Random } from '../support/oracle/random.ts';
import { trials } from '../support/oracle/trials.ts';
import { vendorFormats } from '../support/vendor/vendor-formats.ts';

const sse = (event: object, name?: string) =>
  `${name === undefined ? '' : `event: ${name}\n`}data: ${JSON.stringify(event)}\n\n`;
const named = (event: { type: string; [member: string]: unknown }) => sse(event, event.type);
const choice = (delta: object, finish_reason: string | null = null) =>
  sse({ choices: [{ index: 0, delta, finish_reason }] });
const called = (index: number, more: object) => choice({ tool_calls: [{ index, ...more }] });

/** Text, two calls in pieces where the vendor has them, and reasoning with a signature where it signs. */
const streams: Readonly<Record<'openai' | 'anthropic' | 'google', string>> = {
  openai: [
    choice({ role: 'assistant', content: 'Łódź ' }),
    choice({ content: 'it is.' }),
    called(0, { id: 'call_1', type: 'function', function: { name: 'weather', arguments: '' } }),
    called(0, { function: { arguments: '{"city":"Łó' } }),
    called(0, { function: { arguments: 'dź"}' } }),
    called(1, { id: 'call_2', type: 'function', function: { name: 'time', arguments: '{}' } }),
    choice({}, 'tool_calls'),
    sse({ choices: [], usage: { prompt_tokens: 9, completion_tokens: 8 } }),
    'data: [DONE]\n\n',
  ].join(''),
  anthropic: [
    named({ type: 'message_start', message: { usage: { input_tokens: 9, output_tokens: 1 } } }),
    named({ type: 'content_block_start', index: 0, content_block: { type: 'thinking', thinking: '', signature: '' } }),
    named({ type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking: 'It is far.' } }),
    named({ type: 'content_block_delta', index: 0, delta: { type: 'signature_delta', signature: 'signed' } }),
    named({ type: 'content_block_stop', index: 0 }),
    named({ type: 'content_block_start', index: 1, content_block: { type: 'text', text: '' } }),
    named({ type: 'content_block_delta', index: 1, delta: { type: 'text_delta', text: 'Łódź it is.' } }),
    named({ type: 'content_block_stop', index: 1 }),
    named({
      type: 'content_block_start',
      index: 2,
      content_block: { type: 'tool_use', id: 'call_1', name: 'weather', input: {} },
    }),
    named({ type: 'content_block_delta', index: 2, delta: { type: 'input_json_delta', partial_json: '{"city":"Łó' } }),
    named({ type: 'content_block_delta', index: 2, delta: { type: 'input_json_delta', partial_json: 'dź"}' } }),
    named({ type: 'content_block_stop', index: 2 }),
    named({ type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 8 } }),
    named({ type: 'message_stop' }),
  ].join(''),
  google: [
    sse({ candidates: [{ content: { parts: [{ text: 'Łódź ' }] } }] }),
    sse({ candidates: [{ content: { parts: [{ text: 'it is.' }] } }] }),
    sse({
      candidates: [
        {
          content: {
            parts: [
              { functionCall: { id: 'call_1', name: 'weather', args: { city: 'Łódź' } }, thoughtSignature: 'signed' },
            ],
          },
          finishReason: 'STOP',
        },
      ],
      usageMetadata: { promptTokenCount: 9, candidatesTokenCount: 8, totalTokenCount: 17 },
    }),
  ].join(''),
};

interface Outcome {
  answer: Answer | undefined;
  error: unknown;
  text: string;
  inputs: string[];
}

/** A call that is answered with these bytes, in these pieces, without a network. */
async function read(
  call: Pick<ModelCall, 'provider' | 'passThrough'>,
  pieces: readonly Uint8Array[],
): Promise<Outcome> {
  const answered = (exchange: HttpExchange) => Object.assign(exchange, { requests: 1, left: true, answered: true });
  const transport = {
    fetchFor: (exchange: HttpExchange, options: FetchOptions) => async () => {
      options.reader.passes?.begin(exchange, {});
      return streamed(Readable.from(pieces), { ...options, exchange: answered(exchange), release: () => {} });
    },
    close: () => {},
  };
  const models = createLanguageModels({ baseUrls: {}, transports: { vendors: transport } });
  const outcome: Outcome = { answer: undefined, error: undefined, text: '', inputs: [] };
  const request = {
    model: 'some-model',
    apiKey: 'k',
    messages: [{ role: 'user' as const, content: 'x' }],
    maxTokens: 100,
    times: { silence: 60_000, total: 60_000 },
    onToolCall: ({ index, input }: { index: number; input: string }) => {
      outcome.inputs[index] = (outcome.inputs[index] ?? '') + input;
    },
  };
  try {
    outcome.answer = await models.call({ ...request, ...call }, (text) => {
      outcome.text += text;
    });
  } catch (error) {
    outcome.error = error;
  }
  return outcome;
}

/** A seventh of them in an ordinary run, others each time. */
function everyPlace({ length }: Uint8Array): number[] {
  const step = trials(1) > 1 ? 1 : 7;
  const first = 1 + new Random().below(step);
  const places = Array.from({ length: Math.ceil((length - first) / step) }, (_, index) => first + index * step);
  // Before its last byte, an empty line's second, each stream is whole.
  return [...new Set([...places, length - 1])];
}

test.each(Object.entries(streams) as ['openai', string][])(
  'a stream of %s that comes in two pieces is the same, wherever the second one begins',
  async (provider, stream) => {
    const bytes = Buffer.from(stream);
    const whole = await read({ provider }, [bytes]);
    expect(whole).toMatchObject({ error: undefined, text: 'Łódź it is.' });
    expect(whole.answer?.usage).toMatchObject({ inputTokens: 9, outputTokens: 8 });
    expect(JSON.parse(whole.inputs[0] ?? '')).toEqual({ city: 'Łódź' });
    for (const place of everyPlace(bytes))
      expect(await read({ provider }, [bytes.subarray(0, place), bytes.subarray(place)]), `at ${place}`).toEqual(whole);
  },
);

/** What servers and proxies put between events, or leave out. */
const untidy: Readonly<Record<string, (stream: string) => string>> = {
  'keep-alives without data': (stream) => stream.replaceAll('\n\n', '\n\ndata: \n\ndata:\n\n'),
  'comments, pings and events of unknown types': (stream) =>
    stream.replaceAll('\n\n', '\n\n: alive\n\ndata: {"type":"ping"}\n\nevent: news\ndata: none\n\n'),
  'line ends of two characters': (stream) => stream.replaceAll('\n', '\r\n'),
  'blank lines that are lost': (stream) => `${stream.replaceAll('\n\n', '\n')}\n`,
};

test.each(
  Object.keys(untidy).flatMap((name) => Object.keys(streams).map((provider) => [name, provider as 'openai'] as const)),
)('%s change nothing in a stream of %s, wherever a second piece begins', async (name, provider) => {
  const tidy = await read({ provider }, [Buffer.from(streams[provider])]);
  const bytes = Buffer.from(untidy[name]?.(streams[provider]) ?? '');
  expect(await read({ provider }, [bytes])).toEqual(tidy);
  for (const place of everyPlace(bytes))
    expect(await read({ provider }, [bytes.subarray(0, place), bytes.subarray(place)]), `at ${place}`).toEqual(tidy);
});

test.each(Object.entries(streams) as ['openai', string][])(
  'a stream of %s that ends after any byte is the whole answer, or an error after a part of it whose cost is unknown',
  async (provider, stream) => {
    const bytes = Buffer.from(stream);
    const whole = await read({ provider }, [bytes]);
    let hasBeenWhole = false;
    for (const place of everyPlace(bytes)) {
      const { answer, error, text, inputs } = await read({ provider }, [bytes.subarray(0, place)]);
      expect('Łódź it is.'.startsWith(text), `at ${place}: ${text}`).toBe(true);
      for (const [index, input] of inputs.entries()) expect(whole.inputs[index]?.startsWith(input)).toBe(true);
      if (answer === undefined) {
        expect(error, `at ${place}`).toMatchObject({ fault: 'broken' });
        // All figures have come before the last event of some vendors.
        if (error instanceof ProviderError && error.usage !== 'unknown')
          expect(error.usage).toEqual(whole.answer?.usage);
        continue;
      }
      hasBeenWhole = true;
      const { usage, ...said } = answer;
      expect({ ...said, usage: whole.answer?.usage }, `at ${place}`).toEqual(whole.answer);
      // Figures that have not come are unknown, and never others.
      for (const [name, figure] of Object.entries(usage))
        expect([undefined, whole.answer?.usage[name as 'inputTokens']]).toContain(figure);
    }
    expect(hasBeenWhole).toBe(true);
  },
);

/** A stream that is passed through, with the text that its client gets. */
async function pass(operation: PassedOperation, pieces: readonly Uint8Array[], hidesUsage = false) {
  let passed = '';
  const passThrough = {
    operation,
    bytes: () => new Uint8Array(2),
    headers: {},
    hidesUsage,
    onText: (text: string) => {
      passed += text;
    },
  };
  const provider = operation === 'messages' ? 'anthropic' : 'openai';
  const { answer, error } = await read({ provider, passThrough }, pieces);
  return { answer, error, passed };
}

/** The operations whose streams are passed through, with what their last figures come with or after. */
const ends = {
  'chat/completions': '"finish_reason":"stop"',
  responses: 'response.completed',
  messages: 'data: {"type":"message_stop"',
} as const;
const operations = Object.keys(ends) as (keyof typeof ends)[];
const passedStreams = Object.fromEntries(
  operations.map((operation) => {
    const format = vendorFormats.find(({ read: reads }) => reads(`/v1/${operation}`, {}) !== undefined);
    const events = format?.events({ text: 'Łódź it is.', usage: { input: 9, output: 8 } }) ?? [];
    return [operation, [': begun\n\n', ...events, ...(operation === 'responses' ? [': the end\n\n'] : [])]];
  }),
) as Record<PassedOperation, string[]>;

const lineEnds = ['\n', '\r\n', '\r'] as const;

test.each(operations.flatMap((operation) => lineEnds.map((end) => [operation, JSON.stringify(end), end] as const)))(
  'a stream of %s is passed on byte for byte, wherever a second piece begins, with %s as its line end',
  async (operation, _, end) => {
    const stream = passedStreams[operation].join('').replaceAll('\n', end);
    const bytes = Buffer.from(stream);
    for (const place of everyPlace(bytes)) {
      const { answer, error, passed } = await pass(operation, [bytes.subarray(0, place), bytes.subarray(place)]);
      expect({ error, passed }, `at ${place}`).toEqual({ error: undefined, passed: stream });
      expect(answer).toMatchObject({ finishReason: 'stop', usage: { inputTokens: 9, outputTokens: 8 } });
    }
  },
);

test.each(operations)(
  'a stream of %s that ends after any byte passes whole events on, and is an error until it is complete',
  async (operation) => {
    const events = passedStreams[operation];
    const bytes = Buffer.from(events.join(''));
    const beginnings = events.map((_, index) => events.slice(0, index).join(''));
    for (const place of everyPlace(bytes)) {
      const sent = bytes.toString('utf8', 0, place);
      const { answer, error, passed } = await pass(operation, [bytes.subarray(0, place)]);
      if (answer === undefined) {
        expect(beginnings, `at ${place}`).toContain(passed);
        const { usage } = error as ProviderError;
        // Figures that come before the end count. Of an event without a blank line after it they are read too.
        const hasFigures = operation === 'messages' && passed.includes('"stop_reason":"end_turn"');
        if (hasFigures) expect(usage).toMatchObject({ inputTokens: 9, outputTokens: 8 });
        else if (!sent.includes('"stop_reason":"end_turn"')) expect(usage).toBe('unknown');
        expect(error).toMatchObject({ fault: 'broken' });
      } else {
        expect(bytes.toString('utf8').startsWith(passed), `at ${place}`).toBe(true);
        expect(passed).toContain(ends[operation]);
      }
    }
  },
);

test('the event with the figures is taken out where the client did not ask for it, and no other', async () => {
  const events = passedStreams['chat/completions'];
  const bytes = Buffer.from(events.join(''));
  const others = events.filter((event) => !event.includes('"usage":{')).join('');
  expect(others).not.toBe(events.join(''));
  for (const place of everyPlace(bytes)) {
    const { answer, passed } = await pass('chat/completions', [bytes.subarray(0, place), bytes.subarray(place)], true);
    expect(passed, `at ${place}`).toBe(others);
    expect(answer?.usage).toMatchObject({ inputTokens: 9, outputTokens: 8 });
  }
});

test.each([answerLimits.begunEventBytes - 4_096, answerLimits.begunEventBytes + 4_096])(
  'of an event of %i bytes, 64 KiB are passed on before its end, and less is not',
  async (length) => {
    const begun = Buffer.from(`data: {"choices":[{"index":0,"delta":{"content":"${'x'.repeat(length)}`);
    const { error, passed } = await pass('chat/completions', [begun]);
    expect(error).toMatchObject({ fault: 'broken' });
    expect(passed.length >= answerLimits.begunEventBytes).toBe(length > answerLimits.begunEventBytes);
    if (passed !== '') expect(begun.toString('utf8').startsWith(passed)).toBe(true);
    else expect(length).toBeLessThan(answerLimits.begunEventBytes);
  },
);
