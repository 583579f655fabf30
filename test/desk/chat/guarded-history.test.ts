import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { callAgentic, putAgent } from '../../support/server/agents.ts';
import { endOfJob, startExport } from '../../support/server/jobs.ts';
import { startTestServer } from '../../support/server/server.ts';
import { startVendor } from '../../support/vendor/vendor-server.ts';

// Clients that may read jobs and logs, but not the change history, must not read it there.
const tenant = 'acme';
const secret = 'Ermintrude';
const chatting = 'ai.agentexecution_manage ai.agent_read';

const vendor = closeAfterAll(await startVendor());
const server = closeAfterAll(await startTestServer({ environment: { OPENAI_BASE_URL: vendor.baseUrl } }));
const author = await server.token(tenant, { name: secret });
const insider = await server.token(tenant, { scope: `${chatting} ai.agent_manage changelog.changelog_read` });
const outsider = await server.token(tenant, { scope: chatting });
await putAgent(server, { tenant, token: author, id: 'desk' }, { nativeTools: ['change-history'] });

beforeEach(() => {
  vendor.requests.length = 0;
});

type Seen = Record<string, unknown> & { id: string };

/** The model asks for the tool twice, the second time in words of what it was shown, and then tells of it. */
function askTheHistory(answer = `${secret} made the agent desk.`): void {
  vendor.behave(({ body }) => {
    const round = body.messages?.filter(({ role }) => role === 'tool').length ?? 0;
    const toolCall = (q: string) => ({ kind: 'answer' as const, toolCall: toolCallOf(q) });
    if (round === 0) return toolCall('entity:agent');
    return round === 1 ? toolCall(`entity:agent actor:${secret}`) : { kind: 'answer', text: answer };
  });
}

const toolCallOf = (q: string) => ({ id: randomUUID(), name: 'change-history', input: { q } });

const chat = async (token: string, message: string, sessionId: string, agentId = 'desk') => {
  const call = { tenant, token, path: '/chat', headers: { 'session-id': sessionId } };
  const response = await callAgentic(server, call, { agentId, message });
  expect(response.status).toBe(200);
  return ((await response.json()) as { message: string }[])[0]?.message;
};

const chatByJob = async (token: string, message: string, sessionId: string) => {
  const call = { tenant, token, path: '/chat-async', headers: { 'session-id': sessionId } };
  const { jobId } = (await (await callAgentic(server, call, { agentId: 'desk', message })).json()) as { jobId: string };
  await endOfJob((path) => server.call(path, { token }), tenant, jobId);
  return jobId;
};

const get = async (token: string, path: string, headers: Record<string, string> = {}) =>
  await server.call(`/ai-service/${tenant}${path}`, { token, headers });

const list = async (token: string, path: string, query: Record<string, string> = {}) =>
  (await (await get(token, `${path}?${new URLSearchParams(query)}`)).json()) as Seen[];

const search = async (token: string, path: string, q: string, query: Record<string, string> = {}) => {
  const response = await server.call(`/ai-service/${tenant}${path}/search?${new URLSearchParams(query)}`, {
    token,
    json: { q },
  });
  return (await response.json()) as Seen[];
};

describe('a chat by job that searched the change history', () => {
  test('shows its answer in no view of jobs to clients without a changelog scope', async () => {
    askTheHistory();
    const id = await chatByJob(insider, 'Who made it?', randomUUID());
    const views = async (token: string) => [
      await (await get(token, `/jobs/${id}`)).json(),
      (await list(token, '/jobs')).find((job) => job.id === id),
      (await search(token, '/jobs', `_id:"${id}"`))[0],
      (await list(token, '/jobs', { fields: 'response,message,request', q: `id:"${id}"` }))[0],
    ];
    for (const view of await views(insider)) {
      expect(view).toMatchObject({
        request: 'Who made it?',
        message: `${secret} made the agent desk.`,
        response: [{ message: `${secret} made the agent desk.` }],
      });
    }
    for (const view of await views(outsider)) {
      expect(view).toMatchObject({ id, request: 'Who made it?' });
      expect(view).not.toHaveProperty('message');
      expect(view).not.toHaveProperty('response');
    }
    expect(await (await get(outsider, `/jobs/${id}`)).json()).toMatchObject({
      status: 'success',
      metadata: { guarded: ['message', 'response'] },
    });
  });

  test('does not reveal it by filters, totals or sorts', async () => {
    const ids: string[] = [];
    const sessionId = randomUUID();
    for (const answer of ['b', 'c', 'a']) {
      askTheHistory(answer);
      ids.push(await chatByJob(insider, 'Who?', randomUUID()));
    }
    askTheHistory();
    const guardedId = await chatByJob(insider, 'Who?', sessionId);
    for (const q of [
      `response.0.message:"${secret} made the agent desk."`,
      `response.0.message:*${secret}*`,
      'response.0.message:~^E',
      'response:exists',
      'response.0.message:>="E"',
      `message:*${secret}*`,
      'message:exists',
    ]) {
      expect((await list(insider, '/jobs', { q })).map(({ id }) => id)).toContain(guardedId);
      expect(await list(outsider, '/jobs', { q })).toEqual([]);
      expect(await search(outsider, '/jobs', q)).toEqual([]);
      const counted = await get(outsider, `/jobs?${new URLSearchParams({ q })}`, { 'x-total-count': 'true' });
      expect(counted.headers.get('x-total-count')).toBe('0');
    }
    expect((await search(outsider, '/jobs', 'response:missing')).map(({ id }) => id)).toContain(guardedId);
    const inOrder = async (token: string, sort: string) =>
      (await list(token, '/jobs', { sort })).map(({ id }) => id).filter((id) => ids.includes(id));
    const [b, c, a] = ids;
    expect(await inOrder(insider, 'response.0.message')).toEqual([a, b, c]);
    expect(await inOrder(outsider, 'response.0.message')).toEqual(ids.toSorted());
    expect(await inOrder(outsider, 'response.0.message:DESC')).toEqual(ids.toSorted());
  });

  test('guards the request too where it may quote a guarded answer of its session', async () => {
    const sessionId = randomUUID();
    askTheHistory();
    await chat(insider, 'Who made it?', sessionId);
    vendor.behave({ kind: 'answer', text: 'Because.' });
    const id = await chatByJob(insider, `And why did ${secret}?`, sessionId);
    expect(await (await get(insider, `/jobs/${id}`)).json()).toMatchObject({ request: `And why did ${secret}?` });
    const seen = (await (await get(outsider, `/jobs/${id}`)).json()) as Seen;
    expect(JSON.stringify(seen)).not.toContain(secret);
    expect(seen).not.toHaveProperty('response');
    expect(await list(outsider, '/jobs', { q: `request:*${secret}*` })).toEqual([]);
  });

  test('one that did not is shown whole, even of a client without the scope in a session with guarded answers', async () => {
    const sessionId = randomUUID();
    askTheHistory();
    await chat(insider, 'Who made it?', sessionId);
    vendor.behave({ kind: 'answer', text: 'No idea.' });
    const id = await chatByJob(outsider, 'Who made it?', sessionId);
    expect(vendor.requests.at(-1)?.text).not.toContain(secret);
    expect(await (await get(outsider, `/jobs/${id}`)).json()).toMatchObject({
      request: 'Who made it?',
      message: 'No idea.',
      response: [{ message: 'No idea.' }],
    });
  });
});

describe('queries of a model and their results', () => {
  test.each(['requests', 'sessions'])('are in the logs of %s only for clients with a changelog scope', async (kind) => {
    const sessionId = randomUUID();
    askTheHistory();
    await chat(insider, 'Who made it?', sessionId);
    vendor.behave({ kind: 'answer' });
    await chat(outsider, 'And I?', sessionId);
    const path = `/agentic/logs/${kind}`;
    const q = `sessionId:"${sessionId}"`;
    const [logged] = await list(insider, path, { q });
    const found = `Tool round 2: change-history, found 1 entries, shown 1: entity:agent actor:${secret}`;
    expect(JSON.stringify(logged)).toContain(found);
    const views = [
      ...(await list(outsider, path, { q })),
      ...(await search(outsider, path, q)),
      ...(await list(outsider, path, { q, fields: 'messages' })),
      await (await get(outsider, `${path}/${logged?.id}`)).json(),
    ];
    expect(views.length).toBeGreaterThanOrEqual(4);
    for (const view of views) expect(JSON.stringify(view)).not.toMatch(new RegExp(`${secret}|entity:agent|found 1`));
    expect(JSON.stringify(views[0])).toContain('A call of a tool');
    expect(await list(insider, path, { q: `${q} messages.3.message:*${secret}*` })).toHaveLength(1);
    for (const guess of [`messages.3.message:*${secret}*`, 'messages.1.message:~found.1']) {
      expect(await list(outsider, path, { q: `${q} ${guess}` })).toEqual([]);
      expect(await search(outsider, path, `${q} ${guess}`)).toEqual([]);
    }
  });

  test('are left out of the context of clients without the scope, even where quoted once they no longer fit', async () => {
    const small = { provider: 'openai', model: 'm', apiKey: 'sk-small', contextTokens: 2_000, maxTokens: 16 };
    await putAgent(server, { tenant, token: await server.token(tenant), id: 'small' }, { llmConfig: small });
    const sessionId = randomUUID();
    askTheHistory('x'.repeat(3_000));
    await chat(insider, 'Who made it?', sessionId);
    vendor.behave({ kind: 'answer', text: `${secret}, yes.` });
    vendor.requests.length = 0;
    await chat(insider, `Was it ${secret}? ${'y'.repeat(1_500)}`, sessionId, 'small');
    expect(vendor.requests[0]?.text).not.toContain('xxx');
    await chat(outsider, 'Who made it?', sessionId);
    expect(vendor.requests.at(-1)?.text).not.toContain(secret);
  });
});

test('clients without a changelog scope see that an export exists, but neither its query nor what it found', async () => {
  const call = (path: string, init?: RequestInit) => server.call(path, { ...init, token: insider });
  const id = await startExport(call, tenant, { q: `entity:agent actor:${secret}`, format: 'CSV' });
  expect(await endOfJob(call, tenant, id)).toMatchObject({ status: 'success', metadata: { entries: 1 } });
  for (const seen of [
    await (await get(outsider, `/jobs/${id}`)).json(),
    (await list(outsider, '/jobs', { q: `id:"${id}"` }))[0],
    (await search(outsider, '/jobs', `id:"${id}"`))[0],
  ]) {
    expect(seen).toMatchObject({ id, type: 'EXPORT', status: 'success', metadata: { format: 'CSV' } });
    for (const field of ['q', 'entries', 'bytes']) expect(seen).not.toHaveProperty(`metadata.${field}`);
  }
  for (const guess of ['metadata.entries:1', 'metadata.bytes:>0', `metadata.q:*${secret}*`]) {
    expect(await list(insider, '/jobs', { q: `id:"${id}" ${guess}` })).toHaveLength(1);
    expect(await list(outsider, '/jobs', { q: `id:"${id}" ${guess}` })).toEqual([]);
  }
  expect((await get(outsider, `/jobs/${id}/content`)).status).toBe(403);
});
