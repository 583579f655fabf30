import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Message,
  LanguageModelV4Prompt,
  LanguageModelV4ToolResultOutput,
} from '@ai-sdk/provider';
import { parseObject } from '../core/json/parse.ts';
import type { AnswerReader } from './answer-reader.ts';
import { placeholder } from './json-placeholders.ts';
import type {
  Answer,
  CacheControl,
  Message,
  ModelSettings,
  ProviderFault,
  Text,
  TextPart,
  ToolCall,
  Usage,
  UserPart,
} from './port.ts';

export interface ModelAccess {
  model: string;
  apiKey: string;
  baseUrl: string;
  fetch: typeof fetch;
}

/** Settings of a call in a vendor's own format. */
export type ProviderSettings = NonNullable<LanguageModelV4CallOptions['providerOptions']>[string];

/** What differs between vendors. `language-models.ts` runs a call, the same way for all. */
export interface Adapter {
  /** The default base URL of the vendor's package, with its path. */
  defaultBaseUrl: string;
  /**
   * Whether the text can name a model; left out, any can. Required where the URL contains the name: `../x?` would
   * change the path.
   */
  canBeModel?(model: string): boolean;
  /** `baseUrl` has no trailing slash. Loads the package with the first model, because many processes never call one. */
  languageModel(access: ModelAccess): Promise<LanguageModelV4>;
  /** The conversation, with system messages where the vendor expects them. */
  promptOf(messages: readonly Message[]): LanguageModelV4Prompt;
  /** Settings in the vendor's own format. */
  optionsOf(settings: ModelSettings): Pick<LanguageModelV4CallOptions, 'providerOptions' | 'reasoning'>;
  /** The thinking budget that the package adds to a call's cap, which should cover both; left out: none is added. */
  thinkingBudget?: {
    /** Reads it from the body that the package sends; undefined where there is none. */
    in(body: unknown): number | undefined;
    /** The settings for a budget of so many tokens, replacing those for an effort. */
    of(tokens: number): ProviderSettings;
    /** The vendor's minimum in tokens. */
    min: number;
  };
  /** The settings that show the reasoning of a call with this body of the package; undefined: nothing to add. */
  reasoningShown?(body: unknown): ProviderSettings | undefined;
  /** Whether a body of the package has the vendor enforce the schema of the answer; left out: each has. */
  enforcesFormat?(body: unknown): boolean;
  /** The settings that the vendor does not support, by their names in `ModelCall`; left out: none. */
  lacks?(settings: ModelSettings): readonly string[];
  /** Whether a stream sends each tool call in one piece, with its signature. */
  sendsWholeCalls?: true;
  /** Reads what must be sent back with the first tool call of an answer; left out: nothing. */
  signatureIn?(reasoning: readonly Reasoning[]): string | undefined;
  /** The signed blocks of a signature. */
  reasoningOf?(signature: string): readonly Reasoning[];
  /** Finish reasons that the package maps wrongly, by the vendor's value. */
  finishReasons?: Readonly<Record<string, Answer['finishReason'] | 'error'>>;
  /** Why the vendor ended an answer as refused, by its reason and the package's metadata; otherwise undefined. */
  refusedBecause?(reason: string | undefined, metadata: unknown): string | undefined;
  /** Reads the tokens from the vendor's usage object. A missing figure stays undefined, never zero. */
  usageOf(raw: unknown): Usage;
  /** The usage object of an answer or a stream event. */
  usageIn(answer: unknown): unknown;
  /** Reads answers and streams before the vendor's package. */
  answers: AnswerReader;
  /** Reads the fault from the parsed body where the vendor's status is misleading. */
  faultOfRefusal?(status: number, body: unknown): ProviderFault | undefined;
}

/** A block of reasoning in the packages' format. */
export interface Reasoning {
  readonly text: string;
  readonly metadata: Record<string, Record<string, string>>;
}

/** The tokens in a vendor's usage object, with each part capped at its whole: some servers count them separately. */
export function usageFrom({ usageOf }: Pick<Adapter, 'usageOf'>, raw: unknown): Usage {
  const usage = usageOf(raw);
  const { inputTokens = Infinity, cachedTokens, outputTokens = Infinity, reasoningTokens } = usage;
  const { cacheWriteTokens, hourCacheWriteTokens } = usage;
  const cached = Math.min(cachedTokens ?? 0, inputTokens);
  const written = Math.min(cacheWriteTokens ?? 0, inputTokens - cached);
  return {
    ...usage,
    ...(cachedTokens === undefined ? {} : { cachedTokens: cached }),
    ...(cacheWriteTokens === undefined ? {} : { cacheWriteTokens: written }),
    ...(hourCacheWriteTokens === undefined ? {} : { hourCacheWriteTokens: Math.min(hourCacheWriteTokens, written) }),
    ...(reasoningTokens === undefined ? {} : { reasoningTokens: Math.min(reasoningTokens, outputTokens) }),
  };
}

/** Message conversion for vendors that do not use chat completions. */
export interface OwnFormat extends Pick<Adapter, 'reasoningOf'> {
  /** A tool result of several texts. */
  outputOf(texts: readonly string[]): LanguageModelV4ToolResultOutput;
}

/** Converts a message to the form of the provider packages. Without `own`: for chat completions. */
export function promptMessage(message: Message, own?: OwnFormat): LanguageModelV4Message {
  switch (message.role) {
    case 'system':
      return { role: 'system', content: message.content, ...cacheOptions(message) };
    case 'user':
      return { role: 'user', content: partsOf(message.content).map(promptPart) };
    case 'assistant':
      return {
        role: 'assistant',
        content: [
          ...(message.toolCalls ?? []).flatMap((call) => reasoningParts(call, own?.reasoningOf)),
          ...(message.content === '' && message.toolCalls !== undefined
            ? []
            : textPartsOf(message.content).map(promptText)),
          ...(message.toolCalls ?? []).map(({ id, name, input, signature, cache }) => ({
            type: 'tool-call' as const,
            toolCallId: id,
            toolName: name,
            input: own !== undefined && parseObject(input) === undefined ? { INVALID_JSON: input } : placeholder(input),
            ...(signature === undefined || own?.reasoningOf !== undefined
              ? {}
              : { providerOptions: { google: { thoughtSignature: signature } } }),
            ...cacheOptions({ cache }),
          })),
        ],
      };
    case 'tool':
      return {
        role: 'tool',
        content: message.results.map(({ id, name, output, cache }) => ({
          type: 'tool-result' as const,
          toolCallId: id,
          toolName: name,
          output: resultOutput(textsOf(output), own),
          ...cacheOptions({ cache }),
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
  return textPartsOf(content).map(({ text }) => text);
}

export function textPartsOf(content: Text): readonly TextPart[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : content;
}

/** The parts of a user message. */
export function partsOf(content: string | readonly UserPart[]): readonly UserPart[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : content;
}

function promptPart(part: UserPart) {
  if (part.type === 'text') return promptText(part);
  const { mediaType, data } = part;
  return { type: 'file' as const, mediaType, data: { type: 'data' as const, data }, ...cacheOptions(part) };
}

function promptText({ text, cache }: TextPart) {
  return { type: 'text' as const, text, ...cacheOptions({ cache }) };
}

/** Only one vendor takes `cache_control`. */
function cacheOptions({ cache }: { cache?: CacheControl | undefined }) {
  return cache === undefined ? {} : { providerOptions: { anthropic: { cacheControl: cacheControlOf(cache) } } };
}

/** As the vendor writes it. */
export function cacheControlOf({ ttl }: CacheControl) {
  return { type: 'ephemeral' as const, ...(ttl !== undefined && { ttl }) };
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
 * For vendors that take instructions separately: system messages first, in order. A conversation of instructions alone
 * is sent as the user's message, because such vendors require a turn to answer.
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
    : { ...message, content: message.content.filter(({ text }) => text !== '') };
}

/** Whether a message is empty without its empty texts. */
export function isEmpty(message: Message): boolean {
  const left = withoutEmptyTexts(message);
  if (left.role === 'tool' || left.content.length > 0) return false;
  return left.role !== 'assistant' || (left.toolCalls ?? []).length === 0;
}
