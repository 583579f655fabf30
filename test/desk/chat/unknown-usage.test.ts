import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { agentKey, putAgent } from '../../support/server/agents.ts';
import type { Behaviour } from '../../support/vendor/vendor-server.ts';
import { type Chats, type RequestLog, startChats, tenant, until } from './chats.ts';

let chats: Chats;

beforeAll(async () => {
  chats = await startChats();
  const { server, token } = chats;
  await putAgent(server, { tenant, token, id: 'shared' }, { llmConfig: { provider: 'shared', maxTokens: 50 } });
  const own = { provider: 'anthropic', model: 'm', apiKey: agentKey };
  await putAgent(server, { tenant, token, id: 'own' }, { llmConfig: own });
});
afterEach(() => chats.forget());
afterAll(() => chats.close());

/** The log of a chat whose client goes away when the provider has the request. */
async function stopped(agentId: string, behaviour: Behaviour, path: string): Promise<RequestLog | undefined> {
  const { server, token, vendor, logsOf } = chats;
  vendor.behave(behaviour);
  const sessionId = randomUUID();
  const gone = new AbortController();
  const request = server.call(`/ai-service/${tenant}/agentic${path}`, {
    token,
    signal: gone.signal,
    headers: { 'session-id': sessionId },
    json: { agentId, message: 'x' },
  });
  const ended = request.then((response) => response.text()).catch(() => {});
  await until(async () => vendor.requests.length === 1);
  gone.abort();
  await ended;
  await until(async () => (await logsOf(sessionId)).length === 1);
  return (await logsOf(sessionId))[0];
}

async function used(): Promise<{ input: number; output: number }> {
  return (await chats.server.context.completions.quota.state(tenant)).used;
}

const textsOf = (log: RequestLog | undefined) => log?.messages.map(({ message }) => message);

test.each(['/chat', '/chat-stream'])(
  'the log of a %s on the shared token that is stopped has what the quota was charged, and says that the usage is unknown',
  async (path) => {
    const before = await used();
    const log = await stopped('shared', { kind: 'hang' }, path);
    const after = await used();
    const charged = { input: after.input - before.input, output: after.output - before.output };
    expect(charged.output).toBe(50);
    expect(log).toMatchObject({ cause: 'cancelled', promptTokens: charged.input, completionTokens: charged.output });
    expect(textsOf(log)?.[0]).toBe(
      'Call 1 of the model: unknown prompt tokens, unknown completion tokens. ' +
        `The quota was charged with ${charged.input} prompt tokens and 50 completion tokens.`,
    );
  },
);

test('the log of a chat on an own key that is stopped says that its usage is unknown', async () => {
  const log = await stopped('own', { kind: 'hang' }, '/chat');
  expect(log).toMatchObject({ cause: 'cancelled', promptTokens: 0, completionTokens: 0 });
  expect(textsOf(log)?.[0]).toBe('Call 1 of the model: unknown prompt tokens, unknown completion tokens.');
});

test('a figure that the provider left out of its answer is the charged one in the log, the other one is its own', async () => {
  const { vendor, chat, logsOf } = chats;
  const body = { choices: [{ message: { content: 'Hello there' } }], usage: { prompt_tokens: 9 } };
  vendor.behave({ kind: 'status', status: 200, body });
  const session = { 'session-id': randomUUID() };
  expect((await chat({ agentId: 'shared', message: 'x' }, session)).status).toBe(200);
  const [log] = await logsOf(session['session-id']);
  expect(log).toMatchObject({ promptTokens: 9, completionTokens: 50 });
  expect(textsOf(log)).toEqual([
    'Call 1 of the model: 9 prompt tokens, unknown completion tokens. ' +
      'The quota was charged with 9 prompt tokens and 50 completion tokens.',
  ]);
});

test('a call that the provider refused has no tokens, and its log has no unknown ones', async () => {
  const { vendor, chat, logsOf } = chats;
  vendor.behave({ kind: 'status', status: 429 });
  for (const agentId of ['shared', 'own']) {
    const session = { 'session-id': randomUUID() };
    await chat({ agentId, message: 'x' }, session);
    const [log] = await logsOf(session['session-id']);
    expect(log).toMatchObject({ promptTokens: 0, completionTokens: 0 });
    expect(textsOf(log)?.[0]).toBe('Call 1 of the model: 0 prompt tokens, 0 completion tokens.');
  }
});
