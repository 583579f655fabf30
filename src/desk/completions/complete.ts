import type { FastifyBaseLogger } from 'fastify';
import { AnnalsError, type ErrorDetail } from '../../core/errors.ts';
import { errorOfCall } from '../../providers/call-error.ts';
import { type Answer, type Message, ProviderError, type Usage } from '../../providers/port.ts';
import { type CallProgress, type OwnModel, type ProviderCaller, withText } from '../../providers/provider-caller.ts';

export interface Completion {
  readonly text: string;
  /** Undefined for a result stored before results had it. */
  readonly usage: Pick<Usage, 'inputTokens' | 'outputTokens'> | undefined;
  readonly finishReason: 'stop' | 'length' | 'content_filter' | 'other';
}

/** Generates the continuation of a conversation. Rejects with the error for the client. */
export type Complete = (
  caller: { readonly tenant: string; readonly clientId: string; readonly user?: string | undefined },
  messages: readonly Message[],
  options: {
    /** Aborted when the client has gone. */
    readonly signal: AbortSignal | undefined;
    /** Left out: the answer is not streamed. */
    readonly stream?: Pick<CallProgress, 'onText' | 'onAnswering'> | undefined;
  },
) => Promise<Completion>;

export interface CompleteOptions {
  caller: ProviderCaller;
  tokens: ProviderTokens;
  model: string;
  logger: FastifyBaseLogger;
}

export interface ProviderTokens {
  /** The tenant's own token and its configuration item; undefined where the tenant has none. */
  own(tenant: string): Promise<OwnToken | undefined>;
  shared: string | undefined;
}

interface OwnToken extends Pick<OwnModel, 'hasBudgets'> {
  readonly item: string;
  readonly token: string;
}

export function createComplete({ caller, tokens, model, logger }: CompleteOptions): Complete {
  const maxTokens = caller.sharedMaxTokens;

  return async ({ tenant, clientId, user }, messages, { signal, stream }) => {
    const own = await tokens.own(tenant);
    if (own === undefined && tokens.shared === undefined) {
      throw new AnnalsError('service_unavailable', 'There is no provider token: set providerApiToken.');
    }
    const origin = { operation: 'completion', clientId, user } as const;
    try {
      const ownModel = own && { provider: 'openai' as const, model, apiKey: own.token, hasBudgets: own.hasBudgets };
      const drains = stream !== undefined;
      const call = { tenant, origin, own: ownModel, messages, maxTokens, signal, drains };
      const answer = withText(await caller.call(call, stream));
      const finishReason = finishReasonOf(answer);
      if (finishReason === 'length' || finishReason === 'content_filter') {
        logger.warn({ tenant, finishReason }, 'a completion was cut off or filtered');
      }
      const { inputTokens, outputTokens } = answer.usage;
      return { text: answer.text, finishReason, usage: { inputTokens, outputTokens } };
    } catch (error) {
      throw error instanceof ProviderError ? failureOfCompletion(error, own?.item) : error;
    }
  };
}

function finishReasonOf({ finishReason }: Answer): Completion['finishReason'] {
  if (finishReason === 'content-filter') return 'content_filter';
  return finishReason === 'tool-calls' ? 'other' : finishReason;
}

/**
 * The client's error for a call without an answer. For a refused token it names the token's configuration item; `item`
 * is undefined for the shared token.
 */
function failureOfCompletion(error: ProviderError, item: string | undefined): AnnalsError {
  if (error.fault !== 'key_refused') return errorOfCall(error);
  return new AnnalsError('validation_violation', 'The provider refuses the token.', {
    cause: error,
    details: [refusedKey(item)],
  });
}

/** Whose key the provider refuses. `item` is undefined for the shared token. */
export function refusedKey(item: string | undefined): ErrorDetail {
  return item === undefined
    ? { field: 'providerApiToken', message: 'is not set, and the provider refuses the shared token of the service' }
    : { field: item, message: 'is refused by the provider' };
}
