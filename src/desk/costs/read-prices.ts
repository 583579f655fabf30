import { type PriceFile, readPriceFile } from './price-file.ts';
import { createPriceList, type FindPrice } from './price-list.ts';
import table from './prices.json' with { type: 'json' };

/** The built-in prices in US dollars, as of the release. */
export const builtInPrices = table as PriceFile;

/** The built-in prices, overridden per model by ANNALS_PRICES_FILE. Throws a ConfigError with its faults. */
export async function readPrices(file: string | undefined): Promise<FindPrice> {
  return file === undefined
    ? createPriceList(builtInPrices)
    : createPriceList(builtInPrices, await readPriceFile(file));
}
