import { beforeEach, describe, expect, test } from 'vitest';
import { perCallOfOthers } from '../../../src/desk/completions/input-bound.ts';
import { perCall } from '../../../src/desk/formats/passed-request.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { Random } from '../../support/oracle/random.ts';
import { overspent } from '../../support/server/budgets.ts';
import { wrongSums } from '../../support/server/calls.ts';
import { newTenant, setProviderToken } from '../../support/server/completions.ts';
import { eventually } from '../../support/server/patience.ts';
import { startTestServer, type TestServer } from '../../support/server/server.ts';
import { chatFormat, messagesFormat, responsesFormat } from '../../support/vendor/vendor-formats.ts';
import { type Behaviour, startVendor, vendorSecret } from '../../support/vendor/vendor-server.ts';

const random = new Random();
const vendor = closeAfterAll(await startVendor());
const environment = { OPENAI_BASE_URL: vendor.baseUrl, ANTHROPIC_BASE_URL: vendor.baseUrl };
const server = closeAfterAll(await startTestServer({ environment }));
/** The same, with a shorter time-out of vendors and a shorter wait for what others have reserved. */
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
  vendor.abandoned.length = 0;
});

const cap = 100;
const messages = [{ role: 'user', content: 'Hello' }];

/** The operations whose requests are passed through, with what they need and what their calls reserve around a text. */
const formats = {
  'chat/completions': {
    path: (tenant: string) => `/openai/${tenant}/v1/chat/completions`,
    body: { model: 'openai/m', max_completion_tokens: cap, messages },
    item: 'providerApiToken',
    format: chatFormat,
    around: perCall,
  },
  responses: {
    path: (tenant: string) => `/openai/${tenant}/v1/responses`,
    body: { model: 'openai/m', max_output_tokens: cap, input: 'Hello' },
    item: 'providerApiToken',
    format: responsesFormat,
    around: perCall,
  },
  messages: {
    path: (tenant: string) => `/anthropic/${tenant}/v1/messages`,
    body: { model: 'm', max_tokens: cap, messages },
    item: 'anthropicApiToken',
    format: messagesFormat,
    around: perCall + perCallOfOthers,
  },
};
type Name = keyof typeof formats;
const names = Object.keys(formats) as Name[];

/** A tenant with own keys and a budget for all of its calls. */
async function limitedTenant(limitTokens: number): Promise<{ tenant: string; token: string }> {
  const tenant = await newTenant(server);
  for (const item of ['providerApiToken', 'anthropicApiToken']) await setProviderToken(server, tenant, 'sk-own', item);
  const token = await server.token(tenant);
  const json = { id: 'b', period: 'lifetime', limitTokens };
  expect((await server.call(`/usage/${tenant}/budgets`, { token, json })).status).toBe(201);
  return { tenant, token };
}

async function spent({ tenant, token }: { tenant: string; token: string }) {
  const read = await server.call(`/usage/${tenant}/budgets/b`, { token });
  const { use } = (await read.json()) as { use: { spentTokens: number; reservedTokens: number } };
  return use.reservedTokens === 0 ? use.spentTokens : 'reserved';
}

async function ask(
  name: Name,
  { tenant, token }: { tenant: string; token: string },
  { stream = false, on = server, signal }: { stream?: boolean; on?: TestServer; signal?: AbortSignal } = {},
) {
  const { path, body } = formats[name];
  const json = stream ? { ...body, stream: true } : body;
  const response = await on.call(path(tenant), { token, json, ...(signal && { signal }) });
  const text = await response.text().catch(() => '');
  return { status: response.status, headers: response.headers, text };
}

/** What a call reserves: the bytes that go out, what is added around them, and the cap. */
function reserved(name: Name): number {
  return (vendor.requests.at(-1)?.bodyText.length ?? 0) + formats[name].around + cap;
}

describe.each(names)('%s with an own key under a budget', (name) => {
  test.each<[string, Behaviour, number, 'nothing' | 'all']>([
    ['404', { kind: 'status', status: 404 }, 400, 'nothing'],
    ['400', { kind: 'status', status: 400 }, 400, 'nothing'],
    ['429', { kind: 'status', status: 429 }, 429, 'nothing'],
    ['500', { kind: 'status', status: 500 }, 502, 'nothing'],
    ['503', { kind: 'status', status: 503 }, 502, 'nothing'],
    ['502, where a proxy may have lost the answer', { kind: 'status', status: 502 }, 502, 'all'],
    ['an answer cut in the middle', { kind: 'cut' }, 502, 'all'],
    ['no JSON', { kind: 'garbage' }, 502, 'all'],
    ['silence', { kind: 'hang' }, 504, 'all'],
  ])('%s: the status and the charge', async (_what, behaviour, status, charge) => {
    const of = await limitedTenant(100_000);
    vendor.behave(behaviour);
    const answer = await ask(name, of, { on: behaviour.kind === 'hang' ? hasty : server });
    expect(answer.status).toBe(status);
    expect(answer.headers.get('x-should-retry')).toBe(charge === 'all' ? 'false' : null);
    expect(await spent(of)).toBe(charge === 'all' ? reserved(name) : 0);
    expect(server.logLines.join()).not.toContain(vendorSecret);
  });

  test.each([false, true])(
    'figures settle it, none charge it in full, and more than the cap is charged (stream: %s)',
    async (stream) => {
      const of = await limitedTenant(100_000);
      const { format } = formats[name];
      const answer = (usage: { input: number; output: number } | undefined) => {
        const events = format.events({ text: 'one two', usage: usage ?? { input: 0, output: 0 } });
        const isWithout = (event: string) => usage === undefined && event.includes('usage');
        // Events that also end the stream stay, without their figures.
        const told = events.map((event) => (isWithout(event) ? event.replaceAll('usage', 'unused') : event));
        vendor.behave(stream ? { kind: 'events', events: told } : { kind: 'answer', usage });
      };
      answer({ input: 7, output: 3 });
      expect((await ask(name, of, { stream })).status).toBe(200);
      expect(await spent(of)).toBe(10);
      answer(undefined);
      expect((await ask(name, of, { stream })).status).toBe(200);
      expect(await spent(of)).toBe(10 + reserved(name));
      const before = 10 + reserved(name);
      answer({ input: 5_000, output: 7_000 });
      expect((await ask(name, of, { stream })).status).toBe(200);
      expect(await spent(of)).toBe(before + 12_000);
      const lines = server.logLines.filter((line) => line.includes('more than its cap') && line.includes(of.tenant));
      expect(lines).toHaveLength(1);
    },
  );

  test.each([false, true])('a client that leaves ends the call, and all is charged (stream: %s)', async (stream) => {
    const of = await limitedTenant(100_000);
    vendor.behave({ kind: 'stall' });
    const gone = new AbortController();
    const asked = ask(name, of, { stream, signal: gone.signal }).catch(() => 'gone');
    await eventually(() => vendor.requests.length).toBe(1);
    gone.abort();
    await asked;
    await eventually(() => vendor.abandoned.length).toBe(1);
    await eventually(() => spent(of)).toBe(reserved(name));
  });

  test('what others have reserved is waited for, then 429 with Retry-After; what never fits is 429 at once', async () => {
    const of = await limitedTenant(100_000);
    await ask(name, of);
    const one = reserved(name);
    const tight = await limitedTenant(one);
    const { promise: after, resolve: proceed } = Promise.withResolvers<void>();
    vendor.behave({ kind: 'answer', after, usage: { input: 1, output: 1 } });
    vendor.requests.length = 0;
    const first = ask(name, tight);
    await eventually(() => vendor.requests.length).toBe(1);
    const waited = await ask(name, tight, { on: hasty });
    expect([waited.status, waited.headers.get('retry-after')]).toEqual([429, '5']);
    proceed();
    expect((await first).status).toBe(200);
    const over = await ask(name, tight);
    expect([over.status, over.headers.get('x-should-retry')]).toEqual([429, 'false']);
    expect(over.text).toContain(`may need ${one} tokens of the budget b, which has ${one - 2} tokens left`);
    expect(vendor.requests).toHaveLength(1);
  });
});

test('a stream of messages that ends before its last event is cut, and charged by its last figures, if it had them', async () => {
  const events = messagesFormat.events({ text: 'one two', usage: { input: 7, output: 3 } });
  const place = events.findIndex((event) => event.includes('message_delta'));
  expect(place).toBe(events.length - 2);
  for (const last of ['end', 'cut'] as const) {
    for (let length = 1; length < events.length; length += 1) {
      const of = await limitedTenant(100_000);
      vendor.behave({ kind: 'events', events: events.slice(0, length), last });
      const json = { ...formats.messages.body, stream: true };
      const response = await server.call(formats.messages.path(of.tenant), { token: of.token, json });
      await expect(response.text()).rejects.toThrow();
      await eventually(() => spent(of)).toBe(length > place ? 10 : reserved('messages'));
    }
  }
});

test('concurrent calls on all paths, which answer, break, are cut or left at random, never pass the budget and are charged once', async () => {
  const of = await limitedTenant(20_000);
  const counted = { input: 0, output: 0 };
  vendor.behave(({ bodyText, streaming, format, body }) => {
    const usage = { input: 1 + random.below(bodyText.length), output: 1 + random.below(cap) };
    const kind = random.below(6);
    if (kind === 0) return { kind: 'status', status: 429 };
    counted.input += usage.input;
    counted.output += usage.output;
    if (kind === 1) return { kind: 'cut', usage };
    if (kind === 2) return { kind: 'garbage' };
    if (!streaming) return { kind: 'answer', usage, delay: random.below(20) };
    const { events } = format === 'anthropic' ? messagesFormat : 'input' in body ? responsesFormat : chatFormat;
    return { kind: 'events', events: events({ text: 'one two three', usage }), every: random.below(5) };
  });
  const outcomes: string[] = [];
  const worker = async () => {
    for (let n = 0; n < 12; n += 1) {
      const gone = new AbortController();
      if (random.below(4) === 0) setTimeout(() => gone.abort(), random.below(30));
      const options = { stream: random.below(2) === 0, on: random.pick([server, hasty]), signal: gone.signal };
      const { status } = await ask(random.pick(names), of, options).catch(() => ({ status: 'left' }));
      outcomes.push(String(status));
    }
  };
  await Promise.all(Array.from({ length: 10 }, worker));
  await eventually(() => spent(of)).not.toBe('reserved');
  const total = Number(await spent(of));
  expect(total).toBeLessThanOrEqual(20_000);
  // Nothing that the vendor has counted is missing.
  expect(total).toBeGreaterThanOrEqual(counted.input + counted.output);
  const { pool } = server.database;
  expect(await overspent(pool, of.tenant)).toEqual([]);
  expect(await wrongSums(pool, of.tenant)).toEqual([]);
  expect(outcomes).toHaveLength(120);
});
