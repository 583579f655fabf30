import { formatLimits } from '../formats/limits.ts';

/** Limits of a client's request. */
export const anthropicLimits = {
  ...formatLimits,
  messages: 10_000,
  tools: 1_000,
  /** Bytes of a query string. */
  queryBytes: 1_024,
  /** Models of a page of the list. */
  models: 1_000,
} as const;
