import { type Static, Type } from 'typebox';
import { duplicates, readCheckedFile } from '../checked-file.ts';

const closed = { additionalProperties: false } as const;

/** US dollars per 1,000,000 tokens, with at most six decimals, so that a token costs an integer of pico-dollars. */
const Dollars = Type.String({ pattern: '^(?:0|[1-9][0-9]{0,8})(?:\\.[0-9]{1,6})?$', examples: ['2.50'] });

/**
 * Token prices by kind. A kind without a price costs the same as `input`, and `hourCacheWrites`, those kept for an hour,
 * the same as `cacheWrites`.
 */
const Rates = Type.Object(
  {
    input: Dollars,
    cachedInput: Type.Optional(Dollars),
    cacheWrites: Type.Optional(Dollars),
    hourCacheWrites: Type.Optional(Dollars),
    output: Dollars,
  },
  closed,
);

const Tier = Type.Object(
  {
    inputTokens: Type.Integer({ minimum: 0, maximum: 1_000_000_000 }),
    usdPerMillion: Rates,
  },
  closed,
);

const Period = Type.Object(
  {
    /** The day (UTC) from which the price applies. Left out: always. */
    from: Type.Optional(Type.String({ format: 'date' })),
    usdPerMillion: Rates,
    /** Prices of a call with more input tokens than a tier's `above`, for all of its tokens. */
    above: Type.Optional(Type.Array(Tier, { minItems: 1, maxItems: 10 })),
  },
  closed,
);

const PricedModels = Type.Object(
  {
    provider: Type.Enum(['openai', 'anthropic', 'google', 'self_hosted']),
    models: Type.Array(Type.String({ minLength: 1, maxLength: 200 }), { minItems: 1 }),
    /** Upper bound of an image in tokens, for budgets. Left out: unknown. */
    imageTokens: Type.Optional(Type.Integer({ minimum: 0, maximum: 10_000_000 })),
    prices: Type.Array(Period, { minItems: 1, maxItems: 100 }),
  },
  closed,
);

/** The content of prices.json and of ANNALS_PRICES_FILE: models by their exact ids, with their prices by day. */
export const PriceFile = Type.Array(PricedModels);

export type PriceFile = Static<typeof PriceFile>;
export type Rates = Static<typeof Rates>;
export type Period = Static<typeof Period>;

/** Reads ANNALS_PRICES_FILE. Throws a ConfigError with its faults. */
export async function readPriceFile(file: string): Promise<PriceFile> {
  return await readCheckedFile(file, {
    setting: 'ANNALS_PRICES_FILE',
    schema: PriceFile,
    what: 'a list of prices',
    faultsOf: (groups) => [
      ...duplicates(
        groups.flatMap(({ provider, models }) => models.map((model) => `the model ${model} of ${provider}`)),
      ).map((name) => `names ${name} twice`),
      ...groups.flatMap(faultsOfOrder),
    ],
  });
}

function faultsOfOrder({ provider, models, prices }: PriceFile[number]): string[] {
  const name = `the model ${models[0]} of ${provider}`;
  const days = prices.map(({ from }) => from ?? '');
  const tiers = prices.map(({ above = [] }) => above.map(({ inputTokens }) => inputTokens));
  return [
    ...(isRising(days) ? [] : [`has prices of ${name} that do not begin one after the other`]),
    ...(tiers.every(isRising) ? [] : [`has tiers of ${name} that do not rise`]),
  ];
}

function isRising<Value extends string | number>(values: readonly Value[]): boolean {
  return values.every((value, index) => index === 0 || value > (values[index - 1] as Value));
}
