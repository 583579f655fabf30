import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { calcPrice } from '@pydantic/genai-prices';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { pricesOfTable } from '../../../build/prices.ts';
import { ConfigError } from '../../../src/core/config/config.ts';
import { builtInPrices, createPriceList, readPrices } from '../../../src/desk/costs/read-prices.ts';
import { type CallPrice, costOfCall } from '../../../src/providers/call-record.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const find = createPriceList(builtInPrices);
const now = Date.UTC(2026, 10, 24);
const folder = temporaryFolder();

/** Numbers of tokens, some beside the limits of tiers. */
const counts = () =>
  fc.oneof(fc.nat(5_000), fc.nat(1_500_000), fc.constantFrom(199_999, 200_000, 200_001, 272_000, 272_001));
const moments = () =>
  fc
    .date({ min: new Date(Date.UTC(2023, 0, 1)), max: new Date(Date.UTC(2027, 0, 1)), noInvalidDate: true })
    .map(Number);

test('the prices are those of the table that is installed', () => {
  expect(builtInPrices).toEqual(pricesOfTable());
});

interface Tokens {
  input: number;
  cached?: number;
  written?: number;
  hour?: number;
  output: number;
}

/** Pico-dollars, as the record of such a call has them; undefined if unknown. */
function costsOf(calls: readonly { price: CallPrice | undefined; tokens: Tokens }[]): (bigint | undefined)[] {
  return calls.map(({ price, tokens: { input, cached, written, hour, output } }) => {
    const writes = { cacheWriteTokens: written, hourCacheWriteTokens: hour };
    return costOfCall(price, { inputTokens: input, cachedTokens: cached, ...writes, outputTokens: output });
  });
}

test('each model costs what the table itself says, to the last pico-dollar', async () => {
  const models = builtInPrices.flatMap(({ provider, models: ids, prices }) =>
    ids.map((model) => ({ provider, model, since: Date.parse(prices[0]?.from ?? '1970-01-01') })),
  );
  const call = fc.record({
    model: fc.constantFrom(...models),
    uncached: counts(),
    cached: counts(),
    written: counts(),
    hour: counts(),
    output: counts(),
    // Before its first price the table tells what its first price was.
    at: moments(),
  });
  const calls = fc.sample(call, 1_000).filter(({ model, at }) => at >= model.since);
  const theirs = calls.map(({ model, uncached, cached, written, hour, output, at }) => {
    const usage = {
      input_tokens: uncached + cached + written + hour,
      cache_read_tokens: cached,
      cache_write_tokens: written + hour,
      cache_write_1h_tokens: hour,
      output_tokens: output,
    };
    const price = calcPrice(usage, model.model, { providerId: model.provider, timestamp: new Date(at) });
    return BigInt(Math.round((price?.total_price ?? Number.NaN) * 1e12));
  });
  const ours = costsOf(
    calls.map(({ model, uncached, cached, written, hour, output, at }) => ({
      price: find(model, at),
      tokens: { input: uncached + cached + written + hour, cached, written: written + hour, hour, output },
    })),
  );
  expect(calls.length).toBeGreaterThan(500);
  expect(ours).toEqual(theirs);
});

test('a price applies from its first day on, and a call above a tier costs its price for all tokens', async () => {
  const prices = await readPrices(
    await write([
      {
        provider: 'openai',
        models: ['ours'],
        prices: [
          { from: '2026-01-01', usdPerMillion: { input: '1', output: '2' } },
          {
            from: '2026-02-01',
            usdPerMillion: { input: '0.000001', cachedInput: '0', cacheWrites: '3', hourCacheWrites: '5', output: '2' },
            above: [{ inputTokens: 100, usdPerMillion: { input: '10', output: '20.5' } }],
          },
        ],
      },
    ]),
  );
  const at = (time: string) => prices({ provider: 'openai', model: 'ours' }, Date.parse(time));
  expect(at('2025-12-31T23:59:59.999Z')).toBeUndefined();
  const january = at('2026-01-31T23:59:59.999Z');
  const price = at('2026-02-01T00:00:00Z');
  expect([january?.from, price?.from]).toEqual(['2026-01-01', '2026-02-01']);
  const costs = costsOf([
    { price: january, tokens: { input: 1, output: 1 } },
    { price, tokens: { input: 100, output: 0 } },
    { price, tokens: { input: 100, cached: 60, written: 30, output: 1 } },
    { price, tokens: { input: 100, cached: 60, written: 30, hour: 20, output: 1 } },
    { price: january, tokens: { input: 100, written: 30, hour: 20, output: 0 } },
    { price, tokens: { input: 101, cached: 60, output: 1 } },
    { price, tokens: { input: 0, output: 0 } },
    { price: undefined, tokens: { input: 1, output: 1 } },
  ]);
  expect(costs).toEqual([3_000_000n, 100n, 92_000_010n, 132_000_010n, 100_000_000n, 1_030_500_000n, 0n, undefined]);
});

test('a file adds models and replaces those of the table; a self-hosted model is free unless it says otherwise', async () => {
  const seven = { usdPerMillion: { input: '7', output: '7' } };
  const prices = await readPrices(
    await write([
      { provider: 'openai', models: ['gpt-4o', 'new'], prices: [seven] },
      { provider: 'self_hosted', models: ['llama'], prices: [{ from: '2026-01-01', ...seven }] },
    ]),
  );
  const input = (provider: string, model: string, time = now) => prices({ provider, model }, time)?.tiers[0]?.input;
  expect(input('openai', 'gpt-4o')).toBe(7_000_000);
  expect(input('openai', 'new')).toBe(7_000_000);
  expect(input('openai', 'gpt-4o-mini')).toBe(150_000);
  expect(input('anthropic', 'new')).toBeUndefined();
  expect(input('openai', 'GPT-4o')).toBeUndefined();
  expect(input('self_hosted', 'llama')).toBe(7_000_000);
  expect(input('self_hosted', 'llama', Date.UTC(2025, 11, 31))).toBeUndefined();
  expect(input('self_hosted', 'other')).toBe(0);
});

const rates = { input: '1', output: '1' };
const priced = (prices: unknown, models = ['m']) => [{ provider: 'openai', models, prices }];

test.each([
  ['an unknown provider', [{ provider: 'other', models: ['m'], prices: [{ usdPerMillion: rates }] }]],
  ['a model twice', priced([{ usdPerMillion: rates }], ['m', 'm'])],
  ['no model', priced([{ usdPerMillion: rates }], [])],
  ['no price', priced([])],
  ['a price that is a number', priced([{ usdPerMillion: { input: 1, output: '1' } }])],
  ['seven decimals', priced([{ usdPerMillion: { input: '1.0000001', output: '1' } }])],
  ['a price below zero', priced([{ usdPerMillion: { input: '-1', output: '1' } }])],
  ['a day that there is not', priced([{ from: '2026-02-30', usdPerMillion: rates }])],
  [
    'an order that is not of time',
    priced(['2026-02-01', '2026-02-01'].map((from) => ({ from, usdPerMillion: rates }))),
  ],
  [
    'tiers that do not rise',
    priced([{ usdPerMillion: rates, above: [2, 1].map((inputTokens) => ({ inputTokens, usdPerMillion: rates })) }]),
  ],
  ['a member that is none', priced([{ usdPerMillion: rates, per: 'token' }])],
])('a file with %s is refused', async (_what, content) => {
  await expect(write(content).then(readPrices)).rejects.toThrow(ConfigError);
});

async function write(content: unknown): Promise<string> {
  const file = join(folder, `${randomUUID()}.json`);
  await writeFile(file, JSON.stringify(content));
  return file;
}
