import type { Message } from '../providers/port.ts';
import type { LlmConfig } from './schemas.ts';
import type { EarlierTurn } from './turn-store.ts';

/** What models take where an agent does not say, in tokens: no less than what each vendor's current models do. */
const defaultWindow: Readonly<Record<LlmConfig['provider'], number>> = {
  openai: 128_000,
  shared: 128_000,
  anthropic: 200_000,
  google: 1_000_000,
  // Local servers cut what they do not take without a word; this is what they take unless they were told more.
  self_hosted: 8_192,
};

// Tokens of text have four bytes on average, and two in the worst of ordinary texts. Only the vendor can count them.
const bytesOfToken = 2;
const bytesAroundMessage = 16;

/** Bytes of a request to a model, however much the model takes: they are in memory some times over. */
export const maxRequestBytes = 4 * 1024 * 1024;

/** The bytes that a request to the model may have, its answer being given room first. */
export function bytesForInput({ provider, contextTokens }: LlmConfig, outputCap: number): number {
  const window = contextTokens ?? defaultWindow[provider];
  const bytes = (window - Math.min(outputCap, Math.floor(window / 2))) * bytesOfToken;
  return Math.min(bytes, maxRequestBytes);
}

/**
 * The latest of the earlier turns that fit beside what has to be sent in any case: the oldest go first, never half of
 * one (contract 8).
 */
export function fittingTurns(
  earlier: readonly EarlierTurn[],
  required: readonly Message[],
  maxBytes: number,
): readonly EarlierTurn[] {
  let left = maxBytes - required.reduce((sum, message) => sum + bytesOfMessage(message), 0);
  let from = earlier.length;
  for (let index = earlier.length - 1; index >= 0; index -= 1) {
    left -= (earlier[index]?.bytes ?? 0) + 2 * bytesAroundMessage;
    if (left < 0) break;
    from = index;
  }
  return earlier.slice(from);
}

export function messagesOfTurn({ message, answer }: EarlierTurn): Message[] {
  return [
    { role: 'user', content: message },
    { role: 'assistant', content: answer },
  ];
}

function bytesOfMessage(message: Message): number {
  return Buffer.byteLength(JSON.stringify(message)) + bytesAroundMessage;
}
