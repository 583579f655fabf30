import { TimeSlice } from '../core/fairness/time-slice.ts';
import { type Adapter, usageFrom } from './adapter.ts';
import type { WholeAnswer } from './answer-reader.ts';
import { type CallDeadline, startDeadline } from './deadline.ts';
import { type HttpExchange, newExchange } from './http-exchange.ts';
import { type ModelCall, ProviderError, type Usage } from './port.ts';
import { failureOf } from './provider-failure.ts';
import type { Transport } from './transport.ts';

export interface ModelRequestOptions {
  readonly adapter: Pick<Adapter, 'answers' | 'usageIn' | 'usageOf' | 'faultOfRefusal'>;
  readonly transport: Pick<Transport, 'fetchFor'>;
  readonly streaming: boolean;
}

/** The one request of a call, from the start of its deadline to its end. */
export class ModelRequest {
  /** Sends the request, once; handed to the provider package where it writes the request. */
  readonly fetch: typeof fetch;
  readonly #adapter: ModelRequestOptions['adapter'];
  readonly #streaming: boolean;
  readonly #exchange: HttpExchange = newExchange();
  readonly #deadline: CallDeadline;
  readonly #slice = new TimeSlice();
  #readerFault: { readonly error: unknown } | undefined;

  constructor(
    { times, signal, beforeSend, onAnswering }: Pick<ModelCall, 'times' | 'signal' | 'beforeSend' | 'onAnswering'>,
    { adapter, transport, streaming }: ModelRequestOptions,
  ) {
    this.#adapter = adapter;
    this.#streaming = streaming;
    this.#deadline = startDeadline(times, signal);
    const options = { streaming, deadline: this.#deadline, adapter, beforeSend, onAnswering };
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
      throw error instanceof ProviderError ? error : failureOf(exchange, this.#deadline.reason(), this.#adapter);
    } finally {
      // Closes the connection when the reader has stopped early.
      this.#deadline.end(!this.#streaming && exchange.answered);
    }
  }
}
