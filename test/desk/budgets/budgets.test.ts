import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { sumCalls } from '../../../src/desk/calls/store.ts';
import { Quota } from '../../../src/desk/completions/quota.ts';
import { createLogger } from '../../../src/http/logger.ts';
import type { CallStart } from '../../../src/providers/call-record.ts';
import { Random } from '../../support/oracle/random.ts';
import {
  author,
  makeRandomBudgets,
  makeRandomCall,
  overspent,
  priceOfBudgets,
  randomBudget,
} from '../../support/server/budgets.ts';
import { callStart, endedCall, reserveTokens, wrongSums } from '../../support/server/calls.ts';
import { complete, hello, newTenant, setProviderToken } from '../../support/server/completions.ts';
import { entriesOf } from '../../support/server/entries.ts';
import { startTestServer, type TestServer } from '../../support/server/server.ts';
import { recordStatements } from '../../support/server/statements.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { startVendor, type Vendor } from '../../support/vendor/vendor-server.ts';

const day = 86_400_000;
const random = new Random();
let folder: string;
let vendor: Vendor;
let server: TestServer;
/** The quotas of three processes. */
let quotas: Quota[];

beforeAll(async () => {
  folder = temporaryFolder();
  const prices = join(folder, 'prices.json');
  const usdPerMillion = { input: '2', output: '8' };
  await writeFile(
    prices,
    JSON.stringify([
      { provider: 'openai', models: ['gpt-small'], prices: [{ usdPerMillion }] },
      { provider: 'openai', models: ['gpt-seeing'], imageTokens: 1000, prices: [{ usdPerMillion }] },
    ]),
  );
  vendor = await startVendor();
  server = await startTestServer({
    environment: {
      OPENAI_BASE_URL: vendor.baseUrl,
      ANNALS_SHARED_PROVIDER_TOKEN: 'sk-shared',
      ANNALS_COMPLETION_MODEL: 'gpt-small',
      ANNALS_PRICES_FILE: prices,
    },
  });
  const { pool, db } = server.database;
  quotas = [1, 2, 3].map(() => new Quota({ pool, db, logger: createLogger('silent'), maxWait: 100 }));
});

afterAll(async () => {
  for (const quota of quotas) await quota.close();
  await server.close();
  await vendor.close();
});

async function send(tenant: string, method: string, path: string, body?: object) {
  const token = await server.token(tenant, { scope: 'usage.budget_manage' });
  const response = await server.call(`/usage/${tenant}/budgets${path}`, { method, token, json: body });
  const text = await response.text();
  return { status: response.status, location: response.headers.get('location'), body: text && JSON.parse(text) };
}

async function make(tenant: string, body: object): Promise<string> {
  const { status, body: answer } = await send(tenant, 'POST', '', body);
  expect(status).toBe(201);
  return answer.id;
}

/** Reserves for a call on an own key at 4,000 pico-dollars a token; gives the reservation or the refusal's message. */
async function reserve(
  tenant: string,
  call: Partial<CallStart>,
  tokens = 100,
  quota = server.context.completions.quota,
) {
  const begun = callStart({ token: 'own', price: priceOfBudgets, ...call });
  const outcome = await reserveTokens(quota, {
    tenant,
    call: begun,
    input: 0,
    output: tokens,
    maxDuration: 60_000,
  }).catch((error: { type: string; message: string }) => error);
  return 'settle' in outcome ? outcome : outcome.message;
}

async function spend(tenant: string, call: Partial<CallStart>, tokens = 100): Promise<void> {
  const { quota } = server.context.completions;
  await quota.record(
    tenant,
    callStart({ token: 'own', price: priceOfBudgets, ...call }),
    endedCall({ inputTokens: 0, outputTokens: tokens }),
  );
}

test('a budget is made, listed, read with its use, replaced and deleted, and each change is recorded', async () => {
  const tenant = await newTenant(server);
  await spend(tenant, {}, 7);
  const body = { id: 'monthly', client: 'c', period: 'month', limitUsd: '12.50', alerts: [100, 80] };
  const created = await send(tenant, 'POST', '', body);
  expect(created).toMatchObject({ status: 201, location: `/usage/${tenant}/budgets/monthly`, body: { id: 'monthly' } });
  const read = await send(tenant, 'GET', '/monthly');
  const month = `${new Date().toISOString().slice(0, 7)}-01`;
  expect(read.body).toMatchObject({
    ...body,
    alerts: [80, 100],
    use: { since: month, spentUsd: '0.000000021', reservedUsd: '0' },
    metadata: { version: 1 },
  });
  expect((await send(tenant, 'PUT', '/monthly', { ...read.body, limitUsd: '3' })).status).toBe(204);
  expect((await send(tenant, 'PUT', '/monthly', read.body)).status).toBe(409);
  const lifetimeId = await make(tenant, { period: 'lifetime', limitTokens: 5 });
  expect((await send(tenant, 'GET', `/${lifetimeId}`)).body).toMatchObject({
    alerts: [50, 80, 100],
    use: { since: '1970-01-01', spentTokens: 7, reservedTokens: 0 },
  });
  const { body: list } = await send(tenant, 'GET', '?q=period:month');
  expect(list).toMatchObject([{ id: 'monthly', limitUsd: '3' }]);
  expect((await send(tenant, 'DELETE', '/monthly')).status).toBe(204);
  expect((await send(tenant, 'GET', '/monthly')).status).toBe(404);
  const entries = (await entriesOf(server.database, tenant)).filter(({ entity }) => entity === 'annals-budget');
  expect(entries.map(({ type, entityId }) => [type, entityId])).toEqual([
    ['create', 'monthly'],
    ['update', 'monthly'],
    ['create', lifetimeId],
    ['delete', 'monthly'],
  ]);
  const token = await server.token(tenant, { scope: 'usage.usage_read' });
  expect((await server.call(`/usage/${tenant}/budgets`, { token })).status).toBe(403);
});

test.each([
  ['both limits', { limitUsd: '1', limitTokens: 1 }],
  ['no limit', {}],
  ['two selectors', { limitUsd: '1', client: 'c', model: 'm' }],
  ['a client and each user', { limitUsd: '1', client: 'c', user: '*' }],
  ['an empty user', { limitUsd: '1', user: '' }],
  ['a user of 201 characters', { limitUsd: '1', user: 'u'.repeat(201) }],
  ['a limit that is a number', { limitUsd: 1 }],
  ['a negative limit', { limitTokens: -1 }],
  ['13 decimals', { limitUsd: '0.0000000000001' }],
  ['another period', { limitUsd: '1', period: 'week' }],
  ['a threshold above 100', { limitUsd: '1', alerts: [101] }],
  ['an unknown member', { limitUsd: '1', colour: 'red' }],
])('a budget with %s is refused', async (_, body) => {
  expect((await send('faulty', 'POST', '', { period: 'day', ...body })).status).toBe(400);
});

test('a tenant has at most 200 budgets', async () => {
  const tenant = await newTenant(server);
  await server.database.pool.query(
    `insert into budget (tenant, id, version, document, fields, by, name, period, limit_tokens)
       select $1, n, 1, '{}', '{}', 'all', '', 'day', 1 from generate_series(1, 199) as n`,
    [tenant],
  );
  await make(tenant, { id: 'last', period: 'day', limitTokens: 1 });
  expect((await send(tenant, 'POST', '', { period: 'day', limitTokens: 1 })).status).toBe(400);
  expect((await send(tenant, 'PUT', '/last', { period: 'day', limitTokens: 2 })).status).toBe(204);
});

test.each([
  ['of anything', undefined],
  ['of a user', 'u0'],
  ['of each user', '*'],
])(
  'random calls of three processes never use more than any of random budgets %s, which are made, changed and deleted at the same time',
  async (_of, user) => {
    const tenant = await newTenant(server);
    const { budgets } = server.context;
    const { pool } = server.database;
    await budgets.put(author(tenant), 'all', { period: 'lifetime', limitTokens: 1_000_000 });
    await makeRandomBudgets(budgets, tenant, { count: 12, random, user });
    const outcomes: string[] = [];
    const calls = Array.from({ length: 12 }, async (_, worker) => {
      for (let n = 0; n < 8; n += 1) {
        outcomes.push(await makeRandomCall(quotas[worker % 3] as Quota, tenant, random));
        if (n % 4 === 3 && worker === 0) {
          await budgets.put(
            author(tenant),
            `b${random.below(12)}`,
            randomBudget(random, { limit: { limitTokens: 1_000_000 } }),
          );
          await budgets.remove(author(tenant), `b${n % 3}`).catch(() => undefined);
          await pool.query(
            'update completion_reservation set expires_at = now() where tenant = $1 and hashtext(reservation::text) % 2 = 0',
            [tenant],
          );
        }
      }
    });
    await Promise.all(calls);
    await pool.query('update completion_reservation set expires_at = now() where tenant = $1', [tenant]);
    await quotas[0]?.state(tenant);
    expect(await overspent(pool, tenant)).toEqual([]);
    expect(await wrongSums(pool, tenant)).toEqual([]);
    expect(outcomes).toContain('answered');
  },
);

test('concurrent calls use a budget up, and one token more is refused with what is left', async () => {
  const tenant = await newTenant(server);
  await make(tenant, { id: 'tight', period: 'day', limitUsd: '0.000003' });
  const outcomes = await Promise.all(Array.from({ length: 40 }, (_, n) => reserve(tenant, {}, 100, quotas[n % 3])));
  const reserved = outcomes.filter((outcome) => typeof outcome === 'object');
  expect(reserved).toHaveLength(10);
  expect(outcomes.find((outcome) => typeof outcome === 'string')).toContain('reserved the rest of the budget tight');
  await Promise.all(reserved.map((reservation) => reservation.settle(endedCall({ inputTokens: 0, outputTokens: 99 }))));
  expect(await reserve(tenant, {}, 11)).toBe(
    'The call may need $0.000000033 of the budget tight, which has $0.00000003 left. It needs less with fewer output tokens.',
  );
  expect(await reserve(tenant, {}, 10)).toHaveProperty('settle');
});

test('a call waits until others have settled, and calls to which the budget does not apply do not wait behind it', async () => {
  const tenant = await newTenant(server);
  await make(tenant, { client: 'slow', period: 'day', limitTokens: 100 });
  const { quota } = server.context.completions;
  const first = await reserve(tenant, { clientId: 'slow', token: 'shared' });
  const waiting = reserve(tenant, { clientId: 'slow', token: 'shared' });
  expect(await reserve(tenant, { clientId: 'quick', token: 'shared' })).toHaveProperty('settle');
  expect(await quota.state(tenant)).toMatchObject({ reserved: { output: 200 } });
  if (typeof first === 'object') await first.settle(endedCall('none'));
  expect(await waiting).toHaveProperty('settle');
});

test('a period has spent what its calls cost by the moment they began, whatever the age of the budget, and midnight is in UTC', async () => {
  const tenant = await newTenant(server);
  const midnight = Date.UTC(2026, 8, 1);
  await spend(tenant, { at: midnight - 1 }, 60);
  await spend(tenant, { at: midnight }, 30);
  await spend(tenant, { at: midnight - day * 40 }, 5);
  await make(tenant, { id: 'day', client: 'c', period: 'day', limitTokens: 100 });
  expect(await reserve(tenant, { at: midnight - 1 }, 41)).toContain('40 tokens left');
  expect(await reserve(tenant, { at: midnight }, 71)).toContain('70 tokens left');
  const late = await reserve(tenant, { at: midnight - 1 }, 40);
  await send(tenant, 'PUT', '/day', { client: 'c', period: 'month', limitTokens: 100 });
  expect(await reserve(tenant, { at: midnight + day * 29 }, 71)).toContain('70 tokens left');
  if (typeof late === 'object') await late.settle(endedCall({ inputTokens: 0, outputTokens: 10 }));
  expect(await reserve(tenant, { at: midnight - 1 }, 31)).toContain('30 tokens left');
  await send(tenant, 'PUT', '/day', { client: 'c', period: 'lifetime', limitTokens: 200 });
  expect(await reserve(tenant, { at: midnight }, 96)).toContain('95 tokens left');
});

test('the calls of a key count towards the clients that made it, those of an agent and a model towards theirs', async () => {
  const tenant = await newTenant(server);
  await make(tenant, { id: 'c', client: 'c', period: 'day', limitTokens: 100 });
  await make(tenant, { id: 'b', client: 'b', period: 'day', limitTokens: 120 });
  await make(tenant, { id: 'a', agent: 'a', period: 'day', limitTokens: 150 });
  await make(tenant, { id: 'm', model: 'm', period: 'day', limitTokens: 180 });
  await spend(tenant, { clientId: 'key', makers: ['b', 'c'] }, 90);
  expect(await reserve(tenant, { clientId: 'key', makers: ['b', 'c'] }, 20)).toContain(
    'budget c, which has 10 tokens left',
  );
  expect(await reserve(tenant, { clientId: 'key', makers: ['b'] }, 31)).toContain('budget b, which has 30 tokens left');
  await spend(tenant, { clientId: 'd', agentId: 'a' }, 60);
  expect(await reserve(tenant, { clientId: 'd', agentId: 'a', model: 'n' }, 91)).toContain(
    'budget a, which has 90 tokens',
  );
  expect(await reserve(tenant, { clientId: 'd' }, 31)).toContain('budget m, which has 30 tokens left');
  // No budget applies, so nothing is reserved.
  await expect(reserve(tenant, { clientId: 'd', model: 'n' }, 1_000_000)).resolves.toBe('the call reserved nothing');
});

test.each(['jane', '*'])(
  'a budget of the user %s limits the keys of a user, and counts what others say of them',
  async (user) => {
    const tenant = await newTenant(server);
    await make(tenant, { id: 'b', user, period: 'day', limitTokens: 100 });
    const ofKey = (name: string) => ({ clientId: `key of ${name}`, user: name, isUserFixed: true });
    await spend(tenant, { user: 'jane' }, 30);
    await spend(tenant, ofKey('jane'), 20);
    // A user that only metadata names counts for no user, in sums and in reservations.
    await spend(tenant, { user: 'jane', isUserFixed: false }, 500);
    await make(tenant, { id: 'all', period: 'day', limitTokens: 100_000 });
    const ofMetadata = await reserve(tenant, { user: 'jane', isUserFixed: false }, 700);
    expect(ofMetadata).toHaveProperty('settle');
    const { use } = (await send(tenant, 'GET', '/b')).body;
    const ofJane = { spentTokens: 50, reservedTokens: 0 };
    const each = [
      { user: '', spentTokens: 500, reservedTokens: 700 },
      { user: 'jane', ...ofJane },
    ];
    expect(use).toMatchObject(user === '*' ? { users: each } : ofJane);
    await send(tenant, 'DELETE', '/all');
    expect(await reserve(tenant, ofKey('jane'), 51)).toContain('of the budget b, which has 50 tokens left');
    const last = await reserve(tenant, ofKey('jane'), 50);
    expect(await reserve(tenant, ofKey('jane'), 1, quotas[0])).toContain('have reserved the rest of the budget b');
    // Neither a text of a request nor a missing one is limited, nor is another user by a budget of one.
    expect(await reserve(tenant, { user: 'jane' }, 1_000)).toBe('the call reserved nothing');
    expect(await reserve(tenant, {}, 1_000)).toBe('the call reserved nothing');
    const other = await reserve(tenant, ofKey('john'), 101);
    if (user === '*') expect(other).toContain('which has 100 tokens left');
    else expect(other).toBe('the call reserved nothing');
    if (typeof last === 'object') await last.settle(endedCall({ inputTokens: 0, outputTokens: 49 }));
    expect(await reserve(tenant, ofKey('jane'), 1)).toHaveProperty('settle');
    // Beyond its limit by a program that names whom it likes.
    await spend(tenant, { user: 'jane' }, 500);
    expect(await reserve(tenant, ofKey('jane'), 1)).toContain('which has 0 tokens left');
  },
);

test('a budget of each user tells the users with the most use, as the costs by user do, and those of no user', async () => {
  const tenant = await newTenant(server);
  await make(tenant, { id: 'tokens', user: '*', period: 'day', limitTokens: 1_000 });
  await make(tenant, { id: 'usd', user: '*', period: 'lifetime', limitUsd: '1' });
  for (const id of ['tokens', 'usd']) {
    expect((await send(tenant, 'GET', `/${id}`)).body.use).toEqual({ since: expect.any(String), users: [] });
  }
  await spend(tenant, { user: 'john', clientId: 'k', isUserFixed: true }, 30);
  await spend(tenant, { user: 'jane' }, 40);
  await spend(tenant, {}, 35);
  await reserve(tenant, { user: 'john', clientId: 'k', isUserFixed: true }, 20);
  const { use } = (await send(tenant, 'GET', '/tokens')).body;
  expect(use).toEqual({
    since: new Date().toISOString().slice(0, 10),
    users: [
      { user: 'john', spentTokens: 30, reservedTokens: 20 },
      { user: 'jane', spentTokens: 40, reservedTokens: 0 },
      { user: '', spentTokens: 35, reservedTokens: 0 },
    ],
  });
  const { users } = (await send(tenant, 'GET', '/usd')).body.use;
  const token = await server.token(tenant, { scope: 'usage.usage_read' });
  const costs = await (await server.call(`/usage/${tenant}/costs?by=user`, { token })).json();
  const spentOf = (name: string | null) => users.find(({ user }: { user: string }) => user === (name ?? ''))?.spentUsd;
  expect(costs).toHaveLength(3);
  for (const { name, costUsd } of costs) expect([name, spentOf(name)]).toEqual([name, costUsd]);
  expect(await wrongSums(server.database.pool, tenant)).toEqual([]);

  for (let n = 0; n < 105; n += 1) await spend(tenant, { user: `u${n}` }, 50 + n);
  const most = (await send(tenant, 'GET', '/tokens')).body.use.users;
  expect(most).toHaveLength(100);
  expect([most[0].user, most[99].user]).toEqual(['u104', 'u5']);
});

test('users that requests name do not displace those of keys: a key on a full day counts in a row of its own', async () => {
  const tenant = await newTenant(server);
  await spend(tenant, { user: 'first' }, 1);
  await sumCalls(server.database.db, tenant);
  await server.database.pool.query(
    `insert into call_sum (tenant, by, day, name, calls, uncosted, input, output, cost)
       select tenant, 'user', day, 'flood ' || n, 1, 0, 0, 1, 0 from call_sum, generate_series(1, 999) as n
         where tenant = $1 and by = 'all'`,
    [tenant],
  );
  await make(tenant, { id: 'b', user: '*', period: 'day', limitTokens: 100 });
  const jane = { user: 'jane', clientId: 'k', isUserFixed: true };
  await spend(tenant, jane, 60);
  await spend(tenant, { user: 'a stranger' }, 500);
  await spend(tenant, { user: 'jane' }, 500);
  expect(await reserve(tenant, jane, 41)).toContain('which has 40 tokens left');
  const { rows } = await server.database.pool.query(
    `select by, name, output from call_sum where tenant = $1 and by like '%user' and name !~ 'flood|first' order by by`,
    [tenant],
  );
  expect(rows).toEqual([
    { by: 'key user', name: 'jane', output: 60 },
    { by: 'other user', name: '', output: 1_060 },
  ]);
});

test('the calls of a client that was made over HTTP, and of its keys, count towards its makers', async () => {
  const tenant = await newTenant(server);
  await setProviderToken(server, tenant, 'sk-own');
  const scopes = ['access.credential_manage', 'ai.completion_manage'];
  const maker = await server.createClient(tenant, { scope: scopes.join(' ') });
  const makeBy = async (token: string, kind: 'clients' | 'keys') => {
    const response = await server.call(`/access/${tenant}/${kind}`, {
      token,
      json: { scopes: kind === 'keys' ? scopes.slice(1) : scopes },
    });
    return (await response.json()) as { id: string; clientSecret: string; key: string };
  };
  const { id, clientSecret } = await makeBy(await server.tokenOf(maker), 'clients');
  const made = await server.tokenOf({ ...maker, clientId: id, clientSecret });
  const { key } = await makeBy(made, 'keys');
  await make(tenant, { id: 'maker', client: maker.clientId, period: 'day', limitTokens: 1 });
  await make(tenant, { id: 'made', client: id, period: 'day', limitTokens: 1 });
  const [message] = hello.messages;
  const call = async () => {
    const completed = await server.call(`/ai-service/${tenant}/completions`, { token: made, json: hello });
    const chatted = await fetch(`${server.baseUrl}/openai/${tenant}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'openai/gpt-small', messages: [{ ...message, role: 'user' }] }),
    });
    await Promise.all([completed.body?.cancel(), chatted.body?.cancel()]);
    return [completed.status, chatted.status];
  };
  expect(await call()).toEqual([403, 429]);
  await send(tenant, 'DELETE', '/made');
  expect(await call()).toEqual([403, 429]);
  await send(tenant, 'DELETE', '/maker');
  expect(await call()).toEqual([200, 200]);
});

test('a model without a sum of its own on a day counts with all that have none, rather too much than too little', async () => {
  const tenant = await newTenant(server);
  await spend(tenant, { model: 'known' }, 10);
  await sumCalls(server.database.db, tenant);
  await server.database.pool.query(
    `insert into call_sum (tenant, by, day, name, calls, uncosted, input, output, cost)
       select tenant, 'other model', day, '', 1, 0, 0, 70, 0 from call_sum where tenant = $1 and by = 'all'`,
    [tenant],
  );
  await make(tenant, { model: 'known', period: 'day', limitTokens: 100 });
  await make(tenant, { model: 'rare', period: 'day', limitTokens: 100 });
  expect(await reserve(tenant, { model: 'known' }, 90)).toHaveProperty('settle');
  expect(await reserve(tenant, { model: 'rare' }, 31)).toContain('30 tokens left');
});

test('a call reserves at the dearest price that may apply, that of its own day, and a call of a dead process is charged so', async () => {
  const tenant = await newTenant(server);
  await make(tenant, { id: 'b', period: 'lifetime', limitUsd: '0.001' });
  const tier = { above: -1, input: 1, cachedInput: 1, cacheWrites: 1_000_000, output: 1 };
  const dear = { ...tier, above: 50, output: 500_000_000 };
  const { quota } = server.context.completions;
  const want = (input: number, price: CallStart['price']) =>
    reserveTokens(quota, { tenant, call: callStart({ token: 'own', price }), input, output: 1, maxDuration: 60_000 });
  // How many tokens it writes into a cache is unknown beforehand.
  await expect(want(1_001, { tiers: [tier] })).rejects.toThrow(
    '$0.001001000001 of the budget b, which has $0.001 left',
  );
  await expect(want(51, { tiers: [tier, { ...dear, output: 1_000_000_000 }] })).rejects.toThrow('$0.001051');
  const small = await want(50, { tiers: [tier, dear] });
  await small.settle(endedCall('none'));
  // The price that begins today is that of a call which begins today, and not of one that began yesterday.
  const dead = await want(51, { from: '2026-11-24', tiers: [tier, dear] });
  await dead.send();
  await server.database.pool.query('update completion_reservation set expires_at = now() where tenant = $1', [tenant]);
  await expect(want(449, { tiers: [tier] })).rejects.toThrow('which has $0.000449 left');
  await dead.settle(endedCall('unknown'));
  expect((await send(tenant, 'GET', '/b')).body.use).toMatchObject({ spentUsd: '0.000551' });
  expect(await wrongSums(server.database.pool, tenant)).toEqual([]);
});

test('a call beyond a budget is 403 with the bound and the rest; on a model without a price it is 400; own keys count', async () => {
  const tenant = await newTenant(server);
  const id = await make(tenant, { period: 'day', limitUsd: '0.0001' });
  const beyond = await complete(server, tenant);
  expect(beyond).toMatchObject({
    status: 403,
    body: {
      type: 'quota_exceeded',
      details: [
        { field: 'budget', message: id },
        // 85 tokens of input at 2 dollars a million, and 4,096 of output at 8.
        { field: 'bound', message: '$0.032938' },
        { field: 'rest', message: '$0.0001' },
      ],
    },
  });
  await setProviderToken(server, tenant, 'sk-own');
  expect((await complete(server, tenant)).status).toBe(403);
  await send(tenant, 'PUT', `/${id}`, { period: 'day', limitUsd: '1' });
  vendor.behave({ kind: 'answer', usage: { input: 10, output: 20 } });
  expect((await complete(server, tenant)).status).toBe(200);
  expect((await send(tenant, 'GET', `/${id}`)).body.use).toMatchObject({ spentUsd: '0.00018', reservedUsd: '0' });

  const token = await server.token(tenant);
  const ask = async (body: object) => {
    const response = await server.call(`/openai/${tenant}/v1/chat/completions`, {
      token,
      json: { messages: [{ role: 'user', content: 'x' }], ...body },
    });
    return { status: response.status, retry: response.headers.get('x-should-retry'), body: await response.json() };
  };
  expect(await ask({ model: 'openai/unheard-of' })).toMatchObject({
    status: 400,
    body: { error: { code: 'price_unknown' } },
  });
  expect(await ask({ model: 'openai/gpt-small', max_tokens: 200_000 })).toMatchObject({
    status: 429,
    retry: 'false',
    body: { error: { type: 'insufficient_quota', code: 'insufficient_quota' } },
  });
  const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } };
  const messages = [{ role: 'user', content: [image] }];
  expect(await ask({ model: 'openai/gpt-small', messages })).toMatchObject({ status: 400 });
  // Without a cap of its own the call has that of the shared token: a budget has to know.
  expect(await ask({ model: 'openai/gpt-seeing', messages })).toMatchObject({ status: 200 });
  expect(vendor.requests.at(-1)?.body).toMatchObject({ max_completion_tokens: 4_096 });
  // Each of the answers has the cap.
  expect(await ask({ model: 'openai/gpt-small', max_tokens: 30_000, n: 2 })).toMatchObject({ status: 200 });
  expect(await ask({ model: 'openai/gpt-small', max_tokens: 30_000, n: 5 })).toMatchObject({ status: 429 });
  for (const dearer of [{ service_tier: 'priority' }, { modalities: ['text', 'audio'], audio: { voice: 'alloy' } }]) {
    const answer = await ask({ model: 'openai/gpt-small', ...dearer });
    expect(answer).toMatchObject({ status: 400, body: { error: { code: 'price_unknown' } } });
  }
});

test('a call on an own key takes one statement after it, and at most one before, and a budget applies to the next one', async () => {
  const tenant = await newTenant(server);
  await setProviderToken(server, tenant, 'sk-own');
  vendor.behave({ kind: 'answer', usage: { input: 10, output: 20 } });
  const token = await server.token(tenant);
  const paths = [`/ai-service/${tenant}/completions`, `/openai/${tenant}/v1/chat/completions`];
  const ask = async (path: string) => {
    const body = { model: 'openai/gpt-small', messages: [{ role: 'user', content: 'x' }] };
    const { model: _, ...completion } = body;
    return (await server.call(path, { token, json: path.startsWith('/openai/') ? body : completion })).status;
  };
  const { pool, vital } = server.context;
  const statements = recordStatements(...pool.pools, vital.pool);
  for (const path of paths) {
    statements.length = 0;
    expect(await ask(path)).toBe(200);
    // The service's own work on budgets continues beside it.
    const ofCall = statements.filter(
      ({ text, values }) => values.includes(tenant) && /configuration|budget|completion|call_/.test(text),
    );
    const [record, ...before] = ofCall.map(({ name }) => name).reverse();
    expect(record).toBe('call_record_add');
    expect([[], ['configuration_sealed']]).toContainEqual(before);
  }
  const id = await make(tenant, { period: 'day', limitTokens: 60 });
  for (const path of paths) expect(await ask(path)).toBe(path.startsWith('/openai/') ? 429 : 403);
  await send(tenant, 'DELETE', `/${id}`);
  for (const path of paths) expect(await ask(path)).toBe(200);
});

test('each threshold of a period sends one e-mail, also for the period before and after a crash', async () => {
  const tenant = await newTenant(server);
  const { budgetAlerts, configuration } = server.context;
  const address = { value: 'ops@example.com', json: '"ops@example.com"', size: { bytes: 17, values: 1, levels: 0 } };
  await configuration.create(author(tenant), [{ key: 'notificationEmail', ...address }]);
  await make(tenant, { id: 'b', name: 'Support', period: 'day', limitTokens: 100, alerts: [50, 80] });
  await make(tenant, { id: 'c', agent: 'other', period: 'day', limitTokens: 1 });
  const mails = async () => {
    const { rows } = await server.database.pool.query<{ subject: string }>(
      'select subject from mail where tenant = $1 order by subject',
      [tenant],
    );
    return rows.map(({ subject }) => subject);
  };
  await spend(tenant, {}, 49);
  await budgetAlerts.look(tenant);
  expect(await mails()).toEqual([]);
  await spend(tenant, {}, 1);
  await Promise.all([budgetAlerts.look(tenant), budgetAlerts.look(tenant)]);
  await spend(tenant, {}, 40);
  await budgetAlerts.look(tenant);
  await spend(tenant, {}, 10);
  await budgetAlerts.look(tenant);
  const subjects = ['Annals: the budget "Support" has reached 50 %', 'Annals: the budget "Support" has reached 80 %'];
  expect(await mails()).toEqual(subjects);
  const { rows } = await server.database.pool.query('select * from budget_due where tenant = $1', [tenant]);
  expect(rows).toEqual([]);
  // Yesterday's calls precede the budget and send no mail. Once the budget is backdated, they do.
  await spend(tenant, { at: Date.now() - day }, 60);
  await budgetAlerts.look(tenant);
  expect(await mails()).toEqual(subjects);
  await server.database.pool.query(
    `update budget set document = regexp_replace(document, '"createdAt":"....', '"createdAt":"2020') where tenant = $1`,
    [tenant],
  );
  await spend(tenant, { at: Date.now() - day }, 1);
  await budgetAlerts.look(tenant);
  expect(await mails()).toEqual(subjects.toSpliced(1, 0, subjects[0] ?? ''));
});

test('a budget of each user sends one e-mail for each threshold and user that keys fix, and no more than a period can have', async () => {
  const tenant = await newTenant(server);
  const { budgetAlerts, configuration } = server.context;
  const { pool } = server.database;
  const address = { value: 'ops@example.com', json: '"ops@example.com"', size: { bytes: 17, values: 1, levels: 0 } };
  await configuration.create(author(tenant), [{ key: 'notificationEmail', ...address }]);
  await make(tenant, { id: 'b', user: '*', period: 'day', limitTokens: 100, alerts: [50, 80] });
  const mails = async () => {
    const { rows } = await pool.query<{ of: string }>(
      `select substring(subject from '[0-9]+ %') || substring(content from ': *\n(.*) spent') as of
         from mail where tenant = $1 order by 1`,
      [tenant],
    );
    return rows.map(({ of }) => of);
  };
  const ofKey = (user: string) => ({ user, clientId: user, isUserFixed: true });
  await spend(tenant, { user: 'named' }, 90);
  await spend(tenant, {}, 90);
  await spend(tenant, ofKey('jane'), 85);
  await spend(tenant, ofKey('john'), 50);
  await spend(tenant, ofKey('jill'), 49);
  await Promise.all([budgetAlerts.look(tenant), budgetAlerts.look(tenant)]);
  const first = ['50 %the user jane', '50 %the user john', '80 %the user jane'];
  expect(await mails()).toEqual(first);
  await pool.query(
    `insert into budget_alert (tenant, budget, first, threshold, name)
       select tenant, budget, first, 1, 'u' || n from budget_alert, generate_series(1, 996) as n
         where tenant = $1 and threshold = 80`,
    [tenant],
  );
  await spend(tenant, ofKey('jill'), 31);
  await budgetAlerts.look(tenant);
  expect(await mails()).toHaveLength(4);
  const { rows } = await pool.query('select count(*)::integer as noted from budget_alert where tenant = $1', [tenant]);
  expect(rows).toEqual([{ noted: 1_000 }]);
});

test('a budget may have a name, which its changes show too; written without one, it has none', async () => {
  const tenant = await newTenant(server);
  const terms = { period: 'day', limitTokens: 100 };
  await make(tenant, { id: 'named', name: 'x'.repeat(200), ...terms });
  expect((await send(tenant, 'GET', '/named')).body).toMatchObject({ name: 'x'.repeat(200) });
  for (const name of ['', 'x'.repeat(201), 'a\r\nBcc: b@c.example']) {
    expect((await send(tenant, 'PUT', '/named', { name, ...terms })).status).toBe(400);
  }
  expect((await send(tenant, 'PUT', '/named', { name: 'Support', ...terms })).status).toBe(204);
  expect((await send(tenant, 'GET', '?q=name:Support')).body).toMatchObject([{ id: 'named' }]);
  expect((await send(tenant, 'PUT', '/named', terms)).status).toBe(204);
  expect((await send(tenant, 'GET', '/named')).body).not.toHaveProperty('name');
  const { rows } = await server.database.pool.query<{ name: string | null }>(
    'select name from change_entry where tenant = $1 order by sequence',
    [tenant],
  );
  expect(rows.map(({ name }) => name?.slice(0, 7))).toEqual(['xxxxxxx', 'Support', undefined]);
});
