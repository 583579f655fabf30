import type { Completion, CompletionRequest, CompletionUsage } from '../schemas.ts';
import { randomId } from '../transport/random-id.ts';
import { type CallOptions, jsonBody, path } from '../transport/request.ts';
import type { Transport } from '../transport/transport.ts';
import { AnswerStream } from './answer-stream.ts';

export interface CompletionOptions extends CallOptions {
  /**
   * Makes the call safe to repeat for 24 hours: the service answers the same key and body with the same result, and the
   * tokens are spent once. Left out: a random one, kept over the retries of this call; of a stream none.
   */
  readonly idempotencyKey?: string | undefined;
}

/** What a stream ends with. A figure that the provider did not tell is left out. */
export interface StreamedCompletion extends Completion {
  readonly usage?: { readonly inputTokens?: number; readonly outputTokens?: number };
}

/** Milliseconds that an attempt has: the service itself gives a provider 10 minutes. */
export const completionTimeout = 660_000;

/** Text from a chat history. */
export class Completions {
  readonly #transport: Transport;
  readonly #path: string;

  constructor(transport: Transport, tenant: string) {
    this.#transport = transport;
    this.#path = path`/ai-service/${tenant}/completions`;
  }

  /**
   * @example
   * const { result } = await annals.completions.create({ messages: [{ role: 'USER', content: 'Hello' }] });
   */
  async create(
    request: CompletionRequest,
    { idempotencyKey = randomId(), ...options }: CompletionOptions = {},
  ): Promise<Completion> {
    const headers = { 'idempotency-key': idempotencyKey };
    const body = jsonBody(request);
    return await this.#transport.fetchJson(
      { method: 'POST', path: this.#path, headers, body, repeat: 'always', timeout: completionTimeout },
      options,
    );
  }

  /**
   * The text as it is written. The request goes out when the stream is read. With an `idempotencyKey` the service reads
   * the answer to its end even where the loop is left, and a repeat has the whole answer at once.
   *
   * @example
   * const stream = annals.completions.stream({ messages: [{ role: 'USER', content: 'Hello' }] });
   * for await (const text of stream) process.stdout.write(text);
   * const { finishReason, usage } = await stream.answer();
   */
  stream(
    request: CompletionRequest,
    { idempotencyKey, ...options }: CompletionOptions = {},
  ): AnswerStream<StreamedCompletion> {
    const headers = { 'idempotency-key': idempotencyKey };
    const call = { method: 'POST', path: `${this.#path}-stream`, headers, body: jsonBody(request) } as const;
    return new AnswerStream(() => this.#transport.stream(call, options));
  }

  /** What the quota of the service's shared token has left, and whose token is in use. */
  async usage(options?: CallOptions): Promise<CompletionUsage> {
    return await this.#transport.fetchJson({ method: 'GET', path: `${this.#path}/usage` }, options);
  }
}
