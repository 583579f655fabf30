import type { LanguageModelV4, LanguageModelV4Message, LanguageModelV4Prompt } from '@ai-sdk/provider';
import type { AnswerReader } from './answer-reader.ts';
import { parsed } from './members.ts';
import type { Message, ProviderFault, Usage } from './port.ts';

export interface ModelSettings {
  model: string;
  apiKey: string;
  baseUrl: string;
  fetch: typeof fetch;
}

/** The parts that differ between vendors. `language-models.ts` has the rest. */
export interface Adapter {
  /** The default base URL of the vendor's package, with its path. */
  defaultBaseUrl: string;
  /**
   * Whether the text can name a model of the vendor; left out, any can. A vendor whose URL holds the name needs it: a
   * name such as `../x?` would lead the call to another path.
   */
  canBeModel?(model: string): boolean;
  /** `baseUrl` has no slash at its end. */
  languageModel(settings: ModelSettings): LanguageModelV4;
  /** The conversation, with system messages in the position that the vendor expects. */
  promptOf(messages: readonly Message[]): LanguageModelV4Prompt;
  /** Reads the tokens from the vendor's usage object. A missing figure must not become zero. */
  usageOf(raw: unknown): Usage;
  /** The usage object in an answer, or in an event of a stream, if it has one. */
  usageIn(answer: unknown): unknown;
  /** Reads answers and streams before the vendor's package does. */
  answers: AnswerReader;
  /** Reads the fault from the parsed body, where the vendor's status alone would mislead. */
  faultOfRefusal?(status: number, body: unknown): ProviderFault | undefined;
}

/** Converts a message to the form of the provider packages. */
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
          ...(message.toolCalls ?? []).map(({ id, name, input, signature }) => ({
            type: 'tool-call' as const,
            toolCallId: id,
            toolName: name,
            input: parsed(input) ?? {},
            ...(signature === undefined ? {} : { providerOptions: { google: { thoughtSignature: signature } } }),
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
 * For vendors that take instructions apart from the conversation. The system messages come first, in their order. If
 * the conversation has only instructions, they are sent as the user's message, because such vendors need a turn to
 * answer.
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
