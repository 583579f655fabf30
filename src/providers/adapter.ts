import type { LanguageModelV4, LanguageModelV4Message, LanguageModelV4Prompt } from '@ai-sdk/provider';
import type { Message, ProviderFault, Usage } from './port.ts';

export interface ModelSettings {
  model: string;
  apiKey: string;
  baseUrl: string;
  fetch: typeof fetch;
}

/** What is special about a vendor; the rest is `language-models.ts`. */
export interface Adapter {
  /** Where its packages look for it, path included, unless told. */
  defaultBaseUrl: string;
  /** `baseUrl` without a slash at its end. */
  languageModel(settings: ModelSettings): LanguageModelV4;
  /** The conversation with system messages where the vendor wants them. */
  promptOf(messages: readonly Message[]): LanguageModelV4Prompt;
  /** Tokens by the vendor's own usage object; a figure that is not there must not be taken for zero. */
  usageOf(raw: unknown): Usage;
  /** The usage object in an event of a stream, where it has one. */
  usageIn(event: unknown): unknown;
  /** Where the vendor's status alone would mislead: its refusal, read from the parsed body. */
  faultOfRefusal?(status: number, body: unknown): ProviderFault | undefined;
}

export const noUsage: Usage = { inputTokens: undefined, outputTokens: undefined };

/** The message in the form of the provider packages. */
export function promptMessage(message: Message): LanguageModelV4Message {
  switch (message.role) {
    case 'system':
      return { role: 'system', content: message.content };
    case 'user':
      return { role: 'user', content: [{ type: 'text', text: message.content }] };
    case 'assistant':
      return {
        role: 'assistant',
        content: [
          ...(message.content === '' && message.toolCalls !== undefined
            ? []
            : [{ type: 'text' as const, text: message.content }]),
          ...(message.toolCalls ?? []).map(({ id, name, input }) => ({
            type: 'tool-call' as const,
            toolCallId: id,
            toolName: name,
            input: parsedInput(input),
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
          output: { type: 'text' as const, value: output },
        })),
      };
  }
}

/**
 * For vendors that take instructions apart from the conversation: the system messages come first, in their order. A
 * conversation of instructions alone is sent as the user's words, because such vendors want a turn to answer to.
 */
export function systemFirst(messages: readonly Message[]): Message[] {
  const written = messages.filter((message) => message.role === 'tool' || !isEmpty(message));
  const system = written.filter(({ role }) => role === 'system');
  const turns = written.filter(({ role }) => role !== 'system');
  if (turns.length > 0) return [...system, ...turns];
  return system.map((message) => (message.role === 'system' ? { ...message, role: 'user' } : message));
}

function isEmpty(message: Exclude<Message, { role: 'tool' }>): boolean {
  return message.content === '' && (message.role !== 'assistant' || (message.toolCalls ?? []).length === 0);
}

// More than any answer has; a figure beyond would only spoil the sums.
const maxFigure = 1_000_000_000_000;

/** A figure of a usage object: a whole number from 0, or nothing. */
export function figure(raw: unknown, name: string): number | undefined {
  const value = memberOf(raw, name);
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= maxFigure ? value : undefined;
}

/** The member of what may be an object. */
export function memberOf(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
  return Object.entries(value).find(([key]) => key === name)?.[1];
}

function parsedInput(input: string): unknown {
  try {
    return JSON.parse(input);
  } catch {
    return {};
  }
}
