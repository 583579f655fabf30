import { beforeEach, expect, test } from 'vitest';
import { maxInlineCharacters } from '../../../src/core/fairness/threads.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { eventually } from '../../support/server/patience.ts';
import { startTestServer, type TestServer } from '../../support/server/server.ts';
import { recordStatements } from '../../support/server/statements.ts';
import { startVendor } from '../../support/vendor/vendor-server.ts';

const vendor = closeAfterAll(await startVendor());
const environment = { OPENAI_BASE_URL: vendor.baseUrl, ANNALS_SHARED_PROVIDER_TOKEN: 'sk-shared' };
const server = closeAfterAll(await startTestServer({ environment }));
/** Another process of the same installation, as far as can be seen from outside. */
const secondServer = closeAfterAll(await startTestServer({ environment, database: server.database }));
const token = await server.token('acme');

beforeEach(() => {
  let answers = 0;
  vendor.behave(() => ({ kind: 'answer', text: `answer ${++answers}`, usage: { input: 7, output: 3 } }));
  vendor.requests.length = 0;
});

test('a repeat gives the same result from any process, without a second call and without its tokens', async () => {
  const before = await used();
  const first = await send('repeat');
  expect(first).toEqual({ status: 200, body: { id: 'x', result: 'answer 1', finishReason: 'stop' } });
  expect(await send('repeat')).toEqual(first);
  expect(await send('repeat', { on: secondServer })).toEqual(first);
  expect(vendor.requests).toHaveLength(1);
  expect(await used()).toEqual({ inputTokens: before.inputTokens + 7, outputTokens: before.outputTokens + 3 });
});

test('the same JSON with its keys in another order is the same body; any other body is 409', async () => {
  await send('body');
  const sameBody = '{"messages":[{"content":"Hello","role":"USER"}],"id":"x"}';
  expect((await send('body', { body: sameBody })).status).toBe(200);
  expect(await send('body', { body: sameBody.replace('Hello', 'Bye') })).toEqual({
    status: 409,
    body: {
      status: 409,
      type: 'conflict_resource',
      message: 'The Idempotency-Key was used with another body.',
      details: [{ field: 'Idempotency-Key', message: 'belongs to another request' }],
    },
  });
  expect(vendor.requests).toHaveLength(1);
});

test('a body that is read in a thread is repeated like a short one', async () => {
  const body = JSON.stringify({ messages: [{ role: 'USER', content: 'x'.repeat(maxInlineCharacters) }] });
  const first = await send('long', { body });
  expect(first).toMatchObject({ status: 200, body: { result: 'answer 1' } });
  expect(await send('long', { body })).toEqual(first);
  expect(vendor.requests).toHaveLength(1);
});

test('concurrent repeats wait for the first, in every process', async () => {
  vendor.behave({ kind: 'answer', text: 'the one', delay: 300 });
  const answers = await Promise.all(
    Array.from({ length: 12 }, (_, index) => send('together', { on: index % 2 === 0 ? server : secondServer })),
  );
  expect(answers).toEqual(Array(12).fill({ status: 200, body: { id: 'x', result: 'the one', finishReason: 'stop' } }));
  expect(vendor.requests).toHaveLength(1);
});

test('another body is refused while the first is under way', async () => {
  vendor.behave({ kind: 'answer', delay: 300 });
  const first = send('early');
  await eventually(() => vendor.requests.length).toBe(1);
  expect((await send('early', { body: '{"messages":[{"role":"USER","content":"Bye"}]}' })).status).toBe(409);
  expect((await first).status).toBe(200);
});

test('the keys of two clients are different keys, and those of two tenants', async () => {
  await send('mine');
  const colleague = await server.token('acme');
  const stranger = await server.token('rival');
  expect((await send('mine', { by: colleague })).body).toMatchObject({ result: 'answer 2' });
  expect((await send('mine', { by: stranger, tenant: 'rival' })).body).toMatchObject({ result: 'answer 3' });
});

test('a failure is shared by the requests that waited for it, and a later repeat starts over', async () => {
  vendor.behave({ kind: 'status', status: 500 });
  const status = async (on: TestServer) => (await send('failing', { on })).status;
  expect(await status(server)).toBe(502);

  let calls = 0;
  const { promise: after, resolve: proceed } = Promise.withResolvers<void>();
  vendor.behave(() => (++calls === 1 ? { kind: 'cut', after } : { kind: 'answer', text: 'at last' }));
  const first = status(server);
  await eventually(() => calls).toBe(1);
  const statements = recordStatements(...secondServer.context.pool.pools);
  const second = status(secondServer);
  // A request that queries again waits for the one under way.
  const queries = () => statements.filter(({ text }) => /^select .* from "completion_request"/.test(text)).length;
  await eventually(queries).toBeGreaterThan(1);
  proceed();
  expect(await second).toBe(502);
  expect(await first).toBe(502);
  expect(calls).toBe(1);
  expect((await send('failing')).body).toMatchObject({ result: 'at last' });
});

test('a client that goes away does not abort such a call, and its repeat gets the result', async () => {
  const { promise: after, resolve: proceed } = Promise.withResolvers<void>();
  vendor.behave({ kind: 'answer', text: 'still here', after });
  const before = vendor.abandoned.length;
  const controller = new AbortController();
  const gone = send('leaving', { signal: controller.signal }).catch(() => 'gone');
  await eventually(() => vendor.requests.length).toBe(1);
  controller.abort();
  expect(await gone).toBe('gone');
  const repeat = send('leaving', { on: secondServer });
  setTimeout(proceed, 300);
  expect((await repeat).body).toMatchObject({ result: 'still here' });
  expect(vendor.requests).toHaveLength(1);
  expect(vendor.abandoned).toHaveLength(before);
});

test('a server that closes finishes such a call, though its client has gone', async () => {
  const closing = await startTestServer({ environment, database: server.database });
  const { promise: after, resolve: proceed } = Promise.withResolvers<void>();
  vendor.behave({ kind: 'answer', text: 'to the end', after });
  const controller = new AbortController();
  const gone = send('closing', { on: closing, signal: controller.signal }).catch(() => 'gone');
  await eventually(() => vendor.requests.length).toBe(1);
  controller.abort();
  expect(await gone).toBe('gone');
  setTimeout(proceed, 300);
  await closing.close();
  expect((await send('closing')).body).toMatchObject({ result: 'to the end' });
  expect(vendor.requests).toHaveLength(1);
});

test('a request that a dead process left unfinished starts over once its lease has ended', async () => {
  await send('dead');
  const { pool } = server.database;
  await pool.query("update completion_request set state = 'running', outcome = null where key_hash = sha256('dead')");
  await pool.query(
    "update completion_request set expires_at = now() + interval '400 ms' where key_hash = sha256('dead')",
  );
  expect((await send('dead')).body).toMatchObject({ result: 'answer 2' });
});

test('after 24 hours a key is free again', async () => {
  await send('old');
  const { rows } = await server.database.pool.query(
    "select extract(epoch from expires_at - now()) as left from completion_request where key_hash = sha256('old')",
  );
  expect(Number(rows[0].left)).toBeGreaterThan(24 * 3600 - 60);
  expect(Number(rows[0].left)).toBeLessThanOrEqual(24 * 3600);
  await server.database.pool.query("update completion_request set expires_at = now() where key_hash = sha256('old')");
  expect((await send('old')).body).toMatchObject({ result: 'answer 2' });
});

test('stored results are sealed, and open for their own request alone', async () => {
  vendor.behave({ kind: 'answer', text: 'a very private answer' });
  await send('sealed1');
  await send('sealed2');
  const { pool } = server.database;
  const { rows } = await pool.query<{ outcome: Buffer }>('select outcome from completion_request');
  for (const { outcome } of rows) expect(outcome.includes('private')).toBe(false);
  const first = await pool.query("select outcome from completion_request where key_hash = sha256('sealed1')");
  await pool.query("update completion_request set outcome = $1 where key_hash = sha256('sealed2')", [
    first.rows[0].outcome,
  ]);
  expect((await send('sealed2')).status).toBe(500);
});

test.each([
  ['of 255 characters', 'k'.repeat(255), 200],
  ['of 256 characters', 'k'.repeat(256), 400],
  ['that is empty', '', 400],
])('a key %s', async (_what, key, status) => {
  expect((await send(key)).status).toBe(status);
});

interface Sent {
  on?: TestServer;
  by?: string;
  tenant?: string;
  body?: string;
  signal?: AbortSignal;
}

const defaultBody = '{"id":"x","messages":[{"role":"USER","content":"Hello"}]}';

async function send(key: string, { on = server, by = token, tenant = 'acme', body = defaultBody, signal }: Sent = {}) {
  const response = await on.call(`/ai-service/${tenant}/completions`, {
    method: 'POST',
    token: by,
    headers: { 'content-type': 'application/json', 'idempotency-key': key },
    body,
    ...(signal === undefined ? {} : { signal }),
  });
  return { status: response.status, body: await response.json() };
}

async function used(): Promise<{ inputTokens: number; outputTokens: number }> {
  const response = await server.call('/ai-service/acme/completions/usage', { token });
  const body = (await response.json()) as { used: { inputTokens: number; outputTokens: number } };
  return body.used;
}
