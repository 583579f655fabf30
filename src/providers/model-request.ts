import { TimeSlice } from '../core/fairness/time-slice.ts';
import { type Adapter, usageFrom } from './adapter.ts';
import type { WholeAnswer } from './answer-reader.ts';
import { type CallDeadline, startDeadline } from './deadline.ts';
import { type AnswerReading, type HttpExchange, newExchange, type PassingReader } from './http-exchange.ts';
import { parsed } from './members.ts';
import {
  type FailedUsage,
  type ModelCall,
  ProviderError,
  type ProviderFault,
  type Usage,
  type VendorHeaders,
} from './port.ts';
import type { Transport } from './transport.ts';

export interface ModelRequestOptions {
  readonly adapter: Figures;
  readonly transport: Pick<Transport, 'fetchFor'>;
  readonly streaming: boolean;
  readonly reader: AnswerReading;
}

/** How a vendor's figures and refusals are read. */
type Figures = Pick<Adapter, 'usageIn' | 'usageOf' | 'faultOfRefusal'>;

/** The one request of a call, from the start of its deadline to its end. */
export class ModelRequest {
  /** Sends the request, once; handed to the provider package where it writes the request. */
  readonly fetch: typeof fetch;
  readonly #adapter: Figures;
  readonly #passes: PassingReader | undefined;
  readonly #streaming: boolean;
  readonly #exchange: HttpExchange = newExchange();
  readonly #deadline: CallDeadline;
  readonly #slice = new TimeSlice();
  #readerFault: { readonly error: unknown } | undefined;

  constructor(
    { times, signal, beforeSend, onAnswering }: Pick<ModelCall, 'times' | 'signal' | 'beforeSend' | 'onAnswering'>,
    { adapter, transport, streaming, reader }: ModelRequestOptions,
  ) {
    this.#adapter = adapter;
    this.#passes = reader.passes;
    this.#streaming = streaming;
    this.#deadline = startDeadline(times, signal);
    const options = { streaming, deadline: this.#deadline, reader, beforeSend, onAnswering };
    this.fetch = transport.fetchFor(this.#exchange, options);
  }

  /** Aborted at the deadline, by the caller, and at the end of the request. */
  get signal(): AbortSignal {
    return this.#deadline.signal;
  }

  /** A non-streamed answer read by our own reader. */
  get wholeAnswer(): WholeAnswer | undefined {
    return this.#exchange.wholeAnswer;
  }

  /** The headers that are passed on. */
  get headers(): VendorHeaders {
    return this.#exchange.headers;
  }

  /** The vendor's figures so far. */
  get usage(): Usage {
    return usageFrom(this.#adapter, this.#exchange.usage);
  }

  /**
   * Passes a part of a stream to the caller, in time slices shared with other tenants. If the caller throws, the call
   * rejects with that.
   */
  async pass(part: () => Promise<void> | void): Promise<void> {
    // A rest rejects once the client has gone. The answer may still be read, for the quota.
    if (this.#slice.isDue) await this.#slice.rest().catch(() => {});
    try {
      await part();
    } catch (error) {
      this.#readerFault = { error };
      throw error;
    }
  }

  /** Runs the call and ends its deadline. Rejects with ProviderError, or with what the caller threw. */
  async run<Result>(call: () => Promise<Result>): Promise<Result> {
    const exchange = this.#exchange;
    try {
      const result = await call();
      if (exchange.cut || exchange.refusal !== undefined) throw new Error('the stream was cut, or it reports an error');
      return result;
    } catch (error) {
      if (this.#readerFault !== undefined) throw this.#readerFault.error;
      throw error instanceof ProviderError
        ? error
        : failureOf(exchange, this.#deadline.reason(), this.#adapter, this.#passes);
    } finally {
      // Closes the connection when the reader has stopped early.
      this.#deadline.end(!this.#streaming && exchange.answered);
    }
  }
}

/**
 * The failure of a call without an answer, derived from the HTTP exchange alone: errors of the packages may contain the
 * provider's text.
 */
function failureOf(
  exchange: HttpExchange,
  stopped: 'timeout' | 'aborted' | undefined,
  adapter: Figures,
  passes: PassingReader | undefined,
): ProviderError {
  const { refusal, headers } = exchange;
  const counted = usageFrom(adapter, exchange.usage);
  if (refusal !== undefined) {
    const { status, hasBegun } = refusal;
    const body = parsed(refusal.body);
    const fault = adapter.faultOfRefusal?.(status, body) ?? faultOfStatus(status);
    return new ProviderError(fault, usageOfRefusal(refusal, usageFrom(adapter, adapter.usageIn(body))), {
      // The status of an answer that had begun was a success.
      ...(hasBegun ? { reported: counted } : { status }),
      retryAfter: readRetryAfter(refusal.retryAfter),
      headers,
      // Those may show a part of the key.
      vendor: status === 401 || status === 403 ? undefined : passes?.errorIn(refusal.body),
    });
  }
  // The package sent nothing, because the vendor accepts no such request.
  if (exchange.requests === 0 && stopped === undefined) return new ProviderError('request_refused', 'none');
  if (!exchange.left) return new ProviderError(stopped ?? 'unreachable', 'none');
  if (!exchange.answered || exchange.cut || stopped !== undefined) {
    const { isForeign, hasLastUsage } = exchange;
    const usage = hasLastUsage && isComplete(counted) ? counted : 'unknown';
    return new ProviderError(stopped ?? 'broken', usage, { reported: counted, isForeign });
  }
  // A complete but unusable answer can have figures, and they count (contract 7).
  const { status, isForeign } = exchange;
  return new ProviderError('broken', isComplete(counted) ? counted : 'unknown', {
    status,
    reported: counted,
    isForeign,
  });
}

function faultOfStatus(status: number): ProviderFault {
  if (status === 401 || status === 403) return 'key_refused';
  if (status === 404) return 'model_unknown';
  if (status === 429) return 'rate_limited';
  if (status === 413) return 'context_length_exceeded';
  return status >= 400 && status <= 499 ? 'request_refused' : 'unavailable';
}

/**
 * A refusal without figures costs nothing. Not a refusal: 502, 504 and 52x, where a proxy lost an answer that the
 * provider may have produced, and an error in an answer that had begun.
 */
function usageOfRefusal({ status, hasBegun }: NonNullable<HttpExchange['refusal']>, usage: Usage): FailedUsage {
  if (isComplete(usage)) return usage;
  return hasBegun || status === 502 || status === 504 || (status >= 520 && status <= 527) ? 'unknown' : 'none';
}

function isComplete({ inputTokens, outputTokens }: Usage): boolean {
  return inputTokens !== undefined && outputTokens !== undefined;
}

/** Accepts seconds or an HTTP date (RFC 9110, 10.2.3), so no other text of the provider passes. */
function readRetryAfter(value: string | undefined): string | undefined {
  if (value === undefined) return undefined;
  if (/^\d{1,9}$/.test(value)) return value;
  return /^\w{3}, \d{2} \w{3} \d{4} \d{2}:\d{2}:\d{2} GMT$/.test(value) ? value : undefined;
}
