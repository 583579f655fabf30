import { randomUUIDv7 } from 'node:crypto';
import type { FastifyBaseLogger } from 'fastify';
import { AnnalsError } from '../core/errors.ts';
import { ProgramReplaced } from '../core/package-folder.ts';
import type { CallLedger, InputBound, QuotaRequest, Reservation, Tokens } from './call-ledger.ts';
import type { CallEnd, CallOrigin, CallPrice, CallStart } from './call-record.ts';
import type { CallTimes } from './deadline.ts';
import { causeOf } from './failure-cause.ts';
import {
  type Answer,
  type LanguageModels,
  type ModelCall,
  type ModelSettings,
  type OnText,
  ProviderError,
  type Usage,
  type VendorHeaders,
} from './port.ts';

/** The provider's figures, and what was charged to quota or budgets; undefined for a call without a reservation. */
export interface SpentUsage extends Usage {
  readonly charged: Tokens | undefined;
}

/** Callbacks that follow a call. */
export interface CallProgress {
  /** Receives each part of the text. Left out: the answer is not streamed. */
  readonly onText?: OnText | undefined;
  /** Called when the provider has begun a stream with a successful status. */
  readonly onAnswering?: ((headers: VendorHeaders) => void) | undefined;
  /** Receives the tokens of a call that may have been sent, before it resolves or rejects. */
  readonly onUsage?: ((usage: SpentUsage) => void) | undefined;
}

/**
 * Reserves, calls, settles and records, with the tenant's or the shared token: the only path of a call. Rejects with
 * ProviderError, or with AnnalsError where the call was not sent.
 */
export interface ProviderCaller {
  /** The max. output tokens with the shared token, and of a call without a cap to which a budget applies. */
  readonly sharedMaxTokens: number;
  /**
   * Calls the model of `own` with its key: no quota, and no reservation without a budget. Without `own`, calls the
   * service's shared model with the shared token. Writes the record before it resolves or rejects.
   */
  call(request: CallRequest, progress?: CallProgress): Promise<Answer>;
  /**
   * Passes on a request that uses no tokens at its provider, with the tenant's key: no reservation and no record.
   * Rejects with ProviderError.
   */
  callFree(
    own: OwnModel,
    request: Required<Pick<ModelCall, 'passThrough'>> & Pick<ModelCall, 'signal'>,
  ): Promise<Answer>;
  /** Waits for running calls. */
  close(): Promise<void>;
}

export interface CallRequest
  extends Omit<ModelSettings, 'provider' | 'model'>,
    Pick<ModelCall, 'messages' | 'onReasoning' | 'onToolCall' | 'passThrough' | 'signal'> {
  /** Of a request that is passed through: upper bound of its input; undefined where it is unknown. */
  readonly inputBound?: InputBound | undefined;
  /** How many answers it asks for, each with its own cap; default: 1. */
  readonly answers?: number | undefined;
  /** Whether a setting changes the price of its tokens, so that the cost is unknown. */
  readonly isUnpriced?: boolean | undefined;
  /** Whether the vendor may cache for an hour, at its own price. Left out: if the request is passed through. */
  readonly mayCacheForHour?: boolean | undefined;
  readonly tenant: string;
  readonly origin: CallOrigin;
  /**
   * Whether an answer on the shared token is still read for a while after `signal` is aborted, so that the provider's
   * figures settle the quota. Otherwise, before the call is sent, and with an own key, the call ends immediately.
   */
  readonly drains?: boolean | undefined;
  readonly own: OwnModel | undefined;
}

/** A model called with the tenant's own key. */
export interface OwnModel
  extends Pick<ModelCall, 'provider' | 'model' | 'apiKey' | 'baseUrl'>,
    Pick<QuotaRequest, 'hasBudgets'> {}

export interface ProviderCallerOptions {
  languageModels: LanguageModels;
  ledger: CallLedger;
  shared: { token: string | undefined; model: string; maxTokens: number };
  times: CallTimes;
  /** The price of a model at a time in milliseconds since 1970. */
  findPrice: (model: Pick<ModelCall, 'provider' | 'model'>, at: number) => CallPrice | undefined;
  /** The clients through which a client was made. */
  makersOf: (tenant: string, clientId: string) => Promise<readonly string[]>;
  /** Milliseconds for which an answer with `drains` is read after its client has gone. */
  drain: number;
  /** Milliseconds since 1970. */
  now: () => number;
  logger: FastifyBaseLogger;
}

export function createProviderCaller(options: ProviderCallerOptions): ProviderCaller {
  const { languageModels, ledger, shared, findPrice, makersOf, times, drain, now, logger } = options;
  const underWay = new Set<Promise<Answer>>();

  async function begin(
    tenant: string,
    { makerId, ...origin }: CallOrigin,
    model: Pick<CallStart, 'token' | 'provider' | 'model'>,
    isUnpriced: boolean,
  ): Promise<CallStart> {
    const ofMaker = await makersOf(tenant, makerId ?? origin.clientId);
    const makers = makerId === undefined ? ofMaker : [...ofMaker, makerId];
    const at = now();
    const price = isUnpriced ? undefined : findPrice(model, at);
    return { ...origin, makers, ...model, id: randomUUIDv7(), at, price };
  }

  async function callAndSettle(
    call: ModelCall,
    { onText, onUsage, onAnswering }: CallProgress,
    settle: (end: CallEnd) => Promise<Tokens | undefined>,
  ): Promise<Answer> {
    const began = performance.now();
    const elapsed = () => Math.round(performance.now() - began);
    let firstTokenMs: number | undefined;
    const noteFirst = () => {
      firstTokenMs ??= elapsed();
    };
    const { onReasoning, onToolCall, passThrough } = call;
    const followed: ModelCall = {
      ...call,
      onAnswering,
      onReasoning: onReasoning && followedBy(noteFirst, onReasoning),
      onToolCall: onToolCall && followedBy(noteFirst, onToolCall),
      passThrough: passThrough && {
        ...passThrough,
        onText:
          passThrough.onText &&
          followedBy((_text, hasPart) => {
            if (hasPart) noteFirst();
          }, passThrough.onText),
      },
    };
    // Until the provider reports figures, its count is unknown.
    let end: Pick<CallEnd, 'usage' | 'finishReason' | 'cause'> = { usage: 'unknown', cause: 'cancelled' };
    let reported: Usage = { inputTokens: undefined, outputTokens: undefined };
    try {
      const answer = await languageModels.call(followed, onText && followedBy(noteFirst, onText));
      const { usage, finishReason } = answer;
      end = { usage, finishReason };
      reported = usage;
      return answer;
    } catch (error) {
      if (error instanceof ProviderError) {
        end = { usage: error.usage, cause: causeOf(error) };
        reported = error.usage === 'none' ? { inputTokens: 0, outputTokens: 0 } : error.reported;
      } else if (error instanceof ProgramReplaced) {
        // The request could not be written, so nothing was sent.
        end = { ...end, usage: 'none' };
        reported = { inputTokens: 0, outputTokens: 0 };
      }
      throw error;
    } finally {
      const charged = await settle({ ...end, reported, firstTokenMs, durationMs: elapsed() });
      onUsage?.({ ...reported, charged });
    }
  }

  /** With the tenant's own key or the shared token. */
  async function reserveAndCall(
    target: OwnModel & Pick<CallStart, 'token'>,
    {
      tenant,
      origin,
      drains = false,
      inputBound,
      answers = 1,
      isUnpriced = false,
      mayCacheForHour,
      ...content
    }: Omit<CallRequest, 'own'>,
    progress: CallProgress,
  ): Promise<Answer> {
    const { token, hasBudgets, ...model } = target;
    const { messages, tools, responseFormat, passThrough, maxTokens } = content;
    const isShared = token === 'shared';
    const begun = await begin(tenant, origin, { token, provider: model.provider, model: model.model }, isUnpriced);
    const call = { ...begun, mayCacheForHour: mayCacheForHour ?? passThrough !== undefined };
    const cap = maxTokens ?? shared.maxTokens;
    const request: QuotaRequest = {
      tenant,
      call,
      hasBudgets,
      input: passThrough === undefined ? ledger.inputBound(messages, tools, responseFormat) : inputBound,
      output: answers * (isShared ? Math.min(cap, shared.maxTokens) : cap),
      maxDuration: times.total,
      signal: content.signal,
    };
    /** Undefined where `send` refused the reservation. */
    const callReserved = async ({ output, send, settle }: Reservation): Promise<Answer | undefined> => {
      let mayHaveLeft = false;
      let isRefused = false;
      /** The error of `send`, where the database failed. */
      let refusal: unknown;
      const pause = () => (mayHaveLeft && isShared && drains ? drain : 0);
      const ending = abortedWith(content.signal, pause);
      const beforeSend = async () => {
        try {
          mayHaveLeft = await send();
        } catch (error) {
          refusal = error;
        }
        isRefused = !mayHaveLeft;
        // Observers must not blame the provider.
        if (isRefused) ending.abort();
        ending.signal.throwIfAborted();
      };
      const onUsage = (usage: SpentUsage) => {
        if (!isRefused) progress.onUsage?.(usage);
      };
      try {
        return await callAndSettle(
          { ...content, ...model, signal: ending.signal, maxTokens: Math.floor(output / answers), times, beforeSend },
          { ...progress, onUsage },
          settle,
        );
      } catch (error) {
        if (refusal !== undefined) throw refusal;
        if (isRefused) return undefined;
        if (isShared && error instanceof ProviderError && error.fault === 'key_refused') {
          logger.error('the provider refuses the shared token');
        }
        throw error;
      }
    };
    const leaving = ledger.reserveOnSend(request);
    const answered = leaving && (await callReserved(leaving));
    if (answered !== undefined) return answered;
    const reservation = await ledger.reserve(request);
    if (reservation === undefined) {
      return await callAndSettle({ ...content, ...model, times }, progress, async (end) => {
        await ledger.record(tenant, call, end);
        return undefined;
      });
    }
    const answer = await callReserved(reservation);
    if (answer === undefined) throw new ProviderError('unreachable', 'none');
    return answer;
  }

  async function callOneOf({ own, ...request }: CallRequest, progress: CallProgress): Promise<Answer> {
    if (own !== undefined) return await reserveAndCall({ ...own, token: 'own' }, request, progress);
    const { token: apiKey, model } = shared;
    if (apiKey === undefined) {
      throw new AnnalsError('service_unavailable', 'The service has no shared provider token.');
    }
    return await reserveAndCall({ provider: 'openai', model, apiKey, token: 'shared' }, request, progress);
  }

  function tracked(running: Promise<Answer>): Promise<Answer> {
    underWay.add(running);
    running.catch(() => {}).finally(() => underWay.delete(running));
    return running;
  }

  return {
    sharedMaxTokens: shared.maxTokens,

    call: (request, progress = {}) => tracked(callOneOf(request, progress)),

    callFree: ({ hasBudgets: _, ...model }, request) =>
      tracked(languageModels.call({ ...model, ...request, messages: [], maxTokens: undefined, times })),

    async close() {
      await Promise.allSettled([...underWay]);
    },
  };
}

/** Calls `note` before each part. */
function followedBy<Part extends unknown[]>(
  note: (...part: NoInfer<Part>) => void,
  read: (...part: Part) => Promise<void> | void,
) {
  return (...part: Part) => {
    note(...part);
    return read(...part);
  };
}

/** A controller aborted so many milliseconds after the signal. */
function abortedWith(signal: AbortSignal | undefined, pause: () => number): AbortController {
  const later = new AbortController();
  const follow = () => {
    const milliseconds = pause();
    if (milliseconds === 0) later.abort(signal?.reason);
    else setTimeout(() => later.abort(signal?.reason), milliseconds).unref();
  };
  if (signal?.aborted) follow();
  else signal?.addEventListener('abort', follow, { once: true });
  return later;
}

/** Returns the answer if it has text, otherwise throws ProviderError (contract 7). */
export function withText(answer: Answer, text = answer.text): Answer {
  if (text.trim() !== '') return answer;
  const fault = answer.finishReason === 'content-filter' ? 'content_filtered' : 'broken';
  throw new ProviderError(fault, answer.usage);
}
