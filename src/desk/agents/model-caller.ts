import type { Answer, Message, Tool } from '../../providers/port.ts';
import type { CallProgress, ProviderCaller, SpentUsage } from '../../providers/provider-caller.ts';
import { addressOf, isSelfHosted, type LlmConfig } from './llm-config.ts';

/** The model that an agent calls. `apiKey` is plain text, empty for a self-hosted server without a key. */
export interface Target {
  readonly tenant: string;
  readonly clientId: string;
  readonly agentId: string;
  readonly llmConfig: LlmConfig;
  readonly apiKey: string;
}

export interface ModelPrompt {
  readonly messages: readonly Message[];
  readonly tools: readonly Tool[];
  readonly signal?: AbortSignal | undefined;
  /** Receives each part of the text. Left out: the answer is not streamed. */
  readonly onText?: CallProgress['onText'];
}

export interface ModelCaller {
  /** Makes one call. `report` receives the call's tokens before the promise settles, if the call was sent. */
  call(target: Target, prompt: ModelPrompt, report: (usage: SpentUsage) => void): Promise<Answer>;
  /** The max. tokens of an answer. */
  outputCap(config: LlmConfig): number;
}

/** Calls the model of the agent's configuration. */
export function createModelCaller(caller: ProviderCaller): ModelCaller {
  function outputCap({ provider, maxTokens = caller.sharedMaxTokens }: LlmConfig): number {
    return provider === 'shared' ? Math.min(maxTokens, caller.sharedMaxTokens) : maxTokens;
  }

  return {
    outputCap,

    async call({ tenant, clientId, agentId, llmConfig, apiKey }, { messages, tools, signal, onText }, report) {
      const { provider, model = '', temperature } = llmConfig;
      const maxTokens = outputCap(llmConfig);
      const own =
        provider === 'shared'
          ? undefined
          : isSelfHosted(provider)
            ? { provider: 'self_hosted' as const, baseUrl: addressOf(llmConfig), model, apiKey }
            : { provider, model, apiKey };
      const origin = { operation: 'chat', clientId, agentId } as const;
      const content = { messages, tools, temperature, maxTokens, signal };
      return await caller.call({ tenant, origin, own, ...content }, { onText, onUsage: report });
    },
  };
}
