import { type PriceFile, readPriceFile } from './price-file.ts';
import { createPriceList, type FindPrice } from './price-list.ts';
import table from './prices.json' with { type: 'json' };

/** The prices that come with Annals, in US dollars, of the day of its release. */
export const builtInPrices = table as PriceFile;

/** The prices that come with Annals, and those of ANNALS_PRICES_FILE, which replaces them model by model. Throws a ConfigError that names its faults. */
export async function readPrices(file: string | undefined): Promise<FindPrice> {
  return file === undefined
    ? createPriceList(builtInPrices)
    : createPriceList(builtInPrices, await readPriceFile(file));
}
