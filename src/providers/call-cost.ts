import type { Usage } from './port.ts';

/** The price of a model, in pico-USD (10^-12 US dollars) per token. */
export interface CallPrice {
  /** The first day of the price, such as `2026-11-01`. Left out: no start. */
  readonly from?: string;
  /** Upper bound of an image, in tokens. Left out: unknown. */
  readonly imageTokens?: number;
  /** By ascending `above`. The last tier that the input tokens exceed applies to all tokens of the call. */
  readonly tiers: readonly Readonly<Record<'above' | 'input' | 'cachedInput' | 'cacheWrites' | 'output', number>>[];
}

/** The cost of a call in pico-USD. The input includes cached tokens and cache writes. Undefined where unknown. */
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
