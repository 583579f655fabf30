import { randomUUIDv7 } from 'node:crypto';
import type { FastifyBaseLogger } from 'fastify';
import { AnnalsError } from '../core/errors.ts';
import { ProgramReplaced } from '../core/own-part.ts';
import type { CallPrice } from './call-cost.ts';
import type { Asker, BegunCall, EndOfCall } from './call-record.ts';
import type { CallTimes } from './deadline.ts';
import { causeOf } from './failure-cause.ts';
import { memberOf } from './members.ts';
import {
  type Answer,
  type JsonFormat,
  type LanguageModels,
  type Message,
  type ModelCall,
  type ModelSettings,
  type OnText,
  ProviderError,
  type Tool,
  type Usage,
} from './port.ts';

/** Where calls are reserved, settled and recorded. */
export interface CallLedger {
  /**
   * Reserves what a call uses at most: of the quota with the shared token, and of budgets. Returns undefined for a call with an own
   * key to which no budget applies: it reserves nothing. Waits where the call fits only after others have settled. Throws 403
   * quota_exceeded where it can never fit, 503 after 60 seconds, and 400 where a budget cannot tell what the call costs at most.
   */
  reserve(request: QuotaRequest): Promise<Reservation | undefined>;
  /**
   * Writes the record of a call that reserved nothing, and counts its tokens, in one transaction with other calls of the tenant. Does
   * not throw: a failed write to the database is tried again.
   */
  record(tenant: string, call: BegunCall, end: EndOfCall): Promise<void>;
  inputBound(messages: readonly Message[], tools?: readonly Tool[], format?: JsonFormat): InputBound;
}

/** Upper bound of a call's input: tokens without images, and how many images there are. */
export interface InputBound {
  readonly tokens: number;
  readonly images: number;
}

export interface QuotaRequest {
  readonly tenant: string;
  /** The begin of the call's record. */
  readonly call: BegunCall;
  /** Upper bound of the input; undefined where nobody can tell. */
  readonly input: InputBound | undefined;
  /** Of a call with an own key: whether the tenant has budgets, read since the request came. Left out: the ledger asks. */
  readonly hasBudgets?: boolean | undefined;
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
   * Replaces the reserved tokens with the used ones, and writes the call's record with them. `none` returns all of them. `unknown`
   * and a missing figure charge the reserved tokens. Does not throw: a failed write to the database is tried again. Returns what
   * is charged.
   */
  settle(end: EndOfCall): Promise<Tokens>;
}

export interface Tokens {
  readonly input: number;
  readonly output: number;
}

/** What a call used: what the provider reported, and what the quota or budgets were charged; undefined for a call that reserved nothing. */
export interface SpentUsage extends Usage {
  readonly charged: Tokens | undefined;
}

/** Callbacks that follow a call. */
export interface CallProgress {
  /** Receives each part of the text. Without it the answer is not streamed. */
  readonly onText?: OnText | undefined;
  /** Called when the provider has begun to answer a stream with success. */
  readonly onAnswering?: (() => void) | undefined;
  /** Receives the tokens of a call that may have left, before it resolves or rejects. */
  readonly onUsage?: ((usage: SpentUsage) => void) | undefined;
}

/**
 * The one path of a call, whoever makes it: it reserves, calls, settles and records. With the tenant's or the shared token. Rejects
 * with ProviderError, or with AnnalsError where the call was not sent.
 */
export interface ProviderCaller {
  /** The max. output tokens of a call with the shared token, and of one without a cap of its own to which a budget applies. */
  readonly sharedMaxTokens: number;
  /**
   * Calls the model of `own` with its key; the quota does not change, and without a budget nothing is reserved. Without `own` it
   * calls with the service's shared token and model. The record is written before it resolves or rejects.
   */
  call(request: CallRequest, progress?: CallProgress): Promise<Answer>;
  /** Waits for the calls under way. */
  close(): Promise<void>;
}

export interface CallRequest
  extends Omit<ModelSettings, 'provider' | 'model'>,
    Pick<ModelCall, 'messages' | 'onToolCall' | 'passThrough' | 'signal'> {
  /** Of a request that is passed through: upper bound of its input; undefined where nobody can tell. */
  readonly inputBound?: InputBound | undefined;
  readonly tenant: string;
  readonly asker: Asker;
  /**
   * Whether an answer on the shared token is read on for a while after `signal` is aborted, so that the provider's figures settle the
   * quota. Without that, before the call has left, and on an own key, it ends at once.
   */
  readonly drains?: boolean | undefined;
  readonly own: OwnModel | undefined;
}

/** A model that is called with the tenant's own key. */
export interface OwnModel
  extends Pick<ModelCall, 'provider' | 'model' | 'apiKey' | 'baseUrl'>,
    Pick<QuotaRequest, 'hasBudgets'> {}

export interface ProviderCallerOptions {
  languageModels: LanguageModels;
  ledger: CallLedger;
  shared: { token: string | undefined; model: string; maxTokens: number };
  times: CallTimes;
  /** What a model costs at a moment, in milliseconds since 1970. */
  findPrice: (model: Pick<ModelCall, 'provider' | 'model'>, at: number) => CallPrice | undefined;
  /** Milliseconds that an answer which `drains` has after its client has gone. */
  drain: number;
  /** Milliseconds since 1970. */
  now: () => number;
  logger: FastifyBaseLogger;
}

export function createProviderCaller(options: ProviderCallerOptions): ProviderCaller {
  const { languageModels, ledger, shared, findPrice, times, drain, now, logger } = options;
  const underWay = new Set<Promise<Answer>>();

  function begin(asker: Asker, model: Pick<BegunCall, 'token' | 'provider' | 'model'>): BegunCall {
    const at = now();
    return { ...asker, ...model, id: randomUUIDv7(), at, price: findPrice(model, at) };
  }

  async function callAndSettle(
    call: ModelCall,
    { onText, onUsage, onAnswering }: CallProgress,
    settle: (end: EndOfCall) => Promise<Tokens | undefined>,
  ): Promise<Answer> {
    const began = performance.now();
    const elapsed = () => Math.round(performance.now() - began);
    let firstTokenMs: number | undefined;
    const noteFirst = () => {
      firstTokenMs ??= elapsed();
    };
    const { onToolCall, passThrough } = call;
    const followed: ModelCall = {
      ...call,
      onAnswering,
      onToolCall: onToolCall && followedBy(noteFirst, onToolCall),
      passThrough: passThrough && {
        ...passThrough,
        onEvent:
          passThrough.onEvent &&
          followedBy((event) => {
            if (isDelta(event)) noteFirst();
          }, passThrough.onEvent),
      },
    };
    // Until the provider reports figures, nobody knows what it has counted.
    let end: Pick<EndOfCall, 'usage' | 'finishReason' | 'cause'> = { usage: 'unknown', cause: 'cancelled' };
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
        // Nothing can write the request, so nothing was sent.
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
    target: OwnModel & Pick<BegunCall, 'token'>,
    { tenant, asker, drains = false, inputBound, ...content }: Omit<CallRequest, 'own'>,
    progress: CallProgress,
  ): Promise<Answer> {
    const { token, hasBudgets, ...model } = target;
    const { messages, tools, responseFormat, passThrough, maxTokens } = content;
    const isShared = token === 'shared';
    const call = begin(asker, { token, provider: model.provider, model: model.model });
    const reservation = await ledger.reserve({
      tenant,
      call,
      hasBudgets,
      input: passThrough === undefined ? ledger.inputBound(messages, tools, responseFormat) : inputBound,
      output: isShared ? Math.min(maxTokens ?? shared.maxTokens, shared.maxTokens) : (maxTokens ?? shared.maxTokens),
      maxDuration: times.total,
      signal: content.signal,
    });
    if (reservation === undefined) {
      return await callAndSettle({ ...content, ...model, times }, progress, async (end) => {
        await ledger.record(tenant, call, end);
        return undefined;
      });
    }
    const { output, send, settle } = reservation;
    let mayHaveLeft = false;
    /** Why the reservation did not let the call leave, where the database failed. */
    let refusal: unknown;
    const beforeSend = async () => {
      const maySend = await send().catch((error: unknown) => {
        refusal = error;
        return false;
      });
      if (!maySend) throw new Error('the reservation is not there any more');
      mayHaveLeft = true;
    };
    const pause = () => (mayHaveLeft ? drain : 0);
    const signal =
      isShared && drains && content.signal !== undefined ? abortedLater(content.signal, pause) : content.signal;
    try {
      return await callAndSettle(
        { ...content, ...model, signal, maxTokens: output, times, beforeSend },
        progress,
        settle,
      );
    } catch (error) {
      if (refusal !== undefined) throw refusal;
      if (isShared && error instanceof ProviderError && error.fault === 'key_refused') {
        logger.error('the provider refuses the shared token');
      }
      throw error;
    }
  }

  async function callOneOf({ own, ...request }: CallRequest, progress: CallProgress): Promise<Answer> {
    if (own !== undefined) return await reserveAndCall({ ...own, token: 'own' }, request, progress);
    const { token: apiKey, model } = shared;
    if (apiKey === undefined) {
      throw new AnnalsError('service_unavailable', 'The service has no shared provider token.');
    }
    return await reserveAndCall({ provider: 'openai', model, apiKey, token: 'shared' }, request, progress);
  }

  return {
    sharedMaxTokens: shared.maxTokens,

    call(request, progress = {}) {
      const running = callOneOf(request, progress);
      underWay.add(running);
      running.catch(() => {}).finally(() => underWay.delete(running));
      return running;
    },

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

/** Whether an event of a stream that is passed through has a part of the answer. */
function isDelta(event: object): boolean {
  return String(memberOf(event, 'type')).endsWith('.delta');
}

/** A signal that is aborted so many milliseconds after another one, and at once with 0. */
function abortedLater(signal: AbortSignal, pause: () => number): AbortSignal {
  const later = new AbortController();
  const follow = () => {
    const milliseconds = pause();
    if (milliseconds === 0) later.abort(signal.reason);
    else setTimeout(() => later.abort(signal.reason), milliseconds).unref();
  };
  if (signal.aborted) follow();
  else signal.addEventListener('abort', follow, { once: true });
  return later.signal;
}

/** Returns the answer if it has text. Throws ProviderError if it has none (contract 7). */
export function withText(answer: Answer, text = answer.text): Answer {
  if (text.trim() !== '') return answer;
  const fault = answer.finishReason === 'content-filter' ? 'content_filtered' : 'broken';
  throw new ProviderError(fault, answer.usage);
}
