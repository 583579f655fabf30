import { request as httpRequest } from 'node:http';
import { beforeEach, expect, test } from 'vitest';
import { quotaLimits } from '../../../src/desk/completions/quota.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { callStart, endedCall, reserveTokens } from '../../support/server/calls.ts';
import {
  complete,
  hello,
  modelOperations,
  newTenant,
  postCompletion,
  setProviderToken,
  usageOf,
} from '../../support/server/completions.ts';
import { comesTrueWithin, eventually } from '../../support/server/patience.ts';
import { startTestServer } from '../../support/server/server.ts';
import { startVendor, vendorSecret } from '../../support/vendor/vendor-server.ts';

const vendor = closeAfterAll(await startVendor());
const environment = {
  OPENAI_BASE_URL: `${vendor.baseUrl}/v1`,
  ANNALS_COMPLETION_MAX_TOKENS: '100',
  ANNALS_SHARED_PROVIDER_TOKEN: 'sk-shared-token-of-the-service',
};
const server = closeAfterAll(await startTestServer({ environment }));
/** The same, with shorter time-outs for vendors and for reservations of others. */
const hasty = closeAfterAll(
  await startTestServer({
    environment,
    database: server.database,
    completionTimes: { provider: { silence: 500, total: 600_000 }, quotaWait: 500 },
  }),
);

beforeEach(() => {
  vendor.behave({ kind: 'answer' });
  vendor.requests.length = 0;
});

const nothing = { inputTokens: 0, outputTokens: 0 };
// The bound of the one message below, and the cap of this service.
const whole = { inputTokens: 5 + 16 + 64, outputTokens: 100 };

test.each([
  ['404 model', { kind: 'status', status: 404 }, 400, 'validation_violation', nothing],
  ['400', { kind: 'status', status: 400 }, 400, 'validation_violation', nothing],
  ['429', { kind: 'status', status: 429 }, 429, 'rate_limit_exceeded', nothing],
  ['500', { kind: 'status', status: 500 }, 502, 'provider_error', nothing],
  ['503', { kind: 'status', status: 503 }, 502, 'provider_error', nothing],
  ['cut in the middle', { kind: 'cut' }, 502, 'provider_error', whole],
  ['not JSON', { kind: 'garbage' }, 502, 'provider_error', whole],
  ['slower than the limit', { kind: 'hang' }, 504, 'provider_timeout', whole],
] as const)('%s: the error that the client gets, and the charge', async (_what, behaviour, status, type, used) => {
  const tenant = await newTenant(server);
  vendor.behave(behaviour);
  const answer = await complete(behaviour.kind === 'hang' ? hasty : server, tenant);
  expect(answer).toMatchObject({ status, body: { status, type } });
  expect(JSON.stringify(answer)).not.toContain(vendorSecret);
  expect(await usageOf(server, tenant)).toMatchObject({ used, reserved: nothing });
});

const figures = { prompt_tokens: 40, completion_tokens: 7 };
const counted = { inputTokens: 40, outputTokens: 7 };
const noText = { index: 0, message: { role: 'assistant', content: '' }, finish_reason: 'stop' };

test.each([
  ['no choices', { id: 'x', object: 'chat.completion', choices: [], usage: figures }],
  ['no member for choices', { id: 'x', usage: figures }],
  ['an empty text', { id: 'x', object: 'chat.completion', choices: [noText], usage: figures }],
  ['blanks for a text', { choices: [{ ...noText, message: { role: 'assistant', content: ' \n' } }], usage: figures }],
])('a 200 with %s is 502, and settles to the usage that it has', async (_what, body) => {
  const tenant = await newTenant(server);
  vendor.behave({ kind: 'status', status: 200, body });
  expect(await complete(server, tenant)).toMatchObject({ status: 502, body: { type: 'provider_error' } });
  expect(await usageOf(server, tenant)).toMatchObject({ used: counted, reserved: nothing });
});

test('usage above the cap is settled as reported, and logged', async () => {
  const tenant = await newTenant(server);
  vendor.behave({ kind: 'answer', usage: { input: 5_000, output: 7_000 } });
  expect((await complete(server, tenant)).status).toBe(200);
  expect(await usageOf(server, tenant)).toMatchObject({ used: { inputTokens: 5_000, outputTokens: 7_000 } });
  expect(server.logLines.filter((line) => line.includes('more than its cap') && line.includes(tenant))).toHaveLength(1);
});

test('a client that goes away aborts the call within 200 ms, and the whole reservation is charged', async () => {
  const tenant = await newTenant(server);
  vendor.behave({ kind: 'hang' });
  const { leave } = await startRequest(tenant);
  await eventually(() => vendor.requests.length).toBe(1);
  const before = vendor.abandoned.length;
  leave();
  expect(await comesTrueWithin(200, () => vendor.abandoned.length > before)).toBe(true);
  expect(vendor.abandoned).toHaveLength(before + 1);
  await eventually(() => usageOf(server, tenant)).toMatchObject({ used: whole, reserved: nothing });
});

/** Makes a call by one of the operations with the shared token. */
async function callBy(operation: (typeof modelOperations)[number], tenant: string): Promise<number> {
  const [path, json] = operation(tenant, 'Hello', 'gpt-5.4-mini');
  const response = await server.call(path, { token: await server.token(tenant), json });
  await response.text();
  return response.status;
}

test.each(modelOperations.slice(1))(
  'near the end the output cap of a passed request shrinks too',
  async (operation) => {
    const tenant = await newTenant(server);
    await use(tenant, { input: 0, output: quotaLimits.output - 40 });
    vendor.behave(({ cap = 0 }) => ({ kind: 'answer', usage: { input: 1, output: cap - 20 } }));
    expect(await callBy(operation, tenant)).toBe(200);
    expect(await callBy(operation, tenant)).toBe(200);
    expect(vendor.requests.map(({ cap }) => cap)).toEqual([40, 20]);
    await use(tenant, { input: 0, output: 5 });
    expect(await callBy(operation, tenant)).toBe(429);
  },
);

test('near the end the output cap shrinks to what is left, and at the end the answer is 403', async () => {
  const tenant = await newTenant(server);
  await use(tenant, { input: 0, output: quotaLimits.output - 40 });
  vendor.behave(({ cap = 0 }) => ({ kind: 'answer', usage: { input: 1, output: cap - 20 } }));
  expect((await complete(server, tenant)).status).toBe(200);
  expect(vendor.requests.map(({ cap }) => cap)).toEqual([40]);
  expect((await complete(server, tenant)).status).toBe(200);
  expect(vendor.requests.map(({ cap }) => cap)).toEqual([40, 20]);
  await use(tenant, { input: 0, output: 5 });
  expect(await complete(server, tenant)).toEqual({
    status: 403,
    body: {
      status: 403,
      type: 'quota_exceeded',
      message: 'The quota of the shared provider token is used up. Set providerApiToken to use your own token.',
    },
  });
});

test('input that does not fit any more is 403 while shorter input still goes', async () => {
  const tenant = await newTenant(server);
  await use(tenant, { input: quotaLimits.input - 200, output: 0 });
  const long = { messages: [{ role: 'USER', content: 'x'.repeat(121) }] };
  expect(await complete(server, tenant, long)).toMatchObject({ status: 403, body: { type: 'quota_exceeded' } });
  expect((await complete(server, tenant)).status).toBe(200);
});

test('a tenant whose quota is used up completes at once with a token of its own, and is back on 403 without it', async () => {
  const tenant = await newTenant(server);
  await use(tenant, quotaLimits);
  expect((await complete(server, tenant)).status).toBe(403);
  await setProviderToken(server, tenant, 'sk-own-token-of-the-tenant');
  expect((await complete(server, tenant)).status).toBe(200);
  await server.context.configuration.remove({ tenant, actor: 'test' }, 'providerApiToken');
  expect((await complete(server, tenant)).status).toBe(403);
});

test('a call that would fit once another has settled waits its turn', async () => {
  const tenant = await newTenant(server);
  await use(tenant, { input: 0, output: quotaLimits.output - 50 });
  vendor.behave({ kind: 'answer', delay: 150, usage: { input: 1, output: 1 } });
  const statuses = await Promise.all(modelOperations.map((operation) => callBy(operation, tenant)));
  expect(statuses).toEqual([200, 200, 200]);
  expect(vendor.requests.map(({ cap }) => cap)).toEqual([50, 49, 48]);
});

test('a wait beyond the limit is 503 with Retry-After', async () => {
  const tenant = await newTenant(server);
  await use(tenant, { input: 0, output: quotaLimits.output - 50 });
  const reservation = await reserveTokens(server.context.completions.quota, {
    tenant,
    call: callStart(),
    input: 1,
    output: 50,
    maxDuration: 60_000,
  });
  const response = await postCompletion(hasty, tenant);
  expect(response.status).toBe(503);
  expect(response.headers.get('retry-after')).toBe('5');
  await reservation.settle(endedCall('none'));
  expect((await complete(server, tenant)).status).toBe(200);
});

test('a settlement that the database refuses is retried later, and the answer does not wait for it', async () => {
  const tenant = await newTenant(server);
  const reservation = await reserveTokens(server.context.completions.quota, {
    tenant,
    call: callStart(),
    input: 10,
    output: 10,
    maxDuration: 60_000,
  });
  const { pool } = server.database;
  await pool.query('alter function completion_quota_apply rename to completion_quota_apply_away');
  await reservation.settle(endedCall({ inputTokens: 3, outputTokens: 4 }));
  await pool.query('alter function completion_quota_apply_away rename to completion_quota_apply');
  await eventually(() => usageOf(server, tenant)).toMatchObject({
    used: { inputTokens: 3, outputTokens: 4 },
    reserved: nothing,
  });
});

/** Records usage as if of earlier calls. */
async function use(tenant: string, { input, output }: { input: number; output: number }): Promise<void> {
  await server.database.pool.query(
    `insert into completion_quota as q (tenant, input_used, output_used) values ($1, $2, $3)
       on conflict (tenant) do update set input_used = q.input_used + $2, output_used = q.output_used + $3`,
    [tenant, input, output],
  );
}

/** A request whose client can go away. */
async function startRequest(tenant: string): Promise<{ leave: () => void }> {
  const token = await server.token(tenant);
  const body = JSON.stringify(hello);
  const request = httpRequest(`${server.baseUrl}/ai-service/${tenant}/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'content-length': body.length },
  });
  request.on('error', () => {});
  request.end(body);
  return { leave: () => request.destroy() };
}
