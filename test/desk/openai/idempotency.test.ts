import { beforeEach, expect, test } from 'vitest';
import { openaiLimits } from '../../../src/desk/openai/limits.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { eventually } from '../../support/server/patience.ts';
import type { TestServer } from '../../support/server/server.ts';
import { recordStatements } from '../../support/server/statements.ts';
import { startOpenai } from './openai-server.ts';

const tenant = 'acme';
const chat = { model: 'openai/gpt-4.1', messages: [{ role: 'user', content: 'Hello' }] };
const response = { model: 'openai/gpt-4.1', input: 'Hello' };
const message = { ...chat, model: 'anthropic/claude-sonnet-5-5', max_tokens: 50 };

const openai = closeAfterAll(await startOpenai());
await openai.tenantWithKeys(tenant);
/** Another process of the same installation, as far as can be seen from outside. */
const second = closeAfterAll(await openai.another());
const token = await openai.server.token(tenant);

beforeEach(() => {
  let answers = 0;
  openai.vendor.behave(({ body }) =>
    'input' in body ? passedThrough(++answers) : { kind: 'answer', text: `answer ${++answers}` },
  );
  openai.vendor.requests.length = 0;
});

/** The vendor's answer to a request of `/responses`, which is streamed where that asks for it. */
function passedThrough(number: number) {
  const item = { type: 'message', id: 'msg', role: 'assistant', content: [{ type: 'output_text', text: `${number}` }] };
  const usage = { input_tokens: 5, output_tokens: 3, total_tokens: 8 };
  const whole = { id: `resp_${number}`, object: 'response', status: 'completed', output: [item], usage };
  if (openai.vendor.requests.at(-1)?.streaming === false) {
    const headers = { 'content-type': 'application/json' };
    return { kind: 'bytes', headers, body: Buffer.from(JSON.stringify(whole)) } as const;
  }
  const done = { type: 'response.completed', response: whole };
  return { kind: 'events', events: [`event: ${done.type}\ndata: ${JSON.stringify(done)}\n\n`] } as const;
}

async function send(
  key: string | undefined,
  body: object,
  options: { by?: string; signal?: AbortSignal; on?: TestServer } = {},
) {
  const { by = token, signal, on = openai.server } = options;
  const ofOpenai = 'input' in body ? 'responses' : 'chat/completions';
  const path = 'max_tokens' in body ? `/anthropic/${tenant}/v1/messages` : `/openai/${tenant}/v1/${ofOpenai}`;
  const answer = await on.call(path, {
    token: by,
    ...(signal && { signal }),
    headers: { ...(key !== undefined && { 'idempotency-key': key }) },
    json: body,
  });
  return { status: answer.status, headers: answer.headers, text: await answer.text() };
}

const bodies = [
  ['chat/completions', chat],
  ['a stream of chat/completions', { ...chat, stream: true }],
  ['responses', response],
  ['a stream of responses', { ...response, stream: true }],
  ['messages', message],
  ['a stream of messages', { ...message, stream: true }],
] as const;

test.each(bodies)(
  '%s: twelve calls of two processes with one key are one call of the provider, before and after its end',
  async (name, body) => {
    const servers = [openai.server, second];
    const sent = Array.from({ length: 12 }, (_, index) => send(name, body, { on: servers[index % 2] ?? second }));
    const first = await Promise.all(sent);
    const later = await send(name, body, { on: second });
    expect(later.status).toBe(200);
    expect(new Set([...first, later].map(({ text }) => text))).toHaveLength(1);
    expect(later.headers.get('content-type')).toBe(first[0]?.headers.get('content-type'));
    expect(openai.vendor.requests).toHaveLength(1);
  },
);

test.each(bodies)('%s: another body is 409 that no client retries', async (name, body) => {
  await send(`${name} other`, body);
  const { status, headers, text } = await send(`${name} other`, { ...body, temperature: 0.5 });
  expect(status).toBe(409);
  expect(headers.get('x-should-retry')).toBe('false');
  const { error } = JSON.parse(text);
  expect(error.message).toContain('Idempotency-Key: belongs to another request');
  expect(error.type).toBe('max_tokens' in body ? 'conflict_error' : 'invalid_request_error');
  expect(openai.vendor.requests).toHaveLength(1);
});

test('one key is another in another format, whose answers differ', async () => {
  const ofOpenai = await openai.server.call(`/openai/${tenant}/v1/chat/completions`, {
    token,
    headers: { 'idempotency-key': 'both' },
    json: message,
  });
  expect(await ofOpenai.json()).toMatchObject({ object: 'chat.completion' });
  const { status, text } = await send('both', message);
  expect({ status, body: JSON.parse(text) }).toMatchObject({ status: 200, body: { type: 'message' } });
  expect(openai.vendor.requests).toHaveLength(2);
});

test('a key of 255 characters is taken, a longer or empty one is 400 by its name', async () => {
  expect((await send('k'.repeat(255), chat)).status).toBe(200);
  for (const key of ['k'.repeat(256), '']) {
    const { status, text } = await send(key, chat);
    expect(status).toBe(400);
    expect(JSON.parse(text).error.param).toMatch(/idempotency-key/i);
  }
  expect(openai.vendor.requests).toHaveLength(1);
});

test("the official client's retries with one key call the provider once for each attempt that failed", async () => {
  const client = await openai.clientOf(tenant, 2);
  let calls = 0;
  openai.vendor.behave(() =>
    ++calls === 1
      ? { kind: 'status', status: 429, headers: { 'retry-after': '0' } }
      : { kind: 'answer', text: 'at last' },
  );
  const create = () =>
    client.chat.completions.create(
      { ...chat, messages: [{ role: 'user', content: 'Hello' }] },
      { headers: { 'Idempotency-Key': 'retried' } },
    );
  expect((await create()).choices[0]?.message.content).toBe('at last');
  expect(await create()).toMatchObject({ choices: [{ message: { content: 'at last' } }] });
  expect(calls).toBe(2);
});

test('a request that waits for a failing call gets the same error, and a later repeat calls again', async () => {
  const { promise: after, resolve: fail } = Promise.withResolvers<void>();
  const body = { error: { code: 'insufficient_quota', message: 'x' } };
  openai.vendor.behave({ kind: 'status', status: 429, body, after });
  const first = send('failing', chat);
  await eventually(() => openai.vendor.requests.length).toBe(1);
  const statements = recordStatements(...openai.server.context.pool.pools);
  const waiting = send('failing', chat);
  // A request that queries again waits for the one under way.
  const looks = () => statements.filter(({ text }) => /^select .* from "completion_request"/.test(text)).length;
  await eventually(looks).toBeGreaterThan(1);
  fail();
  const [failed, shared] = await Promise.all([first, waiting]);
  expect(failed.status).toBe(429);
  expect(JSON.parse(failed.text)).toMatchObject({ error: { code: 'insufficient_quota' } });
  expect(shared.text).toBe(failed.text);
  expect(shared.headers.get('x-should-retry')).toBe('false');
  expect(openai.vendor.requests).toHaveLength(1);
  openai.vendor.behave({ kind: 'answer', text: 'at last' });
  expect((await send('failing', chat)).text).toContain('at last');
});

test('a client that leaves a stream does not end it, and its repeat has the whole stream', async () => {
  const { promise: after, resolve: proceed } = Promise.withResolvers<void>();
  openai.vendor.behave({ kind: 'answer', text: 'one two three', after });
  const before = openai.vendor.abandoned.length;
  const leaving = new AbortController();
  const gone = send('leaving', { ...chat, stream: true }, { signal: leaving.signal }).catch(() => 'gone');
  await eventually(() => openai.vendor.requests.length).toBe(1);
  leaving.abort();
  expect(await gone).toBe('gone');
  proceed();
  const { text } = await send('leaving', { ...chat, stream: true });
  expect(text).toContain('three');
  expect(text).toMatch(/data: \[DONE\]\n\n$/);
  expect(openai.vendor.requests).toHaveLength(1);
  expect(openai.vendor.abandoned).toHaveLength(before);
});

/** The events of a stream of responses that has so many bytes. */
function eventsOf(bytes: number): string[] {
  const done = { type: 'response.completed', response: { id: 'resp', status: 'completed', output: [] } };
  const last = `event: ${done.type}\ndata: ${JSON.stringify(done)}\n\n`;
  const delta = (text: string) =>
    `event: response.output_text.delta\ndata: ${JSON.stringify({ type: 'response.output_text.delta', delta: text })}\n\n`;
  const events = Array.from({ length: 7 }, () => delta('x'.repeat(128 * 1024)));
  const left = bytes - Buffer.byteLength([...events, delta(''), last].join(''));
  return [...events, delta('x'.repeat(left)), last];
}

test.each([
  ['at the limit of what is stored is repeated', 0, 200],
  ['beyond it is 409', 1, 409],
])('a stream %s', async (name, more, status) => {
  const bytes = openaiLimits.storedStreamBytes + more;
  openai.vendor.behave({ kind: 'events', events: eventsOf(bytes) });
  const first = await send(name, { ...response, stream: true });
  expect(first.text).toHaveLength(bytes);
  const again = await send(name, { ...response, stream: true });
  expect(again.status).toBe(status);
  if (status === 200) expect(again.text === first.text).toBe(true);
  else expect(again.headers.get('x-should-retry')).toBe('false');
  expect(openai.vendor.requests).toHaveLength(1);
});

test('one key is for one call of each operation', async () => {
  openai.vendor.behave({ kind: 'answer' });
  const embedded = await openai.server.call(`/openai/${tenant}/v1/embeddings`, {
    token,
    headers: { 'idempotency-key': 'of-each' },
    json: response,
  });
  expect(embedded.status).toBe(200);
  const answer = await send('of-each', response);
  expect(answer.status).toBe(200);
  expect(openai.vendor.requests.map(({ url }) => url)).toEqual(['/v1/embeddings', '/v1/responses']);
});
