import { maxUserCharacters } from '../end-user.ts';

/** Limits of a client's request, whatever its format. */
export const formatLimits = {
  /** Of a request, images included. */
  bodyBytes: 16 * 1024 * 1024,
  /** Of all texts of a request together. */
  textBytes: 4 * 1024 * 1024,
  /** Of a repeatable stream, one with an Idempotency-Key. */
  storedStreamBytes: 1024 * 1024,
  /** Of a repeatable answer that is not streamed. */
  storedAnswerBytes: 4 * 1024 * 1024,
  userCharacters: maxUserCharacters,
  modelCharacters: 200,
} as const;
