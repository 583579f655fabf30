import type { Message } from '../../providers/port.ts';
import type { LlmConfig } from './llm-config.ts';
import type { EarlierTurn } from './turn-store.ts';

/**
 * The default context window in tokens, for agents that set none. Each vendor's current models accept at least this
 * much.
 */
const defaultWindow: Readonly<Record<LlmConfig['provider'], number>> = {
  openai: 128_000,
  shared: 128_000,
  anthropic: 200_000,
  google: 1_000_000,
  // Local servers cut a longer input without an error. This is their default window.
  self_hosted: 8_192,
  self_hosted_ollama: 8_192,
  self_hosted_vllm: 8_192,
};

// A token of text has four bytes on average, and two in the worst ordinary text. Only the vendor can count tokens.
const bytesOfToken = 2;
const bytesAroundMessage = 16;

/** Max. bytes of a request to a model, whatever the model accepts. Memory holds several copies of a request. */
export const maxRequestBytes = 4 * 1024 * 1024;

/** The tokens of the model's context window, of the request and the answer together. */
export function windowOf({ provider, contextTokens }: LlmConfig): number {
  return contextTokens ?? defaultWindow[provider];
}

/** The max. bytes of the request to the model. The space for the answer is subtracted first. */
export function bytesForInput(llmConfig: LlmConfig, outputCap: number): number {
  const window = windowOf(llmConfig);
  const bytes = (window - Math.min(outputCap, Math.floor(window / 2))) * bytesOfToken;
  return Math.min(bytes, maxRequestBytes);
}

/** The bytes that are left of `maxBytes` beside these messages; negative where they do not fit. */
export function bytesBeside(messages: readonly Message[], maxBytes: number): number {
  return maxBytes - messages.reduce((sum, message) => sum + bytesOfMessage(message), 0);
}

/** Bytes that the window must have left for the result of a tool. */
export const minResultBytes = 1024;

/** A result is text within JSON, which is longer there. */
export const shareOfWindow = 0.75;

/** The bytes that tools may take of a request of `maxBytes`, so that one result fits beside them and these messages. */
export function bytesForTools(messages: readonly Message[], maxBytes: number): number {
  return Math.floor(bytesBeside(messages, maxBytes) - minResultBytes / shareOfWindow);
}

/** Why no tool can be run. `which`: which tools. */
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
 * The latest of the earlier turns that fit beside the parts that every request must contain. The oldest turns are
 * dropped first, and a turn is never cut in half (contract 8).
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
