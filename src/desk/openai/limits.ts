import { formatLimits } from '../formats/limits.ts';

/** Limits of a client's request. */
export const openaiLimits = {
  ...formatLimits,
  messages: 1_000,
  /** Of the input of a response. */
  items: 10_000,
  tools: 128,
  stops: 4,
} as const;
