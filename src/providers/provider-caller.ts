import type { FastifyBaseLogger } from 'fastify';
import { AnnalsError } from '../core/errors.ts';
import type { CallTimes } from './deadline.ts';
import {
  type Answer,
  type FailedUsage,
  type LanguageModels,
  type Message,
  type ModelCall,
  type OnText,
  ProviderError,
  type Tool,
  type Usage,
} from './port.ts';

/** The part of the shared token's quota that a call needs. */
export interface SharedQuota {
  /**
   * Reserves tokens before a call. Waits where the call fits only after others have settled. Throws 403 quota_exceeded
   * where it can never fit, and 503 after 60 seconds.
   */
  reserve(request: QuotaRequest): Promise<Reservation>;
  /** Upper bound of a call's input in tokens. */
  inputBound(messages: readonly Message[], tools?: readonly Tool[]): number;
}

export interface QuotaRequest {
  readonly tenant: string;
  /** Upper bound of the input tokens, see `inputBound`. */
  readonly input: number;
  /** The max. output tokens that the caller wants. */
  readonly output: number;
  /** The max. duration of the call in milliseconds. A reservation that was sent lives longer. */
  readonly maxDuration: number;
  /** Cancels the wait. */
  readonly signal?: AbortSignal | undefined;
}

export interface Reservation {
  /** The max. output tokens that the call has to send. Near the end of the quota it is less than the caller wants. */
  readonly output: number;
  /**
   * To be called when the call is about to leave. False: it must not, because the reservation was given back meanwhile. Until
   * then the reservation is given back 30 seconds after its process died; from then on it is charged.
   */
  send(): Promise<boolean>;
  /**
   * Replaces the reserved tokens with the used ones. `none` returns all of them. `unknown` and a missing figure charge
   * the reserved tokens. Does not throw: a failed write to the database is tried again. Returns what is charged.
   */
  settle(usage: FailedUsage): Promise<Tokens>;
}

export interface Tokens {
  readonly input: number;
  readonly output: number;
}

/** What a call used: what the provider reported, and what the quota was charged; undefined for a call with an own key. */
export interface SpentUsage extends Usage {
  readonly charged: Tokens | undefined;
}

/** Callbacks that follow a call. */
export interface CallProgress {
  /** Receives each part of the text. Without it the answer is not streamed. */
  readonly onText?: OnText | undefined;
  /** Receives the tokens of a call that may have left, before it resolves or rejects. */
  readonly onUsage?: ((usage: SpentUsage) => void) | undefined;
}

/**
 * Makes one call of a provider, with the tenant's or the shared token. Rejects with ProviderError, or with AnnalsError
 * where the call was not sent.
 */
export interface ProviderCaller {
  /** The max. output tokens of a call with the shared token. */
  readonly sharedMaxTokens: number;
  /**
   * Calls the model of `own` with its key, and counts the tokens; the quota does not change. Without `own` it calls with the
   * service's shared token and model: reserves, calls and settles.
   */
  call(request: CallRequest, progress?: CallProgress): Promise<Answer>;
}

export interface CallRequest extends Pick<ModelCall, 'messages' | 'tools' | 'maxTokens' | 'temperature' | 'signal'> {
  readonly tenant: string;
  readonly own: Pick<ModelCall, 'provider' | 'model' | 'apiKey' | 'baseUrl'> | undefined;
}

export interface ProviderCallerOptions {
  languageModels: LanguageModels;
  quota: SharedQuota;
  shared: { token: string | undefined; model: string; maxTokens: number };
  /** Stores the tokens of a call with the tenant's own key. A figure that the provider did not report counts as 0. */
  countOwn: (tenant: string, used: Tokens) => Promise<void>;
  times: CallTimes;
  logger: FastifyBaseLogger;
}

export function createProviderCaller(options: ProviderCallerOptions): ProviderCaller {
  const { languageModels, quota, shared, countOwn, times, logger } = options;

  async function callAndSettle(
    call: ModelCall,
    { onText, onUsage }: CallProgress,
    settle: (usage: FailedUsage, reported: Usage) => Promise<Tokens | undefined>,
  ): Promise<Answer> {
    // Until the provider reports figures, nobody knows what it has counted.
    let usage: FailedUsage = 'unknown';
    let reported: Usage = { inputTokens: undefined, outputTokens: undefined };
    try {
      const answer = await languageModels.call(call, onText);
      usage = answer.usage;
      reported = answer.usage;
      return answer;
    } catch (error) {
      if (error instanceof ProviderError) {
        usage = error.usage;
        reported = usage === 'none' ? { inputTokens: 0, outputTokens: 0 } : error.reported;
      }
      throw error;
    } finally {
      const charged = await settle(usage, reported);
      onUsage?.({ ...reported, charged });
    }
  }

  async function callShared(request: Omit<CallRequest, 'own'>, progress: CallProgress): Promise<Answer> {
    const { tenant, maxTokens, ...content } = request;
    const { token: apiKey, model } = shared;
    if (apiKey === undefined) {
      throw new AnnalsError('service_unavailable', 'The service has no shared provider token.');
    }
    const { output, send, settle } = await quota.reserve({
      tenant,
      input: quota.inputBound(content.messages, content.tools),
      output: maxTokens,
      maxDuration: times.total,
      signal: content.signal,
    });
    /** Why the quota did not let the call leave, where the database failed. */
    let refusal: unknown;
    const beforeSend = async () => {
      const maySend = await send().catch((error: unknown) => {
        refusal = error;
        return false;
      });
      if (!maySend) throw new Error('the reservation is not there any more');
    };
    const call: ModelCall = { ...content, provider: 'openai', model, apiKey, maxTokens: output, times, beforeSend };
    try {
      return await callAndSettle(call, progress, settle);
    } catch (error) {
      if (refusal !== undefined) throw refusal;
      if (error instanceof ProviderError && error.fault === 'key_refused') {
        logger.error('the provider refuses the shared token');
      }
      throw error;
    }
  }

  return {
    sharedMaxTokens: shared.maxTokens,

    async call({ own, ...request }, progress = {}) {
      if (own === undefined) return await callShared(request, progress);
      const { tenant, ...content } = request;
      return await callAndSettle({ ...content, ...own, times }, progress, async (_, reported) => {
        const { inputTokens: input = 0, outputTokens: output = 0 } = reported;
        if (input > 0 || output > 0) await countOwn(tenant, { input, output });
        return undefined;
      });
    },
  };
}

/** Returns the answer if it has text. Throws ProviderError if it has none (contract 7). */
export function withText(answer: Answer, text = answer.text): Answer {
  if (text.trim() !== '') return answer;
  const fault = answer.finishReason === 'content-filter' ? 'content_filtered' : 'broken';
  throw new ProviderError(fault, answer.usage);
}
