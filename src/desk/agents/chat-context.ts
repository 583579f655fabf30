import type { Message } from '../../providers/port.ts';
import type { LlmConfig } from './llm-config.ts';
import type { EarlierTurn } from './turn-store.ts';

/** The context window in tokens for agents that set none: the minimum of each vendor's current models. */
const defaultWindow: Readonly<Record<LlmConfig['provider'], number>> = {
  openai: 128_000,
  shared: 128_000,
  anthropic: 200_000,
  google: 1_000_000,
  // Local servers silently truncate a longer input. This is their default window.
  self_hosted: 8_192,
  self_hosted_ollama: 8_192,
  self_hosted_vllm: 8_192,
};

// A token of text has four bytes on average, two in the worst common text. Only the vendor can count tokens.
const bytesOfToken = 2;
const bytesAroundMessage = 16;

/** Max. bytes of a request, whatever the model accepts, because memory holds several copies of it. */
export const maxRequestBytes = 4 * 1024 * 1024;

/** The tokens of the model's context window, for request and answer together. */
export function windowOf({ provider, contextTokens }: LlmConfig): number {
  return contextTokens ?? defaultWindow[provider];
}

/** The max. bytes of the request to the model, after subtracting the space for the answer. */
export function bytesForInput(llmConfig: LlmConfig, outputCap: number): number {
  const window = windowOf(llmConfig);
  const bytes = (window - Math.min(outputCap, Math.floor(window / 2))) * bytesOfToken;
  return Math.min(bytes, maxRequestBytes);
}

/** The bytes of `maxBytes` that these messages leave; negative where they do not fit. */
export function bytesBeside(messages: readonly Message[], maxBytes: number): number {
  return maxBytes - messages.reduce((sum, message) => sum + bytesOfMessage(message), 0);
}

/** Bytes that the window must leave for a tool result. */
export const minResultBytes = 1024;

/** A result is text within JSON, which makes it longer. */
export const shareOfWindow = 0.75;

/** The bytes of a request of `maxBytes` that tools may take, so that these messages and one result fit as well. */
export function bytesForTools(messages: readonly Message[], maxBytes: number): number {
  return Math.floor(bytesBeside(messages, maxBytes) - minResultBytes / shareOfWindow);
}

/** Why no tool can run. `which`: which tools. */
export function noRoomForTools(
  which: string,
  bytes: number,
  { room, window }: { room: number; window: number },
): string {
  return (
    `${which} take ${bytes} bytes of each request. A context of ${window} tokens has room for ${Math.max(0, room)} bytes of tools ` +
    'and a result of one, so the model cannot use them. Approve fewer tools, or set llmConfig.contextTokens to the window of the model.'
  );
}

/**
 * The latest earlier turns that fit next to the required parts. Drops the oldest first, and never part of a turn
 * (contract 8).
 */
export function fittingTurns(
  earlier: readonly EarlierTurn[],
  required: readonly Message[],
  maxBytes: number,
): readonly EarlierTurn[] {
  let left = bytesBeside(required, maxBytes);
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
