import { promisify } from 'node:util';
import * as zlib from 'node:zlib';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { checkLaw } from '../../support/oracle/law.ts';
import { arbitraryRequests } from '../../support/oracle/openai-requests.ts';
import { judge } from '../../support/oracle/openai-rules.ts';
import { startTestServer } from '../../support/server/server.ts';
import { startRawVendor } from '../../support/vendor/raw-vendor.ts';

// ANNALS_TRIALS=20 makes 2,000 requests, answers and streams of these.
const runs = 100;
const vendor = closeAfterAll(await startRawVendor());
const server = closeAfterAll(
  await startTestServer({
    environment: {
      OPENAI_BASE_URL: vendor.baseUrl,
      ANNALS_SHARED_PROVIDER_TOKEN: 'sk-shared',
      ANNALS_COMPLETION_MODEL: 'gpt-4.1-mini',
      ANNALS_SELF_HOSTED_ALLOW: '127.0.0.0/8',
    },
  }),
);
const token = await server.token('acme');
await server.call('/configuration/acme/configurations', {
  token,
  json: [
    { key: 'providerApiToken', value: 'sk-openai-key' },
    { key: 'selfHostedProvider', value: { url: vendor.baseUrl, apiKey: 'sk-server-key' } },
  ],
});
await server.createTenant('sharing');
const sharing = await server.token('sharing');

const operations = ['chat/completions', 'responses'] as const;
type Operation = (typeof operations)[number];
const providers = ['openai', 'self_hosted'] as const;

const json = { 'content-type': 'application/json' };
/** Answers whose figures use up little of the quota. */
const whole: Record<Operation, string> = {
  'chat/completions': '{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}',
  responses: '{"output":[],"usage":{"input_tokens":1,"output_tokens":1}}',
};

async function post(operation: Operation, body: object, by: 'acme' | 'sharing' = 'acme'): Promise<Response> {
  vendor.bodies.length = 0;
  return await server.call(`/openai/${by}/v1/${operation}`, {
    method: 'POST',
    token: by === 'acme' ? token : sharing,
    headers: json,
    body: JSON.stringify(body),
  });
}

const requestsOf = (operation: Operation) =>
  arbitraryRequests[operation].map((body) => JSON.parse(JSON.stringify(body)) as Record<string, unknown>);

test.each(operations)(
  'a random request of %s by OpenAI’s description goes out with the documented changes alone, or is 400 by a documented name',
  async (operation) => {
    let passed = 0;
    let refusals = 0;
    const list = operation === 'responses' ? 'output' : 'choices';
    await checkLaw(
      fc.tuple(requestsOf(operation), fc.constantFrom(...providers)),
      { runs },
      async ([request, provider]) => {
        const body = { ...request, model: `${provider}/m` };
        const { refused, sent, leftOut } = judge(operation, body, 'm');
        vendor.answer({ headers: json, pieces: [Buffer.from(whole[operation])] });
        if (body['stream' as never] === true) {
          const event =
            operation === 'responses' ? { type: 'response.completed', response: { [list]: [] } } : { choices: [] };
          const text = `data: ${JSON.stringify(event)}\n\ndata: [DONE]\n\n`;
          vendor.answer({ headers: { 'content-type': 'text/event-stream' }, pieces: [Buffer.from(text)] });
        }
        const response = await post(operation, body);
        const text = await response.text();
        if (response.status === 400) {
          expect([...refused]).toContain(JSON.parse(text).error.param);
          expect(vendor.bodies).toEqual([]);
          refusals += 1;
          return;
        }
        expect(response.status, text).toBe(200);
        expect([...refused]).toEqual([]);
        expect(vendor.bodies).toEqual([sent]);
        expect(response.headers.get('annals-left-out') ?? '').toBe(leftOut.join(', '));
        passed += 1;
      },
    );
    console.info(`${operation}: ${passed} passed, ${refusals} refused`);
  },
);

test.each(operations)(
  'on the shared token a random request of %s goes out with known members alone, or is 400 by a name',
  async (operation) => {
    const known = [
      ...[
        'model',
        'messages',
        'tools',
        'tool_choice',
        'parallel_tool_calls',
        'response_format',
        'temperature',
        'top_p',
      ],
      ...['max_completion_tokens', 'stop', 'stream', 'stream_options', 'reasoning_effort', 'user', 'store', 'input'],
      ...['safety_identifier', 'prompt_cache_key', 'instructions', 'max_output_tokens', 'text', 'reasoning', 'include'],
      'truncation',
    ];
    await checkLaw(requestsOf(operation), { runs }, async (request) => {
      vendor.answer({ headers: json, pieces: [Buffer.from(whole[operation])] });
      const response = await post(operation, { ...request, model: 'gpt-4.1-mini', stream: false }, 'sharing');
      const answer = JSON.parse(await response.text());
      if (response.status === 400) {
        expect(answer.error.param).toEqual(expect.any(String));
        expect(vendor.bodies).toEqual([]);
        return;
      }
      expect(response.status).toBe(200);
      const sent = JSON.parse(vendor.bodies[0] ?? '') as Record<string, unknown>;
      const others = Object.entries(sent).filter(([name, value]) => !known.includes(name) && value !== null);
      expect(others).toEqual([]);
      expect(sent).toMatchObject({ model: 'gpt-4.1-mini', store: false });
      expect(sent[operation === 'responses' ? 'max_output_tokens' : 'max_completion_tokens']).toBeLessThanOrEqual(
        4_096,
      );
    });
  },
);

/** An event as it is sent, and what it says. */
interface Event {
  readonly text: string;
  readonly value: Record<string, unknown> | '[DONE]' | undefined;
}

const numbers = fc.constantFrom('1.10', '9007199254740993', '-0', '1E+2', '0.30000000000000004');
const strings = fc.oneof(fc.string({ unit: 'grapheme', maxLength: 8 }), fc.constantFrom('Łódź 😀', 'a\nb', '\\u00e9'));
/** JSON text with any digits. */
const anyJson = fc.oneof(
  numbers,
  strings.map((text) => JSON.stringify(text)),
  fc.constantFrom('null', '[]', '{"a" : [1.0]}'),
);
const usages = fc.record({ input: fc.nat(900), output: fc.nat(900), cached: fc.nat(100) });
type Usage = { input: number; output: number; cached: number };

const usageText = (operation: Operation, { input, output, cached }: Usage) =>
  operation === 'responses'
    ? `{"input_tokens":${input},"input_tokens_details":{"cached_tokens":${cached}},"output_tokens":${output}.0,"total_tokens":1}`
    : `{"prompt_tokens":${input},"prompt_tokens_details":{"cached_tokens":${cached}},"completion_tokens":${output}.0}`;

/** How events may be written: their line ends, fields and comments, and data over several lines. */
const writings = fc.record({
  end: fc.constantFrom('\n', '\n', '\r\n', '\r'),
  name: fc.constantFrom('', '', 'event: message', 'event: response.made_up', 'id: 7', 'retry: 10', ': comment'),
  space: fc.constantFrom(' ', ' ', ''),
  isSplit: fc.boolean(),
});
type Writing = { end: string; name: string; space: string; isSplit: boolean };

function written(data: string, { end, name, space, isSplit }: Writing): string {
  // A space after the first brace is between tokens, and so is a line end.
  const lines = isSplit && data.startsWith('{"') ? ['{', data.slice(1)] : [data];
  const fields = [...(name === '' ? [] : [name]), ...lines.map((line) => `data:${space}${line}`)];
  return fields.map((field) => field + end).join('') + end;
}

const chunks = (operation: Operation) =>
  fc
    .tuple(anyJson, strings, anyJson)
    .map(([odd, text, more]) =>
      operation === 'responses'
        ? `{"type":"response.output_text.delta","delta":${JSON.stringify(text)},"odd":${odd},"more":${more}}`
        : `{"odd":${odd},"choices":[{"index":0,"delta":{"content":${JSON.stringify(text)},"x":${more}},"finish_reason":null}],"usage":null}`,
    );

interface Stream {
  readonly events: readonly Event[];
  /** Of the whole stream. */
  readonly usage: Usage | undefined;
}

const streams = (operation: Operation): fc.Arbitrary<Stream> =>
  fc
    .record({
      parts: fc.array(fc.tuple(chunks(operation), writings, fc.boolean()), { minLength: 1, maxLength: 6 }),
      usage: fc.option(usages, { nil: undefined }),
      end: writings,
      hasDone: fc.boolean(),
    })
    .map(({ parts, usage, end, hasDone }) => {
      const events: Event[] = parts.flatMap(([data, writing, hasComment]): Event[] => [
        ...(hasComment ? [{ text: `: alive${writing.end}${writing.end}`, value: undefined }] : []),
        { text: written(data, writing), value: JSON.parse(data) },
      ]);
      const figures = usage === undefined ? undefined : usageText(operation, usage);
      const add = (data: string) => events.push({ text: written(data, end), value: JSON.parse(data) });
      if (operation === 'responses') {
        add(`{"type":"response.completed","response":{"output":[],"usage":${figures ?? 'null'}}}`);
      } else {
        add('{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}');
        if (figures !== undefined) add(`{"id":"c","choices":[],"usage":${figures}}`);
        if (hasDone) events.push({ text: `data: [DONE]${end.end}${end.end}`, value: '[DONE]' });
      }
      return { events, usage };
    });

/** Cuts bytes at these shares of them. */
function piecesOf(bytes: Uint8Array, shares: readonly number[]): Uint8Array[] {
  const places = shares.map((cut) => Math.floor(cut * bytes.length)).sort((a, b) => a - b);
  return [0, ...places].map((from, index) => bytes.subarray(from, places[index])).filter(({ length }) => length > 0);
}
const cuts = fc.array(fc.double({ min: 0, max: 0.999, noNaN: true }), { maxLength: 8 });

const encodings: Record<string, (bytes: Uint8Array) => Promise<Buffer>> = {
  identity: async (bytes) => Buffer.from(bytes),
  gzip: promisify(zlib.gzip),
  br: promisify(zlib.brotliCompress),
  deflate: promisify(zlib.deflate),
  zstd: promisify(zlib.zstdCompress),
};
const anyEncoding = fc.constantFrom(...Object.keys(encodings));

/** What a client reads, and whether its connection was cut. */
async function read(response: Response): Promise<{ text: string; isCut: boolean }> {
  const parts: Uint8Array[] = [];
  try {
    for await (const part of response.body ?? []) parts.push(part);
    return { text: Buffer.concat(parts).toString(), isCut: false };
  } catch {
    return { text: Buffer.concat(parts).toString(), isCut: true };
  }
}

/** The figures of the last call. */
async function recorded(): Promise<unknown> {
  const response = await server.call('/usage/acme/calls?sort=_id:DESC&_page.size=1', { token });
  const [call] = (await response.json()) as Record<string, unknown>[];
  return [call?.inputTokens, call?.outputTokens, call?.cachedTokens];
}

const figuresOf = (usage: Usage | undefined) =>
  usage && [usage.input, usage.output, Math.min(usage.cached, usage.input)];

test.each(operations)(
  'the bytes of a random answer of %s come back whatever their encoding and pieces, and its figures are recorded',
  async (operation) => {
    const list = operation === 'responses' ? 'output' : 'choices';
    const answers = fc.record({
      odd: anyJson,
      items: fc.array(anyJson, { maxLength: 3 }),
      usage: usages,
      encoding: anyEncoding,
      cuts,
      provider: fc.constantFrom(...providers),
    });
    await checkLaw(answers, { runs }, async ({ odd, items, usage, encoding, cuts: places, provider }) => {
      const text = ` {"odd" : ${odd},\n"${list}":[ ${items.join(' ,')} ],"usage":${usageText(operation, usage)} }\n`;
      const bytes = await encodings[encoding]?.(Buffer.from(text));
      const headers = { ...json, ...(encoding === 'identity' ? {} : { 'content-encoding': encoding }) };
      vendor.answer({ headers, pieces: piecesOf(bytes ?? Buffer.alloc(0), places) });
      const response = await post(operation, {
        model: `${provider}/m`,
        input: 'x',
        messages: [{ role: 'user', content: 'x' }],
      });
      expect(await response.text()).toBe(text);
      expect(response.headers.get('content-encoding')).toBeNull();
      expect(await recorded()).toEqual(figuresOf(usage));
    });
  },
);

test.each(operations)(
  'the events of a random stream of %s come back as they were sent, less the figures that were not asked for',
  async (operation) => {
    const calls = fc.record({
      stream: streams(operation),
      isAsked: fc.boolean(),
      encoding: anyEncoding,
      cuts,
      provider: fc.constantFrom(...providers),
      // Whether the last event lacks its blank line.
      isOpen: fc.boolean(),
    });
    await checkLaw(
      calls,
      { runs },
      async ({ stream: { events, usage }, isAsked, encoding, cuts: places, provider, isOpen }) => {
        const texts = events.map((event) => event.text);
        if (isOpen) texts.push((texts.pop() ?? '').replace(/[\r\n]+$/, ''));
        const bytes = await encodings[encoding]?.(Buffer.from(texts.join('')));
        const type = { 'content-type': 'text/event-stream' };
        const headers = { ...type, ...(encoding === 'identity' ? {} : { 'content-encoding': encoding }) };
        vendor.answer({ headers, pieces: piecesOf(bytes ?? Buffer.alloc(0), places) });
        const { text, isCut } = await read(await post(operation, requestOf(operation, provider, isAsked)));
        const passed = texts.filter((_, index) => isPassed(events[index], { operation, provider, isAsked }));
        expect(text).toBe(passed.join(''));
        expect(isCut).toBe(false);
        if (usage !== undefined) expect(await recorded()).toEqual(figuresOf(usage));
      },
    );
  },
);

test.each(operations)(
  'a random stream of %s that is cut or ends early ends as cut: with its whole events, an error, and no end mark of ours',
  async (operation) => {
    const calls = fc.record({
      stream: streams(operation),
      at: fc.double({ min: 0, max: 0.999, noNaN: true }),
      cuts,
      provider: fc.constantFrom(...providers),
      // Or else the answer ends as if it were whole.
      isCutOff: fc.boolean(),
    });
    await checkLaw(calls, { runs }, async ({ stream: { events }, at, cuts: places, provider, isCutOff }) => {
      const all = Buffer.from(events.map((event) => event.text).join(''));
      const bytes = all.subarray(0, Math.floor(at * all.length));
      const headers = { 'content-type': 'text/event-stream' };
      vendor.answer({ headers, pieces: piecesOf(bytes, places), isCut: isCutOff });
      const { text, isCut } = await read(await post(operation, requestOf(operation, provider, true)));
      const got: Event[] = [];
      let length = 0;
      for (const event of events) {
        if (length + Buffer.byteLength(event.text) > bytes.length) break;
        length += Buffer.byteLength(event.text);
        got.push(event);
      }
      const passed = got.filter((event) => isPassed(event, { operation, provider, isAsked: true }));
      const said = passed.map((event) => event.text).join('');
      const rest = bytes.subarray(length).toString();
      const next = events[got.length];
      if (!isCutOff && next !== undefined && withoutEnd(rest) === withoutEnd(next.text) && ends(next.value)) {
        // The last event needs no blank line.
        expect({ text, isCut }).toEqual({ text: said + rest, isCut: false });
        return;
      }
      if (!isCutOff && rest !== '' && got.some(({ value }) => ends(value))) {
        // Half of an event may follow the end of an answer.
        expect(text.startsWith(said)).toBe(true);
        return;
      }
      if (got.some(({ value }) => ends(value))) {
        expect({ text, isCut }).toEqual({ text: said, isCut: false });
        return;
      }
      expect(isCut).toBe(true);
      expect(text.startsWith(said)).toBe(true);
      expect(text.slice(said.length)).toMatch(
        /^(?:event: error\ndata: \{"type":"error".*\}|data: \{"error":.*\})\n\n$/,
      );
    });
  },
);

function requestOf(operation: Operation, provider: string, isAsked: boolean): object {
  const model = `${provider}/m`;
  if (operation === 'responses') return { model, input: 'x', stream: true };
  const options = isAsked ? { stream_options: { include_usage: true } } : {};
  return { model, messages: [{ role: 'user', content: 'x' }], stream: true, ...options };
}

function withoutEnd(text: string): string {
  return text.replace(/[\r\n]+$/, '');
}

/** Whether the answer is complete with this event. */
function ends(value: Event['value']): boolean {
  if (value === undefined || value === '[DONE]') return value !== undefined;
  const [choice] = (value.choices ?? []) as { finish_reason?: unknown }[];
  return value.type === 'response.completed' || typeof choice?.finish_reason === 'string';
}

function isPassed(
  event: Event | undefined,
  { operation, provider, isAsked }: { operation: Operation; provider: string; isAsked: boolean },
): boolean {
  const value = event?.value;
  if (value === undefined) return provider === 'openai';
  if (value === '[DONE]' || operation === 'responses' || isAsked) return true;
  return !(Array.isArray(value.choices) && value.choices.length === 0);
}
