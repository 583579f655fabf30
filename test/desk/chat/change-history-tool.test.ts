import { randomUUID } from 'node:crypto';
import { afterEach, describe, expect, test } from 'vitest';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { agentKey, callAgentic, putAgent } from '../../support/server/agents.ts';
import { lockTables } from '../../support/server/locked-tables.ts';
import { eventually } from '../../support/server/patience.ts';
import { startTestServer } from '../../support/server/server.ts';
import { statementsWaiting } from '../../support/server/statements-waiting.ts';
import { startVendor, type VendorRequest } from '../../support/vendor/vendor-server.ts';

const tenant = 'acme';
const price = '1234.500';
const chatting = 'ai.agentexecution_manage ai.agent_read';

const vendor = closeAfterAll(await startVendor());
const environment = {
  OPENAI_BASE_URL: vendor.baseUrl,
  ANTHROPIC_BASE_URL: vendor.baseUrl,
  GOOGLE_BASE_URL: vendor.baseUrl,
  ANNALS_SHARED_PROVIDER_TOKEN: 'sk-shared',
};
const server = closeAfterAll(await startTestServer({ environment }));
const token = await server.token(tenant, { name: 'Jane Doe' });
const withHistory = await server.token(tenant, { scope: `${chatting} changelog.changelog_read` });
const withoutHistory = await server.token(tenant, { scope: chatting });
const schema = (path: string, body: string, method = 'POST', as = token, of = tenant) =>
  server.call(`/schema/${of}/custom-entities${path}`, {
    token: as,
    method,
    headers: { 'content-type': 'application/json' },
    body,
  });
await schema('', '{"id":"PRODUCT","name":{"en":"Product"}}');
await schema('/PRODUCT/instances', '{"id":"17","price":1}');
await schema('/PRODUCT/instances/17', `{"price":${price}}`, 'PUT');
const umbrellaToken = await server.token('umbrella', { name: 'Eve' });
await schema('', '{"id":"PRODUCT","name":{"en":"Product"}}', 'POST', umbrellaToken, 'umbrella');
await schema('/PRODUCT/instances', '{"id":"17","price":98765432.1}', 'POST', umbrellaToken, 'umbrella');
for (const provider of ['openai', 'anthropic', 'google', 'shared']) {
  const llmConfig = provider === 'shared' ? { provider } : { provider, model: 'm', apiKey: agentKey };
  const agent = { llmConfig, nativeTools: ['change-history'] };
  await putAgent(server, { tenant, token, id: provider }, agent);
}

afterEach(() => {
  vendor.requests.length = 0;
});

const rounds = () => vendor.requests.length;
const isOffered = (request: VendorRequest | undefined) => (request?.body.tools ?? []).length > 0;
const usage = { input: 10, output: 5 };

/** The vendor asks for the tool with these inputs, one a round, and then answers. */
function askFor(...inputs: Record<string, unknown>[]): void {
  vendor.behave(() => {
    const input = inputs[rounds() - 1];
    if (input === undefined) return { kind: 'answer', text: 'Jane Doe did.', usage };
    return { kind: 'answer', toolCall: { id: `call-${rounds()}`, name: 'change-history', input }, usage };
  });
}

async function ask(agentId: string, as: string, sessionId: string = randomUUID()) {
  const call = { tenant, token: as, path: '/chat', headers: { 'session-id': sessionId } };
  const response = await callAgentic(server, call, { agentId, message: 'Who changed the price of product 17?' });
  const path = `/logs/requests?q=sessionId:${sessionId}&pageSize=500`;
  const logs = (await (await callAgentic(server, { tenant, token, path, method: 'GET' })).json()) as {
    messages: { message: string }[];
    promptTokens: number;
    completionTokens: number;
  }[];
  return { status: response.status, body: (await response.json()) as never, log: logs.at(-1), sessionId };
}

test.each(['openai', 'anthropic', 'google', 'shared'])(
  '%s: the model asks, sees real entries, and answers from them',
  async (id) => {
    const quota = (await server.context.completions.quota.state(tenant)).used;
    const q = 'entity:PRODUCT entityId:17 type:update';
    askFor({ q });
    const { status, body, log } = await ask(id, withHistory);
    expect([status, body]).toEqual([200, [expect.objectContaining({ message: 'Jane Doe did.' })]]);
    expect(rounds()).toBe(2);
    expect(isOffered(vendor.requests[0])).toBe(true);
    const shown = JSON.stringify(vendor.requests[1]?.body).replaceAll('\\', '');
    for (const part of ['"actor":"Jane Doe"', `"price":{"before":1,"after":${price}}`, '"totalElements":1']) {
      expect(shown).toContain(part);
    }
    expect(shown).not.toContain('98765432');
    expect(log).toMatchObject({ promptTokens: 20, completionTokens: 10 });
    expect(log?.messages.map(({ message }) => message)).toContain(
      `Tool round 1: change-history, found 1 entries, shown 1: ${q}`,
    );
    expect(JSON.stringify(log)).not.toContain(price);
    const used = (await server.context.completions.quota.state(tenant)).used;
    const counted = id === 'shared' ? { input: 20, output: 10 } : { input: 0, output: 0 };
    expect(used).toEqual({ input: quota.input + counted.input, output: quota.output + counted.output });
  },
);

test('a client without a changelog scope is not offered the tool, and gets no entries where the model calls it anyway', async () => {
  askFor({ q: 'entity:PRODUCT' });
  const { status } = await ask('openai', withoutHistory);
  expect(status).toBe(200);
  expect(isOffered(vendor.requests[0])).toBe(false);
  const secondRequest = JSON.stringify(vendor.requests[1]?.body);
  expect(secondRequest).toContain('There is no such tool');
  expect(secondRequest).not.toContain('Jane Doe');
});

test('an agent without the tool does not offer it', async () => {
  await putAgent(server, { tenant, token, id: 'plain' });
  askFor({ q: 'entity:PRODUCT' });
  await ask('plain', withHistory);
  expect(isOffered(vendor.requests[0])).toBe(false);
  expect(JSON.stringify(vendor.requests[1]?.body)).not.toContain('Jane Doe');
});

test('an invalid query comes back to the model as an error, which it can correct', async () => {
  askFor(
    { q: 'colour:red' },
    { q: 'entityId:17' },
    { q: 'entity:PRODUCT', size: 1000 },
    { q: 'entity:PRODUCT entityId:17' },
  );
  const { status, log } = await ask('openai', withHistory);
  expect(status).toBe(200);
  expect(rounds()).toBe(5);
  const last = JSON.stringify(vendor.requests.at(-1)?.body);
  expect(last).toContain('Unsupported query field: colour');
  expect(last).toContain('At position 1: expected');
  expect(last).toContain('entity is required when entityId is provided');
  expect(last).toContain('The input must be');
  expect(last.replaceAll('\\', '')).toContain('"totalElements":2');
  expect(log).toMatchObject({ promptTokens: 50, completionTokens: 25 });
});

test('terms on contexts are for chats of clients that may read contexts', async () => {
  for (const [as, expected] of [
    [withHistory, 'required scopes'],
    [token, 'totalElements'],
  ] as const) {
    vendor.requests.length = 0;
    askFor({ q: 'context.ip:203.0.113.7' });
    await ask('openai', as);
    expect(JSON.stringify(vendor.requests[1]?.body)).toContain(expected);
  }
});

test('after 8 rounds the model has to answer', async () => {
  const query = { q: 'entity:PRODUCT' };
  askFor(...Array.from({ length: 8 }, () => query));
  expect((await ask('openai', withHistory)).status).toBe(200);
  expect(rounds()).toBe(9);
  expect(JSON.stringify(vendor.requests.at(-1)?.body)).toContain('This was the last round of tools');
  vendor.requests.length = 0;
  askFor(...Array.from({ length: 20 }, () => query));
  const { status, log } = await ask('openai', withHistory);
  expect([status, rounds()]).toEqual([502, 9]);
  expect(log).toMatchObject({ promptTokens: 90, completionTokens: 45 });
});

test('answers from the change history are left out of the context of clients that may not read it', async () => {
  askFor({ q: 'entity:PRODUCT' });
  const { sessionId } = await ask('openai', withHistory);
  vendor.behave({ kind: 'answer', text: 'an answer that repeats it' });
  await ask('openai', withHistory, sessionId);
  expect(vendor.requests.at(-1)?.text).toContain('Jane Doe did.');
  await ask('openai', withoutHistory, sessionId);
  // Neither the answer itself nor one that had it as context.
  expect(vendor.requests.at(-1)?.text).not.toContain('Jane Doe');
  expect(vendor.requests.at(-1)?.text).not.toContain('repeats');
  await ask('openai', withHistory, sessionId);
  expect(vendor.requests.at(-1)?.text).toContain('repeats');
});

test('a result of the tool that is too long is cut to whole entries', async () => {
  const body = JSON.stringify({ text: 'x'.repeat(20_000) });
  for (let index = 0; index < 5; index += 1) {
    await server.call(`/schema/${tenant}/custom-entities/PRODUCT/instances`, {
      token,
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    });
  }
  askFor({ q: 'entity:PRODUCT type:create', size: 50 });
  const { status } = await ask('anthropic', withHistory);
  expect(status).toBe(200);
  const secondRequest = JSON.stringify(vendor.requests[1]?.body);
  expect(secondRequest).toContain('4 entries of this page were left out');
  expect(secondRequest.length).toBeLessThan(70_000);
});

test('an entry that is too long alone is shown with its long values cut, and then with its first paths', async () => {
  const path = `/schema/${tenant}/custom-entities/PRODUCT/instances`;
  const make = async (id: string, fields: object) =>
    expect((await server.call(path, { token, json: { id, ...fields } })).status).toBe(201);
  await make('long', { price: 17, text: 'x'.repeat(100_000) });
  await make(
    'wide',
    Object.fromEntries(Array.from({ length: 3_000 }, (_, index) => [`field${index}`, `value ${index}`])),
  );
  await make('short', { price: 18 });
  askFor({ q: 'entity:PRODUCT type:create', size: 3 });
  expect((await ask('openai', withHistory)).status).toBe(200);
  const result = JSON.parse(String(vendor.requests[1]?.body.messages?.find(({ role }) => role === 'tool')?.content));
  expect(result.items).toHaveLength(3);
  const [short, wide, long] = result.items;
  expect(short.paths.price).toEqual({ after: 18 });
  expect(Object.keys(wide.paths).length).toBeGreaterThan(10);
  expect(wide.paths.field0).toEqual({ after: 'value 0' });
  expect(long.paths.price).toEqual({ after: 17 });
  expect(long.cut).toEqual(['text (100002 bytes)']);
  expect(result.note).toContain('2 entries are too long');
  expect(JSON.stringify(result).length).toBeLessThan(48 * 1024);
});

describe('the query of an abandoned chat ends in the database too', () => {
  const chat = { agentId: 'openai', message: 'Who changed the price of product 17?' };
  const reading = async (q: string) => (await callAgentic(server, { tenant, token, path: q, method: 'GET' })).json();

  const stuck = async () => (await statementsWaiting(server.database)).length;

  async function whileStuck(
    why: string,
    work: (headers: Record<string, string>) => Promise<() => unknown>,
  ): Promise<void> {
    askFor({ q: 'entity:PRODUCT entityId:17' });
    const sessionId = randomUUID();
    const locked = await lockTables(server.database, ['change_entry']);
    try {
      const giveUp = await work({ 'session-id': sessionId });
      await eventually(stuck).toBe(1);
      await giveUp();
      await eventually(stuck).toBe(0);
      const logs = () => reading(`/logs/requests?q=sessionId:${sessionId}`);
      await eventually(logs).toMatchObject([{ promptTokens: 10, completionTokens: 5 }]);
      expect(JSON.stringify(await logs())).toContain(`Given up: ${why}.`);
      expect(rounds()).toBe(1);
    } finally {
      await locked.release();
    }
  }

  test.each(['/chat', '/chat-stream'])('its client has gone: %s', async (path) => {
    await whileStuck('the client has gone', async (headers) => {
      const gone = new AbortController();
      const answer = server
        .call(`/ai-service/${tenant}/agentic${path}`, { token: withHistory, signal: gone.signal, headers, json: chat })
        .then((response) => response.text())
        .catch((error: unknown) => error);
      return async () => {
        gone.abort();
        expect(await answer).toMatchObject({ name: 'AbortError' });
      };
    });
  });

  test('its job was deleted', async () => {
    await whileStuck('the job was deleted or taken by another worker', async (headers) => {
      const response = await callAgentic(server, { tenant, token: withHistory, path: '/chat-async', headers }, chat);
      const { jobId } = (await response.json()) as { jobId: string };
      return async () => {
        const deleted = await server.call(`/ai-service/${tenant}/jobs/${jobId}`, { token, method: 'DELETE' });
        expect(deleted.status).toBe(204);
      };
    });
  });
});

describe('a search by the model is recorded as a read of the client that chats', () => {
  const q = 'entity:PRODUCT entityId:17';
  const readsOf = async (client: string) => {
    await server.context.countedReads.store();
    const { rows } = await server.database.pool.query<{ count: string; details: Record<string, number> }>(
      `select name, issuer, subject, address, program, count, details from access_event
         where tenant = $1 and kind = 'read' and client = $2`,
      [tenant, client],
    );
    return rows.map(({ count, ...row }) => ({ ...row, count: Number(count) }));
  };
  const newReader = async (scope = `${chatting} changelog.changelog_read`) => {
    const client = await server.createClient(tenant, { scope, name: 'Reader' });
    return { clientId: client.clientId, token: await server.tokenOf(client) };
  };

  test.each(['/chat', '/chat-stream', '/chat-async'])('by %s, once for each search that was answered', async (path) => {
    const { clientId, token: as } = await newReader();
    // The second is not valid, and the third is none.
    askFor({ q }, { q: 'entity:(' }, { query: q }, { q, page: 2 });
    const headers = { 'user-agent': 'chatter/1.0' };
    const chat = { tenant, token: as, path, headers };
    const response = await callAgentic(server, chat, { agentId: 'openai', message: 'Who?' });
    expect(response.ok).toBe(true);
    await response.text();
    await eventually(rounds).toBe(5);
    const caller = path === '/chat-async' ? {} : { address: '127.0.0.1', program: 'chatter/1.0' };
    const none = { issuer: null, subject: null, address: null, program: null };
    await eventually(() => readsOf(clientId)).toEqual([
      { name: 'Reader', ...none, ...caller, count: 2, details: { agents: 2 } },
    ]);
  });

  test('of a person under what the provider knows them by', async () => {
    const { clientId } = await newReader();
    const person = { issuer: 'https://login.example.com', subject: 'u-1' };
    const scopes = ['ai.agentexecution_manage', 'changelog.changelog_read'] as const;
    askFor({ q });
    const credentials = { clientId, clientName: 'Jane Doe', person, scopes };
    const chat = {
      tenant,
      agentId: 'openai',
      message: 'Who?',
      sessionId: randomUUID(),
      requestId: 'r',
      logId: randomUUID(),
      credentials,
    };
    await server.context.agents.chats.run(chat);
    expect(await readsOf(clientId)).toMatchObject([{ name: 'Jane Doe', ...person, count: 1 }]);
  });

  test('and none where the model may not search, or does not', async () => {
    const { clientId, token: as } = await newReader(chatting);
    askFor({ q });
    await ask('openai', as);
    const reader = await newReader();
    askFor();
    await ask('openai', reader.token);
    expect([await readsOf(clientId), await readsOf(reader.clientId)]).toEqual([[], []]);
  });
});
