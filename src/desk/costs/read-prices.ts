import type { CallPrice } from '../../providers/call-record.ts';
import { type Period, type PriceFile, type Rates, readPriceFile } from './price-file.ts';
import table from './prices.json' with { type: 'json' };

/** Finds the price of a model by its exact id, at a time in milliseconds since 1970. Undefined: no price. */
type FindPrice = (model: { readonly provider: string; readonly model: string }, at: number) => CallPrice | undefined;

const free = { input: 0, cachedInput: 0, cacheWrites: 0, output: 0 };

/**
 * The prices of files, a later one replacing the models of earlier ones. A self-hosted model without a price is free.
 */
export function createPriceList(...files: readonly PriceFile[]): FindPrice {
  const periods = new Map<string, readonly { begin: number; price: CallPrice }[]>();
  for (const { provider, models, imageTokens, prices } of files.flat()) {
    const images = imageTokens === undefined ? {} : { imageTokens };
    const read = prices.map((period) => ({ begin: beginOf(period), price: { ...priceOf(period), ...images } }));
    for (const model of models) periods.set(nameOf(provider, model), read);
  }
  return ({ provider, model }, at) => {
    const known = periods.get(nameOf(provider, model));
    if (known === undefined) return provider === 'self_hosted' ? { tiers: [{ above: -1, ...free }] } : undefined;
    return known.findLast(({ begin }) => begin <= at)?.price;
  };
}

function nameOf(provider: string, model: string): string {
  return `${provider} ${model}`;
}

function beginOf({ from }: Period): number {
  return from === undefined ? Number.NEGATIVE_INFINITY : Date.parse(`${from}T00:00:00Z`);
}

function priceOf({ from, usdPerMillion, above = [] }: Period): CallPrice {
  const tiers = [
    { above: -1, ...ratesOf(usdPerMillion) },
    ...above.map((tier) => ({ above: tier.inputTokens, ...ratesOf(tier.usdPerMillion) })),
  ];
  return from === undefined ? { tiers } : { from, tiers };
}

function ratesOf({ input, cachedInput = input, cacheWrites = input, hourCacheWrites, output }: Rates) {
  return {
    input: picoOf(input),
    cachedInput: picoOf(cachedInput),
    cacheWrites: picoOf(cacheWrites),
    ...(hourCacheWrites !== undefined && { hourCacheWrites: picoOf(hourCacheWrites) }),
    output: picoOf(output),
  };
}

/** A US dollar per million tokens is 1,000,000 pico-dollars per token: `picoOf('2.5')` is 2500000. */
function picoOf(dollars: string): number {
  const [whole = '', fraction = ''] = dollars.split('.');
  return Number(whole + fraction.padEnd(6, '0'));
}

/** The built-in prices in US dollars, as of the release. */
export const builtInPrices = table as PriceFile;

/** The built-in prices, overridden per model by ANNALS_PRICES_FILE. Throws a ConfigError with its faults. */
export async function readPrices(file: string | undefined): Promise<FindPrice> {
  return file === undefined
    ? createPriceList(builtInPrices)
    : createPriceList(builtInPrices, await readPriceFile(file));
}
