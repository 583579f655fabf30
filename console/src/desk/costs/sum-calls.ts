import type { ModelCall } from '@annals/client';
import { sumDollars } from './sum-dollars.ts';

export interface CallSums {
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
