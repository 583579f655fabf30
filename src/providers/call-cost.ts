import type { Usage } from './port.ts';

/** What a model costs, in pico-USD a token: 10^-12 US dollars. */
export interface CallPrice {
  /** The first day of the price, such as `2026-11-01`. Left out: it has always been so. */
  readonly from?: string;
  /** What an image counts at most, in tokens. Left out: nobody knows. */
  readonly imageTokens?: number;
  /** By rising `above`. The last one applies, to all tokens, of which the call has more input tokens than `above`. */
  readonly tiers: readonly Readonly<Record<'above' | 'input' | 'cachedInput' | 'cacheWrites' | 'output', number>>[];
}

/** What the tokens of a call cost, in pico-USD. Cached tokens and cache writes are parts of the input. Undefined: a figure or the price is not known. */
export function costOfCall(price: CallPrice | undefined, usage: Usage): bigint | undefined {
  const { inputTokens: input, outputTokens: output, cachedTokens = 0, cacheWriteTokens = 0 } = usage;
  if (price === undefined || input === undefined || output === undefined) return undefined;
  const tier = price.tiers.findLast(({ above }) => above < input);
  if (tier === undefined) return undefined;
  return (
    BigInt(input - cachedTokens - cacheWriteTokens) * BigInt(tier.input) +
    BigInt(cachedTokens) * BigInt(tier.cachedInput) +
    BigInt(cacheWriteTokens) * BigInt(tier.cacheWrites) +
    BigInt(output) * BigInt(tier.output)
  );
}
