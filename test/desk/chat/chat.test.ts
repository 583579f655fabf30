import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { agentKey, callAgentic, eventsOf, putAgent } from '../../support/server/agents.ts';
import { type RequestLog, startChats, tenant, until } from './chats.ts';

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const chats = closeAfterAll(await startChats());
const { server, vendor, token, chat, logsOf } = chats;
afterEach(() => chats.forget());
test('a chat answers an array of one, in a session that is made', async () => {
  vendor.behave({ kind: 'answer', text: 'Good day', usage: { input: 21, output: 4 } });
  const response = await chat({ agentId: 'desk', message: 'Hello' }, { 'x-request-id': 'r-1' });
  const [answer, ...more] = (await response.json()) as { sessionId: string }[];
  expect(response.status).toBe(200);
  expect(more).toEqual([]);
  expect(answer).toEqual({
    agentId: 'desk',
    agentType: 'generic',
    sessionId: expect.stringMatching(uuid),
    message: 'Good day',
  });
  expect(response.headers.get('session-id')).toBe(answer?.sessionId);
  const sent = vendor.requests[0]?.body.messages?.map(({ role, content }) => [role, content]);
  expect(sent).toEqual([
    ['developer', 'Be brief.'],
    ['user', 'Hello'],
  ]);
  expect(vendor.requests[0]?.headers.authorization).toBe(`Bearer ${agentKey}`);

  const [log] = await logsOf(answer?.sessionId ?? '');
  expect(log).toEqual({
    id: expect.stringMatching(uuid),
    requestId: 'r-1',
    sessionId: answer?.sessionId,
    triggerAgentId: 'desk',
    severity: 'INFO',
    messages: [
      {
        timestamp: expect.any(String),
        severity: 'INFO',
        message: 'Call 1 of the model: 21 prompt tokens, 4 completion tokens.',
        agentId: 'desk',
        requestId: 'r-1',
      },
    ],
    duration: Math.ceil((log?.durationMs ?? 0) / 1_000),
    durationMs: expect.any(Number),
    promptTokens: 21,
    completionTokens: 4,
    metadata: { version: 1, createdAt: expect.any(String), modifiedAt: expect.any(String) },
  });
  const byId = await callAgentic(server, { tenant, token, path: `/logs/requests/${log?.id}`, method: 'GET' });
  expect(await byId.json()).toEqual(log);
  expect(Number.isInteger(log?.durationMs)).toBe(true);
});

test('a request log is found by its requestId as well: an id takes precedence, and of several the newest', async () => {
  const body = { agentId: 'desk', message: 'Hello' };
  const find = (id: string) => callAgentic(server, { tenant, token, path: `/logs/requests/${id}`, method: 'GET' });
  const sessionOf = async (response: Response) => ((await response.json()) as { sessionId: string }[])[0]?.sessionId;
  await chat(body, { 'x-request-id': 'twice' });
  const [older] = [await (await find('twice')).json()] as RequestLog[];
  const newest = await sessionOf(await chat(body, { 'x-request-id': 'twice' }));
  expect(await (await find('twice')).json()).toMatchObject({ requestId: 'twice', sessionId: newest });
  // The id of the older log is the requestId of another one.
  await chat(body, { 'x-request-id': older?.id ?? '' });
  expect(await (await find(older?.id ?? '')).json()).toEqual(older);
  expect((await find('never')).status).toBe(404);
  const sessions = await callAgentic(server, { tenant, token, path: '/logs/sessions/twice', method: 'GET' });
  expect(sessions.status).toBe(404);
});

test('earlier messages of the session are the context, and the session log sums its requests', async () => {
  const session = { 'session-id': randomUUID().toUpperCase() };
  await putAgent(server, { tenant, token, id: 'helper' });
  for (const [agentId, message] of [
    ['desk', 'one'],
    ['helper', 'two'],
    ['desk', 'three'],
  ] as const) {
    vendor.behave({ kind: 'answer', text: `re: ${message}`, usage: { input: 10, output: 3 } });
    await chat({ agentId, message }, session);
  }
  const sessionId = session['session-id'].toLowerCase();
  const last = vendor.requests.at(-1)?.body.messages?.map(({ content }) => content);
  expect(last).toEqual(['Be brief.', 'one', 're: one', 'two', 're: two', 'three']);
  const path = `/logs/sessions/${sessionId}`;
  const log = (await (await callAgentic(server, { tenant, token, path, method: 'GET' })).json()) as {
    duration: number;
    durationMs: number;
    messages: object[];
  };
  const requests = await logsOf(sessionId);
  expect(log).toMatchObject({
    id: sessionId,
    sessionId,
    triggerAgentId: 'desk',
    agents: ['desk', 'helper'],
    severity: 'INFO',
    promptTokens: 30,
    completionTokens: 9,
    metadata: { version: 3 },
  });
  expect(log).not.toHaveProperty('requestId');
  expect(log.messages).toEqual(requests.flatMap(({ messages }) => messages));
  expect(log.durationMs).toBe(requests.reduce((sum, { durationMs }) => sum + durationMs, 0));
  expect(log.duration).toBe(Math.ceil(log.durationMs / 1_000));
});

test('a session of one tenant does not exist in another', async () => {
  const sessionId = randomUUID();
  await chat({ agentId: 'desk', message: 'a secret of acme' }, { 'session-id': sessionId });
  const umbrellaToken = await server.token('umbrella');
  await putAgent(server, { tenant: 'umbrella', token: umbrellaToken, id: 'desk' });
  const call = { tenant: 'umbrella', token: umbrellaToken, path: '/chat', headers: { 'session-id': sessionId } };
  expect((await callAgentic(server, call, { agentId: 'desk', message: 'what?' })).status).toBe(200);
  expect(vendor.requests.at(-1)?.text).toBe('what?');
});

test('the context is cut to the window of the model, oldest messages first and whole, and the log says so', async () => {
  const llmConfig = { provider: 'openai', model: 'm', apiKey: agentKey, contextTokens: 600, maxTokens: 100 };
  await putAgent(server, { tenant, token, id: 'small' }, { llmConfig });
  const session = { 'session-id': randomUUID() };
  for (let index = 0; index < 8; index += 1) {
    vendor.behave({ kind: 'answer', text: `${index}`.repeat(100) });
    await chat({ agentId: 'small', message: `${index}`.repeat(100) }, session);
  }
  const texts = vendor.requests.at(-1)?.body.messages?.map(({ content }) => String(content)) ?? [];
  expect(texts).toEqual(['4', '4', '5', '5', '6', '6', '7'].map((digit) => digit.repeat(100)).slice(-texts.length));
  expect(texts.length).toBeGreaterThan(1);
  const log = (await logsOf(session['session-id'])).at(-1);
  expect(log?.severity).toBe('WARNING');
  const left = 7 - (texts.length - 1) / 2;
  expect(log?.messages.map(({ message }) => message)).toContain(
    `The context was cut: ${left} of 7 earlier exchanges left out, the oldest.`,
  );
});

describe.each(['openai', 'anthropic', 'google'] as const)('%s', (provider) => {
  test('a stream has a token event for each piece, and done with the whole', async () => {
    await putAgent(
      server,
      { tenant, token, id: `s-${provider}` },
      { llmConfig: { provider, model: 'm', apiKey: agentKey } },
    );
    vendor.behave({ kind: 'answer', text: 'one two three', usage: { input: 8, output: 6 } });
    const response = await chat({ agentId: `s-${provider}`, message: 'count' }, {}, server, '/chat-stream');
    expect(response.headers.get('content-type')).toBe('text/event-stream');
    const events = eventsOf(await response.text());
    expect(events.map(({ event }) => event)).toEqual(['token', 'token', 'token', 'done']);
    expect(
      events
        .slice(0, -1)
        .map(({ data }) => data.text)
        .join(''),
    ).toBe('one two three');
    const sessionId = response.headers.get('session-id') ?? '';
    expect(events.at(-1)?.data).toEqual({
      agentId: `s-${provider}`,
      agentType: 'generic',
      sessionId,
      message: 'one two three',
    });
    expect(await logsOf(sessionId)).toMatchObject([{ promptTokens: 8, completionTokens: 6, severity: 'INFO' }]);
  });

  test('a stream that is cut ends with an error event, logged with what was reported', async () => {
    await putAgent(
      server,
      { tenant, token, id: `c-${provider}` },
      { llmConfig: { provider, model: 'm', apiKey: agentKey } },
    );
    vendor.behave({ kind: 'cut', usage: { input: 8, output: 6 } });
    const response = await chat({ agentId: `c-${provider}`, message: 'count' }, {}, server, '/chat-stream');
    const events = eventsOf(await response.text());
    expect(events.at(-1)).toMatchObject({ event: 'error', data: { status: 502, type: 'provider_error' } });
    const reported = { openai: [0, 0], anthropic: [8, 1], google: [8, 6] }[provider];
    const [log] = await logsOf(response.headers.get('session-id') ?? '');
    expect([log?.promptTokens, log?.completionTokens, log?.severity]).toEqual([...reported, 'ERROR']);
  });
});

test('a client that goes away aborts the call to the provider, and the request is logged', async () => {
  for (const path of ['/chat', '/chat-stream']) {
    vendor.behave({ kind: 'hang' });
    const sessionId = randomUUID();
    const abandoned = vendor.abandoned.length;
    const gone = new AbortController();
    const request = server.call(`/ai-service/${tenant}/agentic${path}`, {
      token,
      signal: gone.signal,
      headers: { 'session-id': sessionId },
      json: { agentId: 'desk', message: 'x' },
    });
    const seen = vendor.requests.length;
    while (vendor.requests.length === seen) await sleep(5);
    await sleep(20);
    gone.abort();
    await request.then((response) => response.text()).catch(() => {});
    await until(async () => vendor.abandoned.length > abandoned && (await logsOf(sessionId)).length === 1);
    expect(await logsOf(sessionId)).toMatchObject([{ severity: 'WARNING', promptTokens: 0 }]);
  }
});

test('a shared agent uses the token and the model of the service, counted by its quota', async () => {
  await putAgent(server, { tenant, token, id: 'shared' }, { llmConfig: { provider: 'shared', maxTokens: 50 } });
  vendor.behave({ kind: 'answer', usage: { input: 30, output: 7 } });
  const before = await server.context.completions.quota.state(tenant);
  expect((await chat({ agentId: 'shared', message: 'x' })).status).toBe(200);
  expect(vendor.requests[0]?.headers.authorization).toBe('Bearer sk-shared');
  expect(vendor.requests[0]).toMatchObject({ model: 'gpt-5.4-mini', cap: 50 });
  const after = await server.context.completions.quota.state(tenant);
  expect(after).toEqual({
    used: { input: before.used.input + 30, output: before.used.output + 7 },
    reserved: { input: 0, output: 0 },
  });
  await server.database.pool.query('update completion_quota set output_used = 1000000 where tenant = $1', [tenant]);
  const refused = await chat({ agentId: 'shared', message: 'x' });
  expect([refused.status, ((await refused.json()) as { type: string }).type]).toEqual([403, 'quota_exceeded']);
});

test('an unknown agent is 404, a disabled one 409, and a session id that is no UUID 400', async () => {
  await putAgent(server, { tenant, token, id: 'off' }, { enabled: false });
  for (const path of ['/chat', '/chat-stream', '/chat-async']) {
    expect((await chat({ agentId: 'nobody', message: 'x' }, {}, server, path)).status).toBe(404);
    expect((await chat({ agentId: 'a\0b', message: 'x' }, {}, server, path)).status).toBe(404);
    expect((await chat({ agentId: 'off', message: 'x' }, {}, server, path)).status).toBe(409);
    expect((await chat({ agentId: 'desk', message: 'x' }, { 'session-id': 'mine' }, server, path)).status).toBe(400);
    expect((await chat({ agentId: 'desk', message: '' }, {}, server, path)).status).toBe(400);
    expect((await chat({ agentId: 'desk' }, {}, server, path)).status).toBe(400);
  }
  expect(vendor.requests).toEqual([]);
});

test('a queued chat runs by itself, once, with the answer in its job', async () => {
  vendor.behave({ kind: 'answer', text: 'later', usage: { input: 5, output: 2 } });
  const response = await chat({ agentId: 'desk', message: 'do it' }, {}, server, '/chat-async');
  const { jobId } = (await response.json()) as { jobId: string };
  expect(response.status).toBe(201);
  const job = async () =>
    (await (await server.call(`/ai-service/${tenant}/jobs/${jobId}`, { token })).json()) as Record<string, unknown>;
  await until(async () => (await job()).status !== 'in_progress');
  const sessionId = response.headers.get('session-id') ?? '';
  expect(await job()).toMatchObject({
    type: 'AGENT_CHAT',
    status: 'success',
    agentId: 'desk',
    sessionId,
    request: 'do it',
    message: 'later',
    response: [{ agentId: 'desk', sessionId, message: 'later' }],
    metadata: { version: 2 },
  });
  expect(vendor.requests).toHaveLength(1);
  expect(await logsOf(sessionId)).toMatchObject([{ promptTokens: 5, completionTokens: 2 }]);
});
