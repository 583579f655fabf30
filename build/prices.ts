// Writes src/desk/costs/prices.json from the table of @pydantic/genai-prices (MIT): the models with exact ids. Models
// that it matches by a pattern are left out.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type ConditionalPrice,
  calcPrice,
  findProvider,
  type MatchLogic,
  type ModelPrice,
} from '@pydantic/genai-prices';
import type { Period, PriceFile, Rates } from '../src/desk/costs/price-file.ts';

const file = join(import.meta.dirname, '../src/desk/costs/prices.json');
/** Above what any of these vendors counts for an image: gpt-4o-mini counts 48,169 tokens for a large one. */
const imageTokens = 50_000;
const providers = [
  { provider: 'openai', ours: /^(?!ft:)/ },
  { provider: 'anthropic', ours: /^claude-/ },
  { provider: 'google', ours: /^gem(?:ini|ma)-/ },
] as const;

if (import.meta.main) await writeFile(file, `${JSON.stringify(pricesOfTable(), null, 1)}\n`);

/** Groups the models of a provider that have the same prices. */
export function pricesOfTable(): PriceFile {
  const alike = Map.groupBy(pricesByModel(), ({ provider, prices }) => JSON.stringify([provider, prices]));
  return [...alike.values()].flatMap(([first, ...others]) =>
    first === undefined ? [] : [{ ...first, models: [first, ...others].flatMap(({ models }) => models).toSorted() }],
  );
}

function pricesByModel(): PriceFile {
  return providers.flatMap(({ provider, ours }) => {
    const known = findProvider({ providerId: provider });
    if (known === undefined) throw new Error(`the table has no provider ${provider}`);
    return known.models.flatMap(({ id, match, prices }) => {
      const models = [...new Set([id, ...exactIds(match)])]
        .filter((model) => ours.test(model) && modelOf(provider, model) === id)
        .toSorted();
      const periods = Array.isArray(prices) ? prices : [{ prices }];
      if (models.length === 0 || !periods.every(({ prices: rates }) => isOfText(id, rates))) return [];
      return [{ provider, models, imageTokens, prices: periods.map(periodOf) }];
    });
  });
}

function exactIds(match: MatchLogic): string[] {
  if ('equals' in match) return [match.equals];
  return 'or' in match ? match.or.flatMap(exactIds) : [];
}

function modelOf(providerId: string, model: string): string | undefined {
  return calcPrice({ input_tokens: 1 }, model, { providerId })?.model.id;
}

/** Embeddings have no output, and no price of it. */
function isOfText(model: string, { input_mtok: input, output_mtok: output }: ModelPrice): boolean {
  return input !== undefined && (output !== undefined || /^text-embedding-/.test(model));
}

function periodOf({ prices, constraint }: ConditionalPrice): Period {
  if (constraint !== undefined && constraint.type !== 'start_date')
    throw new Error('a price depends on the time of day');
  const begins = Object.values(prices).flatMap((price) => (typeof price === 'object' ? price.tiers : []));
  const above = [...new Set(begins.map(({ start }) => start))].toSorted((one, other) => one - other);
  return {
    ...(constraint !== undefined && { from: constraint.start_date }),
    usdPerMillion: ratesOf(prices, 0),
    ...(above.length > 0 && {
      above: above.map((inputTokens) => ({ inputTokens, usdPerMillion: ratesOf(prices, inputTokens + 1) })),
    }),
  };
}

/** The rates of a call with that many input tokens. */
function ratesOf(prices: ModelPrice, inputTokens: number): Rates {
  const rate = (name: string) => {
    const price = prices[name];
    if (typeof price !== 'object') return price;
    return price.tiers.findLast(({ start }) => inputTokens > start)?.price ?? price.base;
  };
  const [cachedInput, cacheWrites] = [rate('cache_read_mtok'), rate('cache_write_mtok')];
  const hourCacheWrites = rate('cache_write_1h_mtok');
  return {
    input: decimal(rate('input_mtok') ?? 0),
    ...(cachedInput !== undefined && { cachedInput: decimal(cachedInput) }),
    ...(cacheWrites !== undefined && { cacheWrites: decimal(cacheWrites) }),
    ...(hourCacheWrites !== undefined && { hourCacheWrites: decimal(hourCacheWrites) }),
    output: decimal(rate('output_mtok') ?? 0),
  };
}

function decimal(price: number): string {
  const text = price.toFixed(6).replace(/\.?0+$/, '');
  if (Number(text) !== price) throw new Error(`${price} has more than six decimals`);
  return text;
}
