import { finish, finishInSlices, type Steps } from '../json/steps.ts';
import type { TokenProvider } from './access-tokens.ts';
import { parseAnswer } from './answer-json.ts';
import { ApiError } from './api-error.ts';
import { type Attempt, openStream, readAnswer } from './attempt.ts';
import { randomId } from './random-id.ts';
import type { Answer, ApiRequest, CallOptions, StreamedAnswer } from './request.ts';
import { delayBeforeRetry, type RetryLimits, repeatOf } from './retry.ts';
import { sleep } from './waiting.ts';

export interface TransportOptions extends RetryLimits {
  /** Without a slash at its end. */
  readonly baseUrl: string;
  readonly tokens: TokenProvider;
  /** Milliseconds that an attempt has. */
  readonly timeout: number;
  readonly fetch: typeof fetch;
  /** Waited for between two slices of the reading of a long answer. */
  readonly pause?: (() => Promise<void>) | undefined;
}

/** Sends requests with an access token, repeats them where that is safe, and makes an ApiError of what fails. */
export class Transport {
  readonly #options: TransportOptions;

  constructor(options: TransportOptions) {
    this.#options = options;
  }

  /** The same for another address, with the same access tokens. */
  at(baseUrl: string): Transport {
    return new Transport({ ...this.#options, baseUrl });
  }

  /** Sends a request and reads the answer. Throws ApiError, or the reason of the caller's signal. */
  async send(request: ApiRequest, options?: CallOptions): Promise<Answer> {
    return await this.#repeatedly(request, options, readAnswer);
  }

  /**
   * Sends a request and parses the answer. The service's document says what an answer holds, and a test of this
   * repository holds the service to it.
   */
  async fetchJson<Body>(request: ApiRequest, options?: CallOptions): Promise<Body> {
    return parseAnswer((await this.send(request, options)).text) as Body;
  }

  /** Sends a request and hands over the body as it comes. Only what fails before its first byte is repeated. */
  async stream(request: ApiRequest, options?: CallOptions): Promise<StreamedAnswer> {
    return await this.#repeatedly(request, options, openStream);
  }

  /** Reads an answer in steps, with pauses if the caller has given the option `pause`. */
  async read<Result>(steps: Steps<Result>, { signal }: CallOptions = {}): Promise<Result> {
    const { pause } = this.#options;
    if (pause === undefined) return finish(steps);
    const giveWay = async () => {
      await pause();
      signal?.throwIfAborted();
    };
    // Pauses first: the runtime has just joined the text of a long answer, which takes time.
    await giveWay();
    return await finishInSlices(steps, giveWay);
  }

  async #repeatedly<Result>(
    request: ApiRequest,
    { signal, timeout = request.timeout, maxRetries = this.#options.maxRetries }: CallOptions = {},
    run: (attempt: Attempt) => Promise<Result>,
  ): Promise<Result> {
    const { fetch, baseUrl, maxRetryDelay, tokens } = this.#options;
    const { method, repeat = repeatOf(method), anonymous = false } = request;
    const common = {
      fetch,
      baseUrl,
      request,
      signal,
      requestId: randomId(),
      timeout: timeout ?? this.#options.timeout,
    };
    const limits = { maxRetries, maxRetryDelay };
    let mayRenew = !anonymous;
    for (let number = 1; ; number += 1) {
      signal?.throwIfAborted();
      const token = anonymous ? undefined : await tokens.get(signal);
      try {
        return await run({ ...common, token, number });
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        if (mayRenew && error.status === 401 && tokens.forget(token)) {
          mayRenew = false;
          continue;
        }
        const delay = delayBeforeRetry(error, { attempt: number, repeat, limits });
        if (delay === undefined) throw error;
        await sleep(delay, signal);
      }
    }
  }
}
