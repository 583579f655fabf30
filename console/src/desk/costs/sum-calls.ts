import type { ModelCall } from '@annals/client';

interface CallSums {
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Some call does not say its tokens, so the sum may be higher. */
  readonly lacksTokens: boolean;
  /** Undefined where no cost is known. */
  readonly costUsd: string | undefined;
  /** The cost of some call is unknown, so the sum may be higher. */
  readonly lacksCost: boolean;
}

/** The sums of what is known of calls. */
export function sumCalls(calls: readonly Pick<ModelCall, 'inputTokens' | 'outputTokens' | 'costUsd'>[]): CallSums {
  const costs = calls.flatMap(({ costUsd }) => costUsd ?? []);
  return {
    inputTokens: calls.reduce((sum, { inputTokens = 0 }) => sum + inputTokens, 0),
    outputTokens: calls.reduce((sum, { outputTokens = 0 }) => sum + outputTokens, 0),
    lacksTokens: calls.some(({ inputTokens, outputTokens }) => inputTokens === undefined || outputTokens === undefined),
    costUsd: costs.length === 0 ? undefined : sumDollars(costs),
    lacksCost: costs.length < calls.length,
  };
}

/** The sum of US dollars with all of their digits, which are those of pico-dollars. */
export function sumDollars(costs: readonly string[]): string {
  const digits = String(costs.reduce((sum, cost) => sum + picoOf(cost), 0n)).padStart(13, '0');
  return `${digits.slice(0, -12)}.${digits.slice(-12)}`.replace(/\.?0+$/, '');
}

function picoOf(dollars: string): bigint {
  const [whole = '', fraction = ''] = dollars.split('.');
  return BigInt(whole + fraction.padEnd(12, '0'));
}
