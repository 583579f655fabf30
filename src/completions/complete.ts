import type { FastifyBaseLogger } from 'fastify';
import { AnnalsError } from '../errors.ts';
import {
  type FailedUsage,
  type LanguageModels,
  type Message,
  type ModelCall,
  ProviderError,
} from '../providers/port.ts';
import { failureOfCompletion, type TokenOwner } from './completion-failure.ts';
import { inputBound, type Quota } from './quota.ts';

/** Generates the text that goes on with a conversation; rejects with what the client is told. */
export type Complete = (
  tenant: string,
  messages: readonly Message[],
  signal: AbortSignal | undefined,
) => Promise<string>;

export interface CompleteOptions {
  languageModels: LanguageModels;
  quota: Quota;
  tokens: ProviderTokens;
  model: string;
  /** The cap on the output. */
  maxTokens: number;
  /** Milliseconds for the provider's answer. */
  timeout: number;
  logger: FastifyBaseLogger;
}

export interface ProviderTokens {
  /** Of the tenant; undefined where it has none. */
  own(tenant: string): Promise<string | undefined>;
  shared: string | undefined;
}

export function createComplete(options: CompleteOptions): Complete {
  const { languageModels, quota, tokens, model, maxTokens, timeout, logger } = options;

  async function call(
    owner: TokenOwner,
    request: Pick<ModelCall, 'apiKey' | 'messages' | 'maxTokens' | 'signal'>,
    settle: (usage: FailedUsage) => Promise<void>,
  ): Promise<string> {
    // Whatever happens before the provider says otherwise, nobody knows what it has counted.
    let usage: FailedUsage = 'unknown';
    try {
      const answer = await languageModels.generate({ provider: 'openai', model, timeout, ...request });
      usage = answer.usage;
      return answer.text;
    } catch (error) {
      if (!(error instanceof ProviderError)) throw error;
      usage = error.usage;
      if (error.fault === 'key_refused' && owner === 'shared') logger.error('the provider refuses the shared token');
      throw failureOfCompletion(error, owner);
    } finally {
      await settle(usage);
    }
  }

  return async (tenant, messages, signal) => {
    const own = await tokens.own(tenant);
    if (own !== undefined) {
      return await call('own', { apiKey: own, messages, maxTokens, signal }, async () => {});
    }
    const { shared } = tokens;
    if (shared === undefined) {
      throw new AnnalsError('service_unavailable', 'There is no provider token: set providerApiToken.');
    }
    const reservation = await quota.reserve({
      tenant,
      input: inputBound(messages),
      output: maxTokens,
      longest: timeout,
      signal,
    });
    const { output, settle } = reservation;
    return await call('shared', { apiKey: shared, messages, maxTokens: output, signal }, settle);
  };
}
