import type { FastifyBaseLogger } from 'fastify';
import { AnnalsError } from '../errors.ts';
import {
  type Answer,
  type FailedUsage,
  type LanguageModels,
  type Message,
  type ModelCall,
  ProviderError,
  type Tool,
} from '../providers/port.ts';
import type { LlmConfig } from './schemas.ts';

/** The quota of the shared token, as completions use it. */
export interface SharedQuota {
  reserve(request: {
    tenant: string;
    input: number;
    output: number;
    longest: number;
    signal?: AbortSignal | undefined;
  }): Promise<{ output: number; settle(usage: FailedUsage): Promise<void> }>;
  inputBound(messages: readonly Message[], tools?: readonly Tool[]): number;
}

/** Whom an agent asks. `apiKey` in the clear; empty for a self-hosted server that wants none. */
export interface Target {
  readonly tenant: string;
  readonly llmConfig: LlmConfig;
  readonly apiKey: string;
}

export interface Asked {
  readonly messages: readonly Message[];
  readonly tools: readonly Tool[];
  readonly signal?: AbortSignal | undefined;
  /** Told the text piece by piece; left out: the answer is not streamed. */
  readonly onText?: ((text: string) => Promise<void> | void) | undefined;
}

/** Tokens that the provider reported, also for a call without an answer. */
export interface Reported {
  readonly inputTokens: number | undefined;
  readonly outputTokens: number | undefined;
}

export interface ModelCaller {
  /** One call; `report` hears of its tokens before it resolves or rejects. */
  call(target: Target, asked: Asked, report: (usage: Reported) => void): Promise<Answer>;
  /** The cap of an answer's tokens. */
  outputCap(config: LlmConfig): number;
}

export interface ModelCallerOptions {
  languageModels: LanguageModels;
  quota: SharedQuota;
  shared: { token: string | undefined; model: string; maxTokens: number };
  /** Milliseconds for one answer. */
  timeout: number;
  logger: FastifyBaseLogger;
}

export function createModelCaller(options: ModelCallerOptions): ModelCaller {
  const { languageModels, quota, shared, timeout, logger } = options;

  function outputCap({ provider, maxTokens = shared.maxTokens }: LlmConfig): number {
    return provider === 'shared' ? Math.min(maxTokens, shared.maxTokens) : maxTokens;
  }

  async function answerOf(call: ModelCall, onText: Asked['onText']): Promise<Answer> {
    if (onText === undefined) return await languageModels.generate(call);
    for await (const event of languageModels.stream(call)) {
      if (event.type === 'answer') return event.answer;
      await onText(event.text);
    }
    throw new Error('a stream ended without its answer');
  }

  async function ask(
    call: ModelCall,
    onText: Asked['onText'],
    report: (usage: Reported) => void,
    settle: (usage: FailedUsage) => Promise<void>,
  ): Promise<Answer> {
    // Whatever happens before the provider says otherwise, nobody knows what it has counted.
    let usage: FailedUsage = 'unknown';
    try {
      const answer = await answerOf(call, onText);
      usage = answer.usage;
      report(answer.usage);
      return answer;
    } catch (error) {
      if (error instanceof ProviderError) {
        usage = error.usage;
        report(error.reported);
      }
      throw error;
    } finally {
      await settle(usage);
    }
  }

  return {
    outputCap,

    async call({ tenant, llmConfig, apiKey }, { messages, tools, signal, onText }, report) {
      const { provider, model = '', temperature, baseUrl } = llmConfig;
      const maxTokens = outputCap(llmConfig);
      const common = { messages, tools, temperature, timeout, signal };
      if (provider !== 'shared') {
        const call = { ...common, provider, model, apiKey, baseUrl, maxTokens };
        return await ask(call, onText, report, async () => {});
      }
      const { token } = shared;
      if (token === undefined)
        throw new AnnalsError('service_unavailable', 'The service has no shared provider token.');
      const { output, settle } = await quota.reserve({
        tenant,
        input: quota.inputBound(messages, tools),
        output: maxTokens,
        longest: timeout,
        signal,
      });
      const call = { ...common, provider: 'openai' as const, model: shared.model, apiKey: token, maxTokens: output };
      return await ask(call, onText, report, settle).catch((error) => {
        if (error instanceof ProviderError && error.fault === 'key_refused') {
          logger.error('the provider refuses the shared token');
        }
        throw error;
      });
    },
  };
}
