import { partsOf, textsOf } from '../../providers/adapter.ts';
import type { InputBound, QuotaRequest } from '../../providers/call-ledger.ts';
import type { JsonFormat, Message, Text, Tool, UserPart } from '../../providers/port.ts';

/**
 * An upper bound of the input tokens: one per byte, plus what vendors add per message and per request (contract:
 * completions). Tools and the response format count with all their texts.
 */
export function inputBound(messages: readonly Message[], tools: readonly Tool[] = [], format?: JsonFormat): InputBound {
  const described = [...tools, ...(format === undefined ? [] : [format])].map(
    (text) => Buffer.byteLength(JSON.stringify(text)) + perMessage,
  );
  const tokens = [...messages.map(boundOfMessage), ...described].reduce((sum, bound) => sum + bound, perCall);
  const images = messages.flatMap((message) => (message.role === 'user' ? imagesOf(message.content) : []));
  return { tokens, images: images.length };
}

/** The bound including images, and whether it is reliable: the price states the tokens of an image. */
export function boundOf({ call, input }: Pick<QuotaRequest, 'call' | 'input'>): { tokens: number; isBounded: boolean } {
  if (input === undefined) return { tokens: 0, isBounded: false };
  const { imageTokens } = call.price ?? {};
  const around = call.provider === 'openai' || input.isExact === true ? 0 : perCallOfOthers;
  return {
    tokens: input.tokens + around + input.images * (imageTokens ?? tokensOfImage),
    isBounded: input.images === 0 || imageTokens !== undefined,
  };
}

/** Tokens that other vendors add to a call with tools or a format. */
export const perCallOfOthers = 1_024;

const perMessage = 16;
const perCall = 64;

function boundOfMessage(message: Message): number {
  if (message.role === 'tool') {
    return message.results.reduce(
      (sum, result) => sum + bytesOf(result.id, result.name) + boundOfTexts(result.output),
      0,
    );
  }
  if (message.role === 'user')
    return partsOf(message.content).reduce((sum, part) => sum + bytesOf(textOf(part)), perMessage);
  const calls = message.role === 'assistant' ? (message.toolCalls ?? []) : [];
  const bytes = calls.reduce((sum, call) => sum + bytesOf(call.id, call.name, call.input) + perMessage, 0);
  return boundOfTexts(message.content) + bytes;
}

function boundOfTexts(content: Text): number {
  return textsOf(content).reduce((sum, text) => sum + bytesOf(text) + perMessage, 0);
}

/** Above any vendor's count for an image: gpt-4o-mini counts 48,169 for a large one. */
export const tokensOfImage = 50_000;

function textOf(part: UserPart): string {
  return part.type === 'text' ? part.text : '';
}

function imagesOf(content: string | readonly UserPart[]): UserPart[] {
  return partsOf(content).filter(({ type }) => type === 'image');
}

function bytesOf(...texts: string[]): number {
  return texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
}
