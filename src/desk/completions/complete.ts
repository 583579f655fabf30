import type { FastifyBaseLogger } from 'fastify';
import { AnnalsError } from '../../core/errors.ts';
import { type Answer, type Message, ProviderError } from '../../providers/port.ts';
import { type ProviderCaller, withText } from '../../providers/provider-caller.ts';
import { failureOfCompletion } from './completion-failure.ts';

export interface Completion {
  readonly text: string;
  readonly finishReason: 'stop' | 'length' | 'content_filter' | 'other';
}

/** Generates the text that continues a conversation. Rejects with the error for the client. */
export type Complete = (
  tenant: string,
  messages: readonly Message[],
  signal: AbortSignal | undefined,
) => Promise<Completion>;

export interface CompleteOptions {
  caller: ProviderCaller;
  tokens: ProviderTokens;
  model: string;
  logger: FastifyBaseLogger;
}

export interface ProviderTokens {
  /** The tenant's own token, and the configuration item that it is from; undefined where the tenant has none. */
  own(tenant: string): Promise<{ readonly item: string; readonly token: string } | undefined>;
  shared: string | undefined;
}

export function createComplete({ caller, tokens, model, logger }: CompleteOptions): Complete {
  const maxTokens = caller.sharedMaxTokens;

  return async (tenant, messages, signal) => {
    const own = await tokens.own(tenant);
    if (own === undefined && tokens.shared === undefined) {
      throw new AnnalsError('service_unavailable', 'There is no provider token: set providerApiToken.');
    }
    try {
      const answer = withText(
        own === undefined
          ? await caller.callShared({ tenant, messages, maxTokens, signal })
          : await caller.callOwn({
              tenant,
              provider: 'openai',
              model,
              apiKey: own.token,
              messages,
              maxTokens,
              signal,
            }),
      );
      const finishReason = finishReasonOf(answer);
      if (finishReason === 'length' || finishReason === 'content_filter') {
        logger.warn({ tenant, finishReason }, 'a completion was cut off or filtered');
      }
      return { text: answer.text, finishReason };
    } catch (error) {
      throw error instanceof ProviderError ? failureOfCompletion(error, own?.item) : error;
    }
  };
}

function finishReasonOf({ finishReason }: Answer): Completion['finishReason'] {
  if (finishReason === 'content-filter') return 'content_filter';
  return finishReason === 'tool-calls' ? 'other' : finishReason;
}
