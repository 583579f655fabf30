import { OpenAIEmbeddings } from '@langchain/openai';
import type OpenAI from 'openai';
import { beforeEach, describe, expect, test } from 'vitest';
import { formatLimits } from '../../../src/desk/formats/limits.ts';
import { openaiLimits } from '../../../src/desk/openai/limits.ts';
import { answerLimits } from '../../../src/providers/answer-limits.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import type { Behaviour } from '../../support/vendor/vendor-server.ts';
import { errorOf } from './errors.ts';
import { startOpenai } from './openai-server.ts';

const tenant = 'acme';
const model = 'openai/text-embedding-3-small';
const passed = ['openai', 'self_hosted'] as const;

const openai = closeAfterAll(await startOpenai());
await openai.tenantWithKeys(tenant);
const client = await openai.clientOf(tenant);
const token = await openai.server.token(tenant);

beforeEach(() => {
  openai.vendor.behave({ kind: 'answer', usage: { input: 7, output: 0 } });
  openai.vendor.requests.length = 0;
});

function post(body: string, headers: Record<string, string> = {}, by = { tenant, token }): Promise<Response> {
  return fetch(`${openai.server.baseUrl}/openai/${by.tenant}/v1/embeddings`, {
    method: 'POST',
    headers: { authorization: `Bearer ${by.token}`, 'content-type': 'application/json', ...headers },
    body,
  });
}

function embed(body: Record<string, unknown>): Promise<unknown> {
  return client.embeddings.create({ model, input: 'Hello', ...body } as never);
}

async function lastCalls(of = tenant): Promise<Record<string, unknown>[]> {
  const response = await openai.server.call(`/usage/${of}/calls?sort=_id:DESC`, {
    token: await openai.server.token(of),
  });
  return (await response.json()) as Record<string, unknown>[];
}

test.each(passed)(
  'a request to %s goes out as it came but for the name of its model, and the answer comes back so',
  async (provider) => {
    const answer =
      '{ "object":"list", "data":[{"object":"embedding","index":0,"embedding":[1.0, -0,1e-400,0.12345678901234567890]}],\n' +
      '"model":"m-1", "usage":{"prompt_tokens":3,"total_tokens":3}, "made_up":1.10}';
    const headers = { 'content-type': 'application/json', 'x-request-id': 'req-of-vendor' };
    openai.vendor.behave({ kind: 'bytes', headers, body: Buffer.from(answer) });
    const rest =
      '"input" : ["H\\u00e9llo", "W"], "encoding_format":"float",  "dimensions":2.0, "user":"jane","made_up":1.10}';
    const response = await post(`{"model":"${provider}/m", ${rest}`);
    expect(response.status).toBe(200);
    expect(await response.text()).toBe(answer);
    expect(response.headers.get('x-request-id')).toBe('req-of-vendor');
    expect(openai.vendor.requests.at(-1)?.bodyText).toBe(`{"model":"m", ${rest}`);
    expect((await lastCalls())[0]).toMatchObject({
      operation: 'openai',
      provider,
      model: 'm',
      user: 'jane',
      inputTokens: 3,
      outputTokens: 0,
      costUsd: provider === 'openai' ? null : '0',
    });
  },
);

test('the package of OpenAI asks for base64 and reads numbers, and so does LangChain', async () => {
  const vectors = [
    [0.25, -1],
    [2, 0.5],
  ];
  openai.vendor.behave(({ body }) => {
    const isBase64 = Reflect.get(body, 'encoding_format') === 'base64';
    const inputs = Array.isArray(body.input) ? body.input : [body.input];
    const data = inputs.map((_, index) => {
      const vector = vectors[index] ?? [];
      const embedding = isBase64 ? Buffer.from(new Float32Array(vector).buffer).toString('base64') : vector;
      return { object: 'embedding', index, embedding };
    });
    return {
      kind: 'status',
      status: 200,
      body: { object: 'list', data, model: 'm', usage: { prompt_tokens: 2, total_tokens: 2 } },
    };
  });
  const { data, usage } = await client.embeddings.create({ model, input: ['a', 'b'] });
  expect(data.map(({ embedding }) => embedding)).toEqual(vectors);
  expect(usage).toEqual({ prompt_tokens: 2, total_tokens: 2 });
  expect(openai.vendor.requests.at(-1)?.body).toMatchObject({ encoding_format: 'base64' });
  const embeddings = new OpenAIEmbeddings({
    model,
    apiKey: token,
    maxRetries: 0,
    configuration: { baseURL: `${openai.server.baseUrl}/openai/${tenant}/v1` },
  });
  expect(await embeddings.embedDocuments(['a', 'b'])).toEqual(vectors);
  expect(await embeddings.embedQuery('a')).toEqual(vectors[0]);
});

test('it costs its input alone, at the price of the model', async () => {
  await embed({});
  expect((await lastCalls())[0]).toMatchObject({
    model: 'text-embedding-3-small',
    inputTokens: 7,
    costUsd: '0.00000014',
  });
  openai.vendor.behave({ kind: 'answer', usage: undefined } as never);
  await embed({});
  const [call] = await lastCalls();
  expect(call).toMatchObject({ costUsd: null });
  expect(call).not.toHaveProperty('inputTokens');
  expect(call).not.toHaveProperty('outputTokens');
});

describe('under a budget', () => {
  let tenants = 0;
  async function frugal(limitTokens: number, of = model): Promise<(input: unknown) => Promise<Response>> {
    tenants += 1;
    const name = `frugal${tenants}`;
    await openai.tenantWithKeys(name);
    const by = { tenant: name, token: await openai.server.token(name) };
    const json = { period: 'lifetime', limitTokens };
    const made = await openai.server.call(`/usage/${name}/budgets/all`, { method: 'PUT', token: by.token, json });
    expect(made.status).toBeLessThan(300);
    return (input) => post(JSON.stringify({ model: of, input }), {}, by);
  }

  test.each(passed)('token ids for %s reserve their number, and are settled as reported', async (provider) => {
    const ask = await frugal(10, `${provider}/text-embedding-3-small`);
    openai.vendor.behave({ kind: 'answer', usage: { input: 4, output: 0 } });
    expect((await ask(Array(11).fill(5))).status).toBe(429);
    expect((await ask([Array(6).fill(5), Array(5).fill(5)])).status).toBe(429);
    expect(openai.vendor.requests).toEqual([]);
    expect((await ask([Array(6).fill(5), Array(4).fill(5)])).status).toBe(200);
    expect((await ask(Array(7).fill(5))).status).toBe(429);
    expect((await ask(Array(6).fill(5))).status).toBe(200);
    expect((await ask([5, 5, 5])).status).toBe(429);
    expect((await ask([5, 5])).status).toBe(200);
  });

  test('texts reserve their bytes', async () => {
    const body = Buffer.byteLength(JSON.stringify({ model: 'text-embedding-3-small', input: 'é'.repeat(100) }));
    const ask = await frugal(body + 64);
    openai.vendor.behave({ kind: 'answer', usage: { input: 0, output: 0 } });
    expect((await ask(`${'é'.repeat(100)}x`)).status).toBe(429);
    expect((await ask('é'.repeat(100))).status).toBe(200);
  });

  test.each<[string, Behaviour, number]>([
    ['404', { kind: 'status', status: 404 }, 400],
    ['429', { kind: 'status', status: 429 }, 429],
    ['500', { kind: 'status', status: 500 }, 502],
  ])('a refusal, %s, costs nothing', async (_what, behaviour, status) => {
    const ask = await frugal(10);
    openai.vendor.behave(behaviour);
    const refused = await ask(Array(10).fill(5));
    expect([refused.status, refused.headers.get('x-should-retry')]).toEqual([status, null]);
    openai.vendor.behave({ kind: 'answer' });
    expect((await ask(Array(10).fill(5))).status).toBe(200);
  });

  test.each<[string, Behaviour, number]>([
    ['502', { kind: 'status', status: 502 }, 502],
    ['an answer cut in the middle', { kind: 'cut' }, 502],
    ['no JSON', { kind: 'garbage' }, 502],
    ['no figures', { kind: 'status', status: 200, body: { data: [] } }, 200],
  ])('%s is charged what the call reserved', async (_what, behaviour, status) => {
    const ask = await frugal(10);
    openai.vendor.behave(behaviour);
    const failed = await ask(Array(9).fill(5));
    expect([failed.status, failed.headers.get('x-should-retry')]).toEqual([status, status === 200 ? null : 'false']);
    openai.vendor.behave({ kind: 'answer' });
    expect((await ask([5, 5])).status).toBe(429);
    expect((await ask([5])).status).toBe(200);
  });
});

test.each<[string, Record<string, unknown>]>([
  ['input', { input: undefined }],
  ['input', { input: [] }],
  ['input', { input: 7 }],
  ['input', { input: [''.padEnd(3, 'x'), 7] }],
  ['input', { input: [[1], 'x'] }],
  ['input', { input: [[]] }],
  ['input', { input: [1, -1] }],
  ['input', { input: [1, 1.5] }],
  ['input', { input: [{ image: 'https://example.com/a.png' }] }],
  ['input', { input: { text: 'x' } }],
  ['model', { model: 7 }],
  ['model', { model: 'anthropic/claude-sonnet-5-5' }],
  ['model', { model: 'google/gemini-embedding-001' }],
  ['user', { user: 'x'.repeat(201) }],
  ['stream', { stream: true }],
  ['store', { store: true }],
  ['messages', { messages: [{ role: 'user', content: 'x' }] }],
  ['prompt', { prompt: { id: 'x' } }],
  ['Input', { Input: 'x' }],
  ['ENCODING_FORMAT', { ENCODING_FORMAT: 'float' }],
  ['file_id', { file_id: 'x' }],
])('400 names %s, and nothing is sent: %j', async (param, body) => {
  expect(await errorOf(embed(body))).toMatchObject({ status: 400, param });
  expect(openai.vendor.requests).toEqual([]);
});

test.each(['model', 'input', 'encoding_format', 'dimensions', 'user'])(
  'a member that comes twice is 400, in any order and escaped: %s',
  async (name) => {
    const values: Record<string, [string, string]> = {
      model: ['"openai/a"', '"openai/b"'],
      input: ['"a"', '"b"'],
      encoding_format: ['"float"', '"base64"'],
      dimensions: ['1', '2'],
      user: ['"a"', '"b"'],
    };
    const [one, two] = values[name] ?? ['', ''];
    const escaped = `${name.slice(0, 1)}\\u${name.charCodeAt(1).toString(16).padStart(4, '0')}${name.slice(2)}`;
    for (const [first, second] of [
      [one, two],
      [two, one],
    ]) {
      for (const again of [name, escaped]) {
        const rest = ['model', 'input']
          .filter((needed) => needed !== name)
          .map((needed) => `"${needed}":${values[needed]?.[0]},`);
        const response = await post(`{${rest.join('')}"${name}":${first},"${again}":${second}}`);
        expect(response.status).toBe(400);
        expect(await response.json()).toMatchObject({ error: { param: name } });
      }
    }
    expect(openai.vendor.requests).toEqual([]);
  },
);

test('the shared token has no embeddings', async () => {
  await openai.server.createTenant('sharing');
  const sharing = await openai.clientOf('sharing');
  const ask = (named: string) => errorOf(sharing.embeddings.create({ model: named, input: 'x' }));
  expect(await ask('gpt-4.1-mini')).toMatchObject({ status: 400, param: 'model' });
  expect(await ask('text-embedding-3-small')).toMatchObject({ status: 404, code: 'model_not_found' });
  expect(openai.vendor.requests).toEqual([]);
});

describe('limits', () => {
  test('inputs', async () => {
    const inputs = (count: number) => ({ input: Array(count).fill('x') });
    await embed(inputs(openaiLimits.inputs));
    expect(await errorOf(embed(inputs(openaiLimits.inputs + 1)))).toMatchObject({ status: 400, param: 'input' });
    const lists = (count: number) => ({ input: Array(count).fill([1]) });
    await embed(lists(openaiLimits.inputs));
    expect(await errorOf(embed(lists(openaiLimits.inputs + 1)))).toMatchObject({ status: 400, param: 'input' });
  });

  test('JSON values of a request', async () => {
    // The body, its model and its input.
    const ids = openaiLimits.embeddingValues - 3;
    const body = (count: number) => JSON.stringify({ model, input: Array(count).fill(1) });
    expect((await post(body(ids))).status).toBe(200);
    expect((await post(body(ids + 1))).status).toBe(413);
  });

  test('text', async () => {
    const rest = Buffer.byteLength(JSON.stringify({ model: 'text-embedding-3-small', input: '' }));
    const body = (bytes: number) => JSON.stringify({ model, input: 'x'.repeat(bytes) });
    expect((await post(body(formatLimits.textBytes - rest))).status).toBe(200);
    expect((await post(body(formatLimits.textBytes - rest + 1))).status).toBe(413);
  });

  const answerOf = (bytes: number) => {
    const [head, end] = ['{"data":[{"embedding":"', '"}],"usage":{"prompt_tokens":1}}'];
    return Buffer.from(`${head}${'A'.repeat(bytes - head.length - end.length)}${end}`);
  };
  const json = { 'content-type': 'application/json' };

  test('bytes of an answer', async () => {
    openai.vendor.behave({ kind: 'bytes', headers: json, body: answerOf(answerLimits.embeddingsBytes) });
    const response = await post(JSON.stringify({ model, input: 'x' }));
    expect((await response.arrayBuffer()).byteLength).toBe(answerLimits.embeddingsBytes);
    openai.vendor.behave({ kind: 'bytes', headers: json, body: answerOf(answerLimits.embeddingsBytes + 1) });
    expect((await post(JSON.stringify({ model, input: 'x' }))).status).toBe(502);
  });

  test('JSON values of an answer', async () => {
    // The body, its data and an embedding.
    const body = (count: number) => Buffer.from(`{"data":[[${Array(count).fill(0).join(',')}]]}`);
    openai.vendor.behave({ kind: 'bytes', headers: json, body: body(answerLimits.embeddingsValues - 3) });
    expect((await post(JSON.stringify({ model, input: 'x' }))).status).toBe(200);
    openai.vendor.behave({ kind: 'bytes', headers: json, body: body(answerLimits.embeddingsValues - 2) });
    expect((await post(JSON.stringify({ model, input: 'x' }))).status).toBe(502);
  });

  test('bytes of an answer that a repeat gets', async () => {
    const ask = async (key: string) => {
      const response = await post(JSON.stringify({ model, input: 'x' }), { 'idempotency-key': key });
      return { status: response.status, bytes: (await response.arrayBuffer()).byteLength };
    };
    const max = formatLimits.storedAnswerBytes;
    openai.vendor.behave({ kind: 'bytes', headers: json, body: answerOf(max) });
    expect([await ask('short'), await ask('short')]).toEqual(Array(2).fill({ status: 200, bytes: max }));
    openai.vendor.behave({ kind: 'bytes', headers: json, body: answerOf(max + 1) });
    expect(await ask('long')).toEqual({ status: 200, bytes: max + 1 });
    expect((await ask('long')).status).toBe(409);
    expect(openai.vendor.requests).toHaveLength(2);
  });
});

test('an Idempotency-Key makes one call of many, and belongs to its body', async () => {
  openai.vendor.behave({ kind: 'answer', delay: 100 });
  const ask = (input: string) => post(JSON.stringify({ model, input }), { 'idempotency-key': 'once' });
  const answers = await Promise.all([ask('x'), ask('x'), ask('x')]);
  const texts = await Promise.all(answers.map((answer) => answer.text()));
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
  expect(new Set(texts).size).toBe(1);
  expect(openai.vendor.requests).toHaveLength(1);
  expect((await ask('y')).status).toBe(409);
});

test('errors of the vendor reach the client, except those of the key, and what has the key', async () => {
  const error = { message: 'Too long.', type: 'invalid_request_error', param: 'input', code: 'too_long' };
  openai.vendor.behave({ kind: 'status', status: 400, body: { error } });
  expect(await errorOf(embed({}))).toMatchObject({
    status: 400,
    param: 'input',
    code: 'too_long',
    message: '400 Too long.',
  });
  openai.vendor.behave({ kind: 'status', status: 401, body: { error } });
  expect(await errorOf(embed({}))).toMatchObject({ status: 400, code: 'provider_key_refused' });
  openai.vendor.behave({ kind: 'status', status: 400, body: { error: { ...error, message: 'sk-openai is bad' } } });
  expect((await errorOf(embed({}))).message).not.toContain('sk-openai');
  const data = [{ embedding: [1], note: 'sk-openai' }];
  openai.vendor.behave({ kind: 'status', status: 200, body: { data } });
  expect(await errorOf(embed({ encoding_format: 'float' }))).toMatchObject({ status: 502 });
});

test.each([{}, { choices: [] }, [], 'x', { embeddings: [[1]] }])(
  'of a server of the tenant nothing passes that is no embeddings: %j',
  async (body) => {
    openai.vendor.behave({ kind: 'status', status: 200, body });
    expect(await errorOf(embed({ model: 'self_hosted/m' }))).toMatchObject({ status: 502 });
  },
);

test('each operation that is not there is 404, and names those that are', async () => {
  const paths = [
    ...['images/generations', 'images/edits', 'images/variations', 'audio/speech', 'audio/transcriptions'],
    ...['audio/translations', 'files', 'files/file-1', 'uploads', 'completions', 'moderations', 'batches'],
    ...['fine_tuning/jobs', 'vector_stores', 'assistants', 'threads', 'realtime/sessions', 'realtime', 'videos'],
    ...['conversations', 'containers', 'evals', 'responses/resp_1', 'chat/completions/c1', 'embeddings/1'],
  ];
  for (const path of paths) {
    for (const method of ['GET', 'POST', 'DELETE']) {
      const response = await fetch(`${openai.server.baseUrl}/openai/${tenant}/v1/${path}`, {
        method,
        headers: { authorization: `Bearer ${token}`, ...(method === 'POST' && json) },
        ...(method === 'POST' && { body: '{}' }),
      });
      expect([path, method, response.status]).toEqual([path, method, 404]);
      const { error } = (await response.json()) as { error: OpenAI.ErrorObject };
      expect(error.message).toMatch(/chat\/completions.*responses.*embeddings.*models/);
    }
  }
});

const json = { 'content-type': 'application/json' };
