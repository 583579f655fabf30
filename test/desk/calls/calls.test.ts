import { randomUUIDv7 } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { callRetentionDays, dropOldCalls, sumCalls } from '../../../src/desk/calls/store.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { agentKey, callAgentic, putAgent } from '../../support/server/agents.ts';
import { callStart, endedCall, reserveTokens, wrongSums } from '../../support/server/calls.ts';
import { complete, newTenant, setProviderToken, usageOf } from '../../support/server/completions.ts';
import { lockTables } from '../../support/server/locked-tables.ts';
import { eventually } from '../../support/server/patience.ts';
import { startTestServer } from '../../support/server/server.ts';
import { statementsWaiting } from '../../support/server/statements-waiting.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { startVendor } from '../../support/vendor/vendor-server.ts';

interface Call {
  id: string;
  at: string;
  client: string;
  firstTokenMs?: number;
  durationMs: number;
  [member: string]: unknown;
}

const folder = temporaryFolder();
const prices = join(folder, 'prices.json');
await writeFile(
  prices,
  JSON.stringify([
    {
      provider: 'openai',
      models: ['gpt-small'],
      prices: [{ usdPerMillion: { input: '2', cachedInput: '0.5', output: '8' } }],
    },
    {
      provider: 'anthropic',
      models: ['large'],
      prices: [{ from: '2026-01-01', usdPerMillion: { input: '1', cacheWrites: '4', output: '5' } }],
    },
  ]),
);
const vendor = closeAfterAll(await startVendor());
const server = closeAfterAll(
  await startTestServer({
    environment: {
      OPENAI_BASE_URL: vendor.baseUrl,
      ANTHROPIC_BASE_URL: vendor.baseUrl,
      GOOGLE_BASE_URL: vendor.baseUrl,
      ANNALS_SHARED_PROVIDER_TOKEN: 'sk-shared',
      ANNALS_COMPLETION_MODEL: 'gpt-small',
      ANNALS_PRICES_FILE: prices,
    },
  }),
);

async function callsOf(tenant: string, parameters = ''): Promise<Call[]> {
  const token = await server.token(tenant);
  const response = await server.call(`/usage/${tenant}/calls?sort=_id:ASC&${parameters}`, { token });
  expect(response.status).toBe(200);
  return (await response.json()) as Call[];
}

/** The call without the members that differ from run to run. */
function stable({ id, at, client, durationMs, firstTokenMs, ...call }: Call) {
  expect(Math.abs(Date.parse(at) - Date.now())).toBeLessThan(600_000);
  expect(durationMs).toBeGreaterThanOrEqual(firstTokenMs ?? 0);
  expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7/);
  return { ...call, streamed: firstTokenMs !== undefined, hasClient: client !== '' };
}

test('a model of an agent whose name no database stores is recorded all the same', async () => {
  const tenant = await newTenant(server);
  const token = await server.token(tenant);
  const llmConfig = { provider: 'openai', model: 'a\0b', apiKey: agentKey };
  await putAgent(server, { tenant, token, id: 'odd' }, { llmConfig });
  vendor.behave({ kind: 'answer' });
  await callAgentic(server, { tenant, token, path: '/chat' }, { agentId: 'odd', message: 'Hello' });
  expect(await callsOf(tenant)).toMatchObject([{ agent: 'odd', model: 'a\ufffdb' }]);
});

test('a completion and each call of a chat is a record with its tokens by kind, on own keys and on the shared token', async () => {
  const tenant = await newTenant(server);
  vendor.behave(({ format }) => {
    const usage: Record<string, object> = {
      openai: {
        prompt_tokens: 30,
        completion_tokens: 20,
        prompt_tokens_details: { cached_tokens: 12 },
        completion_tokens_details: { reasoning_tokens: 15 },
      },
      anthropic: { input_tokens: 10, cache_read_input_tokens: 7, cache_creation_input_tokens: 3, output_tokens: 9 },
      google: { promptTokenCount: 11, cachedContentTokenCount: 4, candidatesTokenCount: 2, thoughtsTokenCount: 3 },
    };
    const body = {
      openai: { choices: [{ message: { content: 'Hello there' }, finish_reason: 'length' }], usage: usage.openai },
      anthropic: { content: [{ type: 'text', text: 'Hello there' }], stop_reason: 'end_turn', usage: usage.anthropic },
      google: {
        candidates: [{ content: { parts: [{ text: 'Hello there' }] }, finishReason: 'STOP' }],
        usageMetadata: usage.google,
      },
    };
    return { kind: 'status', status: 200, body: body[format] };
  });
  expect((await complete(server, tenant)).status).toBe(200);
  await setProviderToken(server, tenant, 'sk-own');
  expect((await complete(server, tenant)).status).toBe(200);
  const token = await server.token(tenant);
  for (const provider of ['anthropic', 'google']) {
    const agentId = `of-${provider}`;
    await putAgent(
      server,
      { tenant, token, id: agentId },
      { llmConfig: { provider, model: 'large', apiKey: agentKey } },
    );
    const answer = await callAgentic(server, { tenant, token, path: '/chat' }, { agentId, message: 'x' });
    expect(answer.status).toBe(200);
  }
  const same = { streamed: false, hasClient: true };
  const openai = { provider: 'openai', model: 'gpt-small', inputTokens: 30, cachedTokens: 12, outputTokens: 20 };
  const completion = { operation: 'completion', ...openai, reasoningTokens: 15, finishReason: 'length', ...same };
  const chat = { operation: 'chat', token: 'own', model: 'large', finishReason: 'stop', ...same };
  const tokens = {
    anthropic: { inputTokens: 20, cachedTokens: 7, cacheWriteTokens: 3, outputTokens: 9 },
    google: { inputTokens: 11, cachedTokens: 4, outputTokens: 5, reasoningTokens: 3 },
  };
  expect((await callsOf(tenant)).map(stable)).toEqual([
    // 18 tokens at 2 and 12 at 0.5 dollars a million, and 20 at 8.
    { ...completion, token: 'shared', costUsd: '0.000202' },
    { ...completion, token: 'own', costUsd: '0.000202' },
    {
      ...chat,
      provider: 'anthropic',
      agent: 'of-anthropic',
      ...tokens.anthropic,
      costUsd: '0.000074',
      priceFrom: '2026-01-01',
    },
    { ...chat, provider: 'google', agent: 'of-google', ...tokens.google, costUsd: null },
  ]);
  expect((await callsOf(tenant, 'q=provider:google&fields=inputTokens')).map((call) => call.inputTokens)).toEqual([11]);
});

test('a stream has the time of its first text, a failed call its cause, and a call that cost nothing no record', async () => {
  const tenant = await newTenant(server);
  const token = await server.token(tenant);
  const llmConfig = { provider: 'shared', maxTokens: 50 };
  await putAgent(server, { tenant, token, id: 'helper' }, { llmConfig });
  const chat = async (path: string) => {
    const body = { agentId: 'helper', message: 'x' };
    return await (await callAgentic(server, { tenant, token, path }, body)).text();
  };
  vendor.behave({ kind: 'answer', usage: { input: 3, output: 4 } });
  expect(await chat('/chat-stream')).toContain('event: done');
  vendor.behave({ kind: 'cut' });
  expect(await chat('/chat-stream')).toContain('event: error');
  vendor.behave({ kind: 'status', status: 429 });
  await chat('/chat');

  const [answered, cut, ...others] = await callsOf(tenant);
  expect(others).toEqual([]);
  expect(answered).toMatchObject({ inputTokens: 3, outputTokens: 4, finishReason: 'stop' });
  expect(answered?.firstTokenMs).toBeGreaterThanOrEqual(0);
  expect(cut).toMatchObject({ outputTokens: 50, cause: 'bad_answer' });
  expect(cut).not.toHaveProperty('finishReason');
  const { used } = (await usageOf(server, tenant)) as { used: { inputTokens: number; outputTokens: number } };
  const sum = (name: string) => [answered, cut].reduce((total, call) => total + Number(call?.[name]), 0);
  expect(used).toEqual({ inputTokens: sum('inputTokens'), outputTokens: sum('outputTokens') });
});

test('a call of a dead process is recorded as it is charged, and its late figures replace that', async () => {
  const tenant = await newTenant(server);
  const { quota } = server.context.completions;
  const call = { ...callStart(), model: 'of-the-dead' };
  const reservation = await reserveTokens(quota, { tenant, call, input: 10, output: 20, maxDuration: 60_000 });
  await reservation.send();
  expect(await callsOf(tenant)).toEqual([]);
  await server.database.pool.query('update completion_reservation set expires_at = now() where tenant = $1', [tenant]);
  await quota.state(tenant);
  const [charged] = await callsOf(tenant);
  expect(charged).toMatchObject({ model: 'of-the-dead', inputTokens: 10, outputTokens: 20, cause: 'cancelled' });
  expect(charged).not.toHaveProperty('durationMs');
  await reservation.settle(endedCall({ inputTokens: 3, outputTokens: 25 }));
  expect(await callsOf(tenant)).toEqual([
    expect.objectContaining({ inputTokens: 3, outputTokens: 25, finishReason: 'stop' }),
  ]);
});

test('a call on an own key whose write is repeated is recorded and counted once', async () => {
  const tenant = await newTenant(server);
  const { quota } = server.context.completions;
  const call = { ...callStart(), token: 'own' } as const;
  const end = endedCall({ inputTokens: 3, outputTokens: 4 });
  await Promise.all([1, 2, 3].map(() => quota.record(tenant, call, end)));
  await quota.record(tenant, call, end);
  expect(await callsOf(tenant)).toHaveLength(1);
  const [today] = (await server.context.usage.read(tenant, {
    first: Math.floor(Date.now() / 86_400_000),
    last: Math.floor(Date.now() / 86_400_000),
  })) as { inputTokens: number; outputTokens: number }[];
  expect(today).toMatchObject({ inputTokens: 3, outputTokens: 4 });
});

test('a call on an own key is answered once its record is written, as other processes read it', async () => {
  const tenant = await newTenant(server);
  await setProviderToken(server, tenant, 'sk-own');
  vendor.behave({ kind: 'answer' });
  const locked = await lockTables(server.database, ['call_record']);
  let isAnswered = false;
  const asked = complete(server, tenant).then((answer) => {
    isAnswered = true;
    return answer;
  });
  try {
    await eventually(async () => (await statementsWaiting(server.database)).join()).toContain('call_record_add');
    await sleep(50);
    expect(isAnswered).toBe(false);
  } finally {
    await locked.release();
  }
  expect((await asked).status).toBe(200);
  const { rows } = await server.database.pool.query('select from call_record where tenant = $1', [tenant]);
  expect(rows).toHaveLength(1);
});

test('records of many calls on own keys are few transactions, and none touches the quota', async () => {
  const tenant = await newTenant(server);
  const { quota } = server.context.completions;
  const before = await transactionsOf(tenant);
  const calls = Array.from({ length: 200 }, () => ({ ...callStart(), token: 'own' }) as const);
  await Promise.all(
    calls.map((call) => quota.record(tenant, call, endedCall({ inputTokens: 1, outputTokens: undefined }))),
  );
  expect((await transactionsOf(tenant)) - before).toBeLessThanOrEqual(2);
  const { rows } = await server.database.pool.query('select from completion_quota where tenant = $1', [tenant]);
  expect(rows).toEqual([]);
});

async function transactionsOf(tenant: string): Promise<number> {
  const { rows } = await server.database.pool.query<{ count: number }>(
    'select count(distinct xmin::text)::integer as count from call_record where tenant = $1',
    [tenant],
  );
  return rows[0]?.count ?? 0;
}

test(`records are kept for ${callRetentionDays} days, and until the sums have them`, async () => {
  const tenant = await newTenant(server);
  const { quota } = server.context.completions;
  const day = 24 * 60 * 60_000;
  const ids: string[] = [];
  for (const age of [callRetentionDays * day + 60_000, callRetentionDays * day - 60_000]) {
    const time = (Date.now() - age).toString(16).padStart(12, '0');
    const id = `${time.slice(0, 8)}-${time.slice(8)}${randomUUIDv7().slice(13)}`;
    ids.push(id);
    const call = { ...callStart(), token: 'own', id, at: Date.now() - age } as const;
    await quota.record(tenant, call, endedCall({ inputTokens: 1, outputTokens: 1 }));
  }
  await dropOldCalls(server.database.db);
  expect(await callsOf(tenant)).toHaveLength(2);
  await sumCalls(server.database.db, tenant);
  await dropOldCalls(server.database.db);
  expect((await callsOf(tenant)).map(({ id }) => id)).toEqual(ids.slice(1));
});

test('calls need usage.usage_read, and those of other tenants are not there', async () => {
  const [tenant, otherTenant] = [await newTenant(server), await newTenant(server)];
  vendor.behave({ kind: 'answer' });
  await complete(server, tenant);
  expect(await callsOf(tenant)).toHaveLength(1);
  expect(await callsOf(otherTenant)).toEqual([]);
  const token = await server.token(tenant, { scope: 'ai.completion_manage' });
  expect((await server.call(`/usage/${tenant}/calls`, { token })).status).toBe(403);
});

test('the record of a deleted tenant is dropped without failing the settlement', async () => {
  const { quota } = server.context.completions;
  const call = { ...callStart(), token: 'own' } as const;
  const end = endedCall({ inputTokens: 3, outputTokens: 4 });
  await quota.record('nobody', call, end);
  expect(server.logLines.filter((line) => line.includes('a settlement of calls failed'))).toEqual([]);
});

/** The costs of a tenant, by name: calls, the cost, calls without one; `others` and `none` for what has no name. */
async function costsOf(tenant: string, parameters: string): Promise<Record<string, [number, string, number]>> {
  const token = await server.token(tenant, { scope: 'usage.usage_read' });
  const response = await server.call(`/usage/${tenant}/costs?${parameters}`, { token });
  expect(response.status).toBe(200);
  const items = (await response.json()) as { name: string | null; others?: true; [member: string]: unknown }[];
  return Object.fromEntries(
    items.map(({ name, others, calls, costUsd, callsWithoutCost }) => [
      name ?? (others ? 'others' : 'none'),
      [calls, costUsd, callsWithoutCost] as [number, string, number],
    ]),
  );
}

const priceOfTest = { tiers: [{ above: -1, input: 1, cachedInput: 1, cacheWrites: 1, output: 2_000_000 }] };

test('costs are exact sums by day, month and each member of calls, with the number of calls of unknown cost', async () => {
  const tenant = await newTenant(server);
  const { quota } = server.context.completions;
  const end = endedCall({ inputTokens: 1, outputTokens: 2 });
  const known = { token: 'own', price: priceOfTest } as const;
  for (const call of [
    callStart({ ...known, at: Date.parse('2026-08-31T23:59:59.999Z'), agentId: 'helper' }),
    callStart({ ...known, at: Date.parse('2026-09-01T00:00:00Z'), user: 'ann', clientId: 'other' }),
    callStart({ ...known, at: Date.parse('2026-09-02T12:00:00Z'), user: 'ann', provider: 'google', model: 'large' }),
    callStart({ token: 'own', at: Date.parse('2026-09-02T12:00:00Z'), user: 'bob' }),
  ]) {
    await quota.record(tenant, call, end);
  }
  const range = 'from=2026-08-30&to=2026-09-02';
  const callCost = '0.000004000001';
  expect(await costsOf(tenant, range)).toEqual({
    '2026-08-30': [0, '0', 0],
    '2026-08-31': [1, callCost, 0],
    '2026-09-01': [1, callCost, 0],
    '2026-09-02': [2, callCost, 1],
  });
  expect(await costsOf(tenant, `${range}&by=month`)).toEqual({
    '2026-08': [1, callCost, 0],
    '2026-09': [3, '0.000008000002', 1],
  });
  const by = async (member: string) => await costsOf(tenant, `${range}&by=${member}`);
  expect(await by('client')).toEqual({ c: [3, '0.000008000002', 1], other: [1, callCost, 0] });
  expect(await by('agent')).toEqual({ helper: [1, callCost, 0], none: [3, '0.000008000002', 1] });
  expect(await by('model')).toEqual({ m: [3, '0.000008000002', 1], large: [1, callCost, 0] });
  expect(await by('provider')).toEqual({ openai: [3, '0.000008000002', 1], google: [1, callCost, 0] });
  expect(await by('user')).toEqual({ ann: [2, '0.000008000002', 0], bob: [1, '0', 1], none: [1, callCost, 0] });
  expect(await costsOf(tenant, 'from=2026-09-01&to=2026-09-01&by=user')).toEqual({ ann: [1, callCost, 0] });
  expect(await costsOf(tenant, 'from=2026-09-01&to=2026-09-02&user=ann')).toEqual({
    '2026-09-01': [1, callCost, 0],
    '2026-09-02': [1, callCost, 0],
  });
  expect(await costsOf(tenant, `${range}&by=month&provider=google`)).toMatchObject({ '2026-09': [1, callCost, 0] });
  expect(await wrongSums(server.database.pool, tenant)).toEqual([]);

  const token = await server.token(tenant);
  for (const wrong of [
    'by=colour',
    'from=2026-09-02&to=2026-09-01',
    'from=2025-09-02&to=2026-09-03',
    'by=user&client=c',
    'agent=a&user=u',
  ]) {
    expect((await server.call(`/usage/${tenant}/costs?${wrong}`, { token })).status).toBe(400);
  }
  const otherToken = await server.token(tenant, { scope: 'ai.completion_manage' });
  expect((await server.call(`/usage/${tenant}/costs`, { token: otherToken })).status).toBe(403);
});

test('a day has sums for 1,000 users and 1,000 models, one for all others, and a name that has a row keeps it', async () => {
  const tenant = await newTenant(server);
  const { quota } = server.context.completions;
  const end = endedCall({ inputTokens: 0, outputTokens: 1 });
  const at = Date.parse('2026-09-01T00:00:00Z');
  const call = (name: number) =>
    callStart({
      token: 'own',
      at,
      price: priceOfTest,
      user: `user ${name}`,
      model: `model ${name}`,
      agentId: `${name}`,
    });
  const record = async (first: number, last: number) => {
    const names = Array.from({ length: last - first + 1 }, (_, index) => first + index);
    await Promise.all(names.map((name) => quota.record(tenant, call(name), end)));
  };
  await record(1, 999);
  await record(1000, 1000);
  await record(1000, 1002);
  for (const by of ['user', 'model']) {
    const costs = await costsOf(tenant, `from=2026-09-01&to=2026-09-01&by=${by}`);
    expect(Object.keys(costs)).toHaveLength(1001);
    expect(costs[`${by} 1000`]).toEqual([2, '0.000004', 0]);
    expect(costs.others).toEqual([2, '0.000004', 0]);
    expect(costs.none).toBeUndefined();
  }
  // All agents have rows; an answer has those that cost most.
  const agents = await costsOf(tenant, 'from=2026-09-01&to=2026-09-01&by=agent');
  expect([agents['1000'], agents.others]).toEqual([
    [2, '0.000004', 0],
    [2, '0.000004', 0],
  ]);
  expect(Object.keys(agents)).toHaveLength(1001);
});
