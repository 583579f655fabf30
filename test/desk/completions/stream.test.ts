import { beforeEach, expect, test } from 'vitest';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { Random } from '../../support/oracle/random.ts';
import { trials } from '../../support/oracle/trials.ts';
import { hello, newTenant, postCompletion, setProviderToken, usageOf } from '../../support/server/completions.ts';
import { eventually } from '../../support/server/patience.ts';
import { startTestServer, type TestServer } from '../../support/server/server.ts';
import { responsesFormat } from '../../support/vendor/vendor-formats.ts';
import { type Behaviour, startVendor } from '../../support/vendor/vendor-server.ts';

const random = new Random();

const vendor = closeAfterAll(await startVendor());
const environment = {
  OPENAI_BASE_URL: vendor.baseUrl,
  ANNALS_SHARED_PROVIDER_TOKEN: 'sk-shared',
  ANNALS_COMPLETION_MAX_TOKENS: '100',
};
const server = closeAfterAll(await startTestServer({ environment: { ...environment, ANNALS_COMPLETION_DRAIN: '1' } }));
const { database } = server;
/** Reads on for longer than any test takes. */
const patient = closeAfterAll(
  await startTestServer({ environment: { ...environment, ANNALS_COMPLETION_DRAIN: '600' }, database }),
);

beforeEach(() => {
  vendor.behave({ kind: 'answer', text: 'one two three', usage: { input: 7, output: 3 } });
  vendor.requests.length = 0;
  vendor.abandoned.length = 0;
});

const tokenByTenant = new Map<string, Promise<string>>();

/** One client of the tenant. */
function tokenOf(tenant: string): Promise<string> {
  const token = tokenByTenant.get(tenant) ?? server.token(tenant);
  tokenByTenant.set(tenant, token);
  return token;
}

async function open(tenant: string, { key, body = hello, signal, on = server }: Options = {}): Promise<Response> {
  return await on.call(`/ai-service/${tenant}/completions-stream`, {
    token: await tokenOf(tenant),
    ...(signal !== undefined && { signal }),
    headers: { ...(key !== undefined && { 'idempotency-key': key }) },
    json: body,
  });
}

interface Options {
  key?: string;
  body?: unknown;
  signal?: AbortSignal;
  on?: TestServer;
}

/** The events of a whole stream. */
async function eventsOf(response: Response): Promise<{ event: string; data: Record<string, unknown> }[]> {
  expect(response.headers.get('content-type')).toMatch(/^text\/event-stream/);
  return (await response.text())
    .split('\n\n')
    .filter((block) => block.startsWith('event:'))
    .map((block) => {
      const [, event = '', data = ''] = /^event: (.*)\ndata: (.*)$/.exec(block) ?? [];
      return { event, data: JSON.parse(data) };
    });
}

/** Reads until the first part of the text, and leaves. */
async function leaveAfterFirstPart(tenant: string, options: Options = {}): Promise<void> {
  const gone = new AbortController();
  const response = await open(tenant, { ...options, signal: gone.signal });
  const reader = response.body?.getReader();
  expect(new TextDecoder().decode((await reader?.read())?.value)).toContain('event: token');
  gone.abort();
}

const chunk = (content: string, finish: string | null = null) =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content }, finish_reason: finish }] })}\n\n`;
const usageChunk = `data: ${JSON.stringify({ choices: [], usage: { prompt_tokens: 7, completion_tokens: 3 } })}\n\n`;
/** Begins at once, continues when the client has gone, and ends with figures. */
const slow: Behaviour = {
  kind: 'events',
  every: 60,
  events: [chunk('one '), chunk('two '), chunk('three', 'stop'), usageChunk, 'data: [DONE]\n\n'],
};

async function used(tenant: string) {
  const { used: tokens, reserved } = (await usageOf(server, tenant)) as Record<string, Record<string, number>>;
  return reserved?.outputTokens === 0 ? tokens : 'reserved';
}

test('the parts of the text come as tokens, and done has the whole answer with its usage', async () => {
  const tenant = await newTenant(server);
  const events = await eventsOf(await open(tenant, { body: { id: 'r-1', ...hello } }));
  expect(events).toEqual([
    ...['one ', 'two ', 'three'].map((text) => ({ event: 'token', data: { text } })),
    {
      event: 'done',
      data: { id: 'r-1', result: 'one two three', finishReason: 'stop', usage: { inputTokens: 7, outputTokens: 3 } },
    },
  ]);
  expect(await used(tenant)).toEqual({ inputTokens: 7, outputTokens: 3 });
});

test('what fails before the provider answers has its status, what fails later is an error event', async () => {
  const tenant = await newTenant(server);
  expect((await open(tenant, { body: { messages: [] } })).status).toBe(400);
  vendor.behave({ kind: 'status', status: 429, headers: { 'retry-after': '7' } });
  const refused = await open(tenant);
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '7']);
  vendor.behave({ kind: 'cut' });
  const events = await eventsOf(await open(tenant));
  expect(events.map(({ event }) => event)).toEqual(['token', 'token', 'token', 'token', 'error']);
  expect(events.at(-1)?.data).toMatchObject({ status: 502, type: 'provider_error' });
  vendor.behave({ kind: 'answer', text: '' });
  const [empty] = await eventsOf(await open(tenant));
  expect(empty).toMatchObject({ event: 'error', data: { status: 502 } });
  const token = await server.token(tenant, { scope: 'usage.usage_read' });
  expect((await server.call(`/ai-service/${tenant}/completions-stream`, { token, method: 'POST' })).status).toBe(403);
});

test('without figures, or with figures twice, the quota has the reservation or the last figures', async () => {
  const tenant = await newTenant(server);
  vendor.behave({ kind: 'events', events: [usageChunk, chunk('x', 'stop'), usageChunk, 'data: [DONE]\n\n'] });
  await eventsOf(await open(tenant));
  expect(await used(tenant)).toEqual({ inputTokens: 7, outputTokens: 3 });
  vendor.behave({ kind: 'events', events: [chunk('x', 'stop'), 'data: [DONE]\n\n'] });
  const events = await eventsOf(await open(tenant));
  expect(events.at(-1)).toMatchObject({ event: 'done', data: { usage: {} } });
  expect(await used(tenant)).toEqual({ inputTokens: 7 + 5 + 16 + 64, outputTokens: 103 });
});

test('a client that leaves: on the shared token the answer is read on, and settled by its figures', async () => {
  const tenant = await newTenant(server);
  vendor.behave(slow);
  await leaveAfterFirstPart(tenant, { on: patient });
  await eventually(() => used(tenant)).toEqual({ inputTokens: 7, outputTokens: 3 });
  expect(vendor.abandoned).toEqual([]);
});

test('a client that has left before its call leaves: nothing is sent, and all is given back', async () => {
  const tenant = await newTenant(server);
  const request = {
    tenant,
    origin: { operation: 'completion', clientId: 'x' },
    own: undefined,
    messages: [{ role: 'user', content: 'Hello' }],
    maxTokens: 100,
    signal: AbortSignal.abort(),
    drains: true,
  } as const;
  await expect(patient.context.completions.caller.call(request, { onText: () => {} })).rejects.toThrow('aborted');
  expect(vendor.requests).toEqual([]);
  expect((await patient.context.completions.quota.state(tenant)).used).toEqual({ input: 0, output: 0 });
});

test('a client that leaves: what does not end within the drain is charged in full', async () => {
  const tenant = await newTenant(server);
  vendor.behave({ kind: 'events', events: [chunk('one ')], last: 'stall' });
  await leaveAfterFirstPart(tenant);
  await eventually(() => used(tenant)).toEqual({ inputTokens: 5 + 16 + 64, outputTokens: 100 });
  expect(vendor.abandoned).toHaveLength(1);
});

test('a client that leaves: a call on an own key ends at once', async () => {
  const tenant = await newTenant(server);
  await setProviderToken(server, tenant, 'sk-own');
  vendor.behave({ kind: 'events', events: [chunk('one ')], last: 'stall' });
  await leaveAfterFirstPart(tenant);
  await eventually(() => vendor.abandoned.length).toBe(1);
  expect(await used(tenant)).toEqual({ inputTokens: 0, outputTokens: 0 });
});

test('with an Idempotency-Key the answer is read to its end, and a repeat has done alone, also as an ordinary completion', async () => {
  const tenant = await newTenant(server);
  vendor.behave(slow);
  await leaveAfterFirstPart(tenant, { key: 'k-1' });
  const done = {
    event: 'done',
    data: { result: 'one two three', finishReason: 'stop', usage: { inputTokens: 7, outputTokens: 3 } },
  };
  expect(await eventsOf(await open(tenant, { key: 'k-1' }))).toEqual([done]);
  expect(vendor.requests).toHaveLength(1);
  const token = await tokenOf(tenant);
  const plain = await server.call(`/ai-service/${tenant}/completions`, {
    token,
    headers: { 'idempotency-key': 'k-1' },
    json: hello,
  });
  expect(await plain.json()).toMatchObject({ result: 'one two three' });
  expect(vendor.requests).toHaveLength(1);
  const otherBody = { messages: [{ role: 'USER', content: 'another' }] };
  expect((await open(tenant, { key: 'k-1', body: otherBody })).status).toBe(409);
});

test('calls that are read on keep their places: of one tenant 32 are under way, and the next waits', async () => {
  const tenant = await newTenant(server);
  const places = 32;
  vendor.behave({ kind: 'events', events: [chunk('one ')], last: 'stall' });
  let firstLeft = Number.POSITIVE_INFINITY;
  const leave = async () => {
    await leaveAfterFirstPart(tenant);
    firstLeft = Math.min(firstLeft, performance.now());
  };
  await Promise.all(Array.from({ length: places }, leave));
  let nextAt = 0;
  vendor.behave(() => {
    nextAt = performance.now();
    return { kind: 'answer' };
  });
  expect((await postCompletion(server, tenant)).status).toBe(200);
  // The drain of a second that the first of them had.
  expect(nextAt - firstLeft).toBeGreaterThan(900);
  await eventually(() => used(tenant)).not.toBe('reserved');
});

const leavers = trials(24);

test(`${leavers} clients that leave at random bytes: the quota is what the vendor has counted, and the records agree`, async () => {
  const tenant = await newTenant(server);
  const counted = { calls: 0, input: 0, output: 0 };
  vendor.behave(({ body }) => {
    const [input, output] = [1 + random.below(80), 1 + random.below(90)];
    counted.calls += 1;
    counted.input += input;
    counted.output += output;
    const every = random.below(12);
    if ('input' in body)
      return { kind: 'events', events: responsesFormat.events({ text: 'a b c', usage: { input, output } }), every };
    const usage = { choices: [], usage: { prompt_tokens: input, completion_tokens: output } };
    const words = Array.from({ length: 1 + random.below(12) }, () => chunk('wörd '));
    const events = [...words, chunk('', 'stop'), `data: ${JSON.stringify(usage)}\n\n`, 'data: [DONE]\n\n'];
    return { kind: 'events', events, every };
  });
  let left = 0;
  const leaveEarly = async (path: string, body: object) => {
    const gone = new AbortController();
    const response = await patient.call(path, { token: await tokenOf(tenant), signal: gone.signal, json: body });
    let bytes = random.below(900);
    const reader = response.body?.getReader();
    for (let part = await reader?.read(); part?.done === false; part = await reader?.read()) {
      bytes -= part.value.length;
      if (bytes > 0) continue;
      left += 1;
      gone.abort();
      return;
    }
  };
  const messages = [{ role: 'user', content: 'Hello' }];
  const model = 'openai/gpt-5.4-mini';
  const paths: [string, object][] = [
    [`/ai-service/${tenant}/completions-stream`, { messages }],
    [`/openai/${tenant}/v1/chat/completions`, { model, messages, stream: true }],
    [`/openai/${tenant}/v1/responses`, { model, input: 'Hello', stream: true }],
  ];
  await Promise.all(
    Array.from({ length: leavers }, (_, index) => leaveEarly(...(paths[index % paths.length] ?? ['', {}]))),
  );
  await eventually(() => used(tenant)).toEqual({ inputTokens: counted.input, outputTokens: counted.output });
  expect(left).toBeGreaterThan(0);
  const { rows } = await server.database.pool.query(
    `select count(*)::integer as calls, sum(input_tokens)::integer as input, sum(output_tokens)::integer as output
       from call_record where tenant = $1`,
    [tenant],
  );
  expect(rows).toEqual([counted]);
});
