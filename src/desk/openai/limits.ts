import { formatLimits } from '../formats/limits.ts';

/** Limits of a client's request. */
export const openaiLimits = {
  ...formatLimits,
  messages: 1_000,
  /** Of the input of a response. */
  items: 10_000,
  /** Texts, or lists of token ids, of a request for embeddings. */
  inputs: 2_048,
  /** JSON values of a request for embeddings: the token ids that the first provider takes in one. */
  embeddingValues: 310_000,
  tools: 128,
  stops: 4,
} as const;
