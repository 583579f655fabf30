import type { FastifyBaseLogger } from 'fastify';
import { AnnalsError } from '../errors.ts';
import type { CallTimes } from './deadline.ts';
import {
  type Answer,
  type FailedUsage,
  type LanguageModels,
  type Message,
  type ModelCall,
  ProviderError,
  type Tool,
  type Usage,
} from './port.ts';

/** The quota of the shared token, as a call needs it. */
export interface SharedQuota {
  /** Reserves before the call leaves; throws AnnalsError where the quota does not allow it. */
  reserve(request: {
    tenant: string;
    input: number;
    output: number;
    /** How long the call may last at most, in milliseconds. */
    maxDuration: number;
    signal?: AbortSignal | undefined;
  }): Promise<{ output: number; settle(usage: FailedUsage): Promise<void> }>;
  /** Upper bound of a call's input in tokens. */
  inputBound(messages: readonly Message[], tools?: readonly Tool[]): number;
}

/** How a caller follows a call. */
export interface CallProgress {
  /** Told the text piece by piece; left out: the answer is not streamed. */
  readonly onText?: ((text: string) => Promise<void> | void) | undefined;
  /** Told what the provider reported of its tokens, before the call resolves or rejects. */
  readonly onUsage?: ((usage: Usage) => void) | undefined;
}

/** One call of a provider, with whoever's token. Rejects with ProviderError, or AnnalsError where it did not leave. */
export interface ProviderCaller {
  /** The most output tokens that a call with the shared token may ask for. */
  readonly sharedMaxTokens: number;
  /** With a key of the tenant's own: the quota is not touched. */
  callOwn(call: OwnCall, progress?: CallProgress): Promise<Answer>;
  /** With the service's shared token and model: reserves, calls and settles. */
  callShared(call: SharedCall, progress?: CallProgress): Promise<Answer>;
}

export type OwnCall = Omit<ModelCall, 'times'>;

export interface SharedCall extends Pick<ModelCall, 'messages' | 'tools' | 'maxTokens' | 'temperature' | 'signal'> {
  readonly tenant: string;
}

export interface ProviderCallerOptions {
  languageModels: LanguageModels;
  quota: SharedQuota;
  shared: { token: string | undefined; model: string; maxTokens: number };
  times: CallTimes;
  logger: FastifyBaseLogger;
}

export function createProviderCaller(options: ProviderCallerOptions): ProviderCaller {
  const { languageModels, quota, shared, times, logger } = options;

  async function answerOf(call: ModelCall, onText: CallProgress['onText']): Promise<Answer> {
    if (onText === undefined) return await languageModels.generate(call);
    for await (const event of languageModels.stream(call)) {
      if (event.type === 'answer') return event.answer;
      await onText(event.text);
    }
    throw new Error('a stream ended without its answer');
  }

  async function callAndSettle(
    call: ModelCall,
    { onText, onUsage }: CallProgress,
    settle: (usage: FailedUsage) => Promise<void>,
  ): Promise<Answer> {
    // Until the provider says otherwise, nobody knows what it has counted.
    let usage: FailedUsage = 'unknown';
    try {
      const answer = await answerOf(call, onText);
      usage = answer.usage;
      onUsage?.(answer.usage);
      return answer;
    } catch (error) {
      if (error instanceof ProviderError) {
        usage = error.usage;
        onUsage?.(error.reported);
      }
      throw error;
    } finally {
      await settle(usage);
    }
  }

  return {
    sharedMaxTokens: shared.maxTokens,

    async callOwn(call, progress = {}) {
      return await callAndSettle({ ...call, times }, progress, async () => {});
    },

    async callShared({ tenant, messages, tools = [], maxTokens, temperature, signal }, progress = {}) {
      const { token: apiKey, model } = shared;
      if (apiKey === undefined) {
        throw new AnnalsError('service_unavailable', 'The service has no shared provider token.');
      }
      const { output, settle } = await quota.reserve({
        tenant,
        input: quota.inputBound(messages, tools),
        output: maxTokens,
        maxDuration: times.total,
        signal,
      });
      const content = { messages, tools, temperature, signal };
      const call: ModelCall = { ...content, provider: 'openai', model, apiKey, maxTokens: output, times };
      try {
        return await callAndSettle(call, progress, settle);
      } catch (error) {
        if (error instanceof ProviderError && error.fault === 'key_refused') {
          logger.error('the provider refuses the shared token');
        }
        throw error;
      }
    },
  };
}

/** The same answer where it is worth something: it has text. Throws ProviderError where it has none (contract 7). */
export function withText(answer: Answer, text = answer.text): Answer {
  if (text.trim() !== '') return answer;
  const fault = answer.finishReason === 'content-filter' ? 'content_filtered' : 'broken';
  throw new ProviderError(fault, answer.usage);
}
