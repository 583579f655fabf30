import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Message,
  LanguageModelV4Prompt,
  LanguageModelV4ToolResultOutput,
} from '@ai-sdk/provider';
import { parseObject } from '../core/json/parse.ts';
import type { AnswerReader } from './answer-reader.ts';
import { carried } from './carried-json.ts';
import type { Answer, Message, ModelSettings, ProviderFault, Text, ToolCall, Usage, UserPart } from './port.ts';

export interface ModelAccess {
  model: string;
  apiKey: string;
  baseUrl: string;
  fetch: typeof fetch;
}

/** The parts that differ between vendors. `language-models.ts` has the course of a call, which is the same for all. */
export interface Adapter {
  /** The default base URL of the vendor's package, with its path. */
  defaultBaseUrl: string;
  /**
   * Whether the text can name a model of the vendor; left out, any can. A vendor whose URL holds the name needs it: a
   * name such as `../x?` would lead the call to another path.
   */
  canBeModel?(model: string): boolean;
  /** `baseUrl` has no slash at its end. The package is loaded with the first model: many processes never call one. */
  languageModel(access: ModelAccess): Promise<LanguageModelV4>;
  /** The conversation, with system messages in the position that the vendor expects. */
  promptOf(messages: readonly Message[]): LanguageModelV4Prompt;
  /** Settings that packages take in the vendor's own way. */
  optionsOf(settings: ModelSettings): Pick<LanguageModelV4CallOptions, 'providerOptions' | 'reasoning'>;
  /** A budget for thinking that the package adds to a call's cap, which is meant for both; left out: it never does. */
  thinkingBudget?: {
    /** Reads it from the body that the package sends; undefined where there is none. */
    in(body: unknown): number | undefined;
    /** The settings for one of so many tokens, in place of those for an effort. */
    of(tokens: number): NonNullable<LanguageModelV4CallOptions['providerOptions']>[string];
    /** The vendor's minimum in tokens. */
    min: number;
  };
  /** What of a call's settings the vendor has no way to be told, by their names in `ModelCall`; left out: nothing. */
  lacks?(settings: ModelSettings): readonly string[];
  /** Whether a stream has each tool call in one piece, with its signature. */
  sendsWholeCalls?: true;
  /** Reads what the vendor wants back with the first tool call of an answer; left out: nothing. */
  signatureIn?(reasoning: readonly Reasoning[]): string | undefined;
  /** The signed blocks that such a text stands for. */
  reasoningOf?(signature: string): readonly Reasoning[];
  /** What a reason to finish means where the package says something else, by the vendor's word; left out: the package is right. */
  finishReasons?: Readonly<Record<string, Answer['finishReason'] | 'error'>>;
  /** Why the vendor ended an answer as refused, by its word and the package's metadata; undefined where it did not. */
  refusedBecause?(reason: string | undefined, metadata: unknown): string | undefined;
  /** Reads the tokens from the vendor's usage object. A missing figure must not become zero. */
  usageOf(raw: unknown): Usage;
  /** The usage object in an answer, or in an event of a stream, if it has one. */
  usageIn(answer: unknown): unknown;
  /** Reads answers and streams before the vendor's package does. */
  answers: AnswerReader;
  /** Reads the fault from the parsed body, where the vendor's status alone would mislead. */
  faultOfRefusal?(status: number, body: unknown): ProviderFault | undefined;
}

/** A block of reasoning, as the packages read and write it. */
export interface Reasoning {
  readonly text: string;
  readonly metadata: Record<string, Record<string, string>>;
}

/** The tokens in a vendor's usage object. No part exceeds its whole: some servers count what they cache beside the input. */
export function usageFrom({ usageOf }: Pick<Adapter, 'usageOf'>, raw: unknown): Usage {
  const usage = usageOf(raw);
  const { inputTokens = Infinity, cachedTokens, cacheWriteTokens, outputTokens = Infinity, reasoningTokens } = usage;
  const cached = Math.min(cachedTokens ?? 0, inputTokens);
  return {
    ...usage,
    ...(cachedTokens === undefined ? {} : { cachedTokens: cached }),
    ...(cacheWriteTokens === undefined ? {} : { cacheWriteTokens: Math.min(cacheWriteTokens, inputTokens - cached) }),
    ...(reasoningTokens === undefined ? {} : { reasoningTokens: Math.min(reasoningTokens, outputTokens) }),
  };
}

/** How a vendor whose format is not chat completions takes messages. */
export interface OwnFormat extends Pick<Adapter, 'reasoningOf'> {
  /** The result of a tool in several texts. */
  outputOf(texts: readonly string[]): LanguageModelV4ToolResultOutput;
}

/** Converts a message to the form of the provider packages. Without `own`: for chat completions. */
export function promptMessage(message: Message, own?: OwnFormat): LanguageModelV4Message {
  switch (message.role) {
    case 'system':
      return { role: 'system', content: message.content };
    case 'user':
      return { role: 'user', content: partsOf(message.content).map(promptPart) };
    case 'assistant':
      return {
        role: 'assistant',
        content: [
          ...(message.toolCalls ?? []).flatMap((call) => reasoningParts(call, own?.reasoningOf)),
          ...(message.content === '' && message.toolCalls !== undefined
            ? []
            : textsOf(message.content).map((text) => ({ type: 'text' as const, text }))),
          ...(message.toolCalls ?? []).map(({ id, name, input, signature }) => ({
            type: 'tool-call' as const,
            toolCallId: id,
            toolName: name,
            input: own !== undefined && parseObject(input) === undefined ? { INVALID_JSON: input } : carried(input),
            ...(signature === undefined || own?.reasoningOf !== undefined
              ? {}
              : { providerOptions: { google: { thoughtSignature: signature } } }),
          })),
        ],
      };
    case 'tool':
      return {
        role: 'tool',
        content: message.results.map(({ id, name, output }) => ({
          type: 'tool-result' as const,
          toolCallId: id,
          toolName: name,
          output: resultOutput(textsOf(output), own),
        })),
      };
  }
}

function resultOutput(texts: readonly string[], own: OwnFormat | undefined): LanguageModelV4ToolResultOutput {
  const written = texts.filter((text) => text !== '');
  return own === undefined || written.length < 2 ? { type: 'text', value: written.join('') } : own.outputOf(written);
}

/** The texts of the parts of a content. */
export function textsOf(content: Text): readonly string[] {
  return typeof content === 'string' ? [content] : content;
}

/** The parts of what a user says. */
export function partsOf(content: string | readonly UserPart[]): readonly UserPart[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : content;
}

function promptPart(part: UserPart) {
  if (part.type === 'text') return part;
  const { mediaType, data, detail } = part;
  return {
    type: 'file' as const,
    mediaType,
    data: { type: 'data' as const, data },
    ...(detail === undefined ? {} : { providerOptions: { openai: { imageDetail: detail } } }),
  };
}

function reasoningParts({ signature }: ToolCall, reasoningOf: Adapter['reasoningOf']) {
  if (signature === undefined || reasoningOf === undefined) return [];
  return reasoningOf(signature).map(({ text, metadata }) => ({
    type: 'reasoning' as const,
    text,
    providerOptions: metadata,
  }));
}

/**
 * For vendors that take instructions apart from the conversation. The system messages come first, in their order. If
 * the conversation has only instructions, they are sent as the user's message, because such vendors need a turn to
 * answer.
 */
export function systemFirst(messages: readonly Message[]): Message[] {
  const written = messages.map(withoutEmptyTexts).filter((message) => !isEmpty(message));
  const system = written.filter(({ role }) => role === 'system');
  const turns = written.filter(({ role }) => role !== 'system');
  if (turns.length > 0) return [...system, ...turns];
  return system.map((message) => (message.role === 'system' ? { ...message, role: 'user' } : message));
}

/** Vendors refuse empty texts. */
function withoutEmptyTexts(message: Message): Message {
  if (message.role === 'system' || message.role === 'tool' || typeof message.content === 'string') return message;
  return message.role === 'user'
    ? { ...message, content: message.content.filter((part) => part.type !== 'text' || part.text !== '') }
    : { ...message, content: message.content.filter((text) => text !== '') };
}

/** Whether nothing is left of a message without its empty texts. */
export function isEmpty(message: Message): boolean {
  const left = withoutEmptyTexts(message);
  if (left.role === 'tool' || left.content.length > 0) return false;
  return left.role !== 'assistant' || (left.toolCalls ?? []).length === 0;
}
