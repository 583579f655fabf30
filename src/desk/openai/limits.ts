import { maxUserCharacters } from '../end-user.ts';

/** Limits of a client's request. */
export const openaiLimits = {
  /** Of a request, images included. */
  bodyBytes: 16 * 1024 * 1024,
  /** Of all texts of a request together. */
  textBytes: 4 * 1024 * 1024,
  /** Of a repeatable stream, one with an Idempotency-Key. */
  storedStreamBytes: 1024 * 1024,
  messages: 1_000,
  /** Of the input of a response. */
  items: 10_000,
  tools: 128,
  stops: 4,
  userCharacters: maxUserCharacters,
  modelCharacters: 200,
} as const;
