import type { ChatAnswer } from '../schemas.ts';
import { parseAnswer } from '../transport/answer-json.ts';
import { ApiError } from '../transport/api-error.ts';
import { type ApiRequest, type CallOptions, jsonBody, path } from '../transport/request.ts';
import type { Transport } from '../transport/transport.ts';
import { AnswerStream } from './answer-stream.ts';
import { completionTimeout } from './completions.ts';

export interface ChatMessage {
  readonly agentId: string;
  readonly message: string;
  /** A UUID. What was said in its session before is the context; left out: a new session. */
  readonly sessionId?: string | undefined;
}

/** The answer of an agent. */
export type ChatStream = AnswerStream<ChatAnswer>;

/** Conversations with agents. */
export class Chat {
  readonly #transport: Transport;
  readonly #path: string;

  constructor(transport: Transport, tenant: string) {
    this.#transport = transport;
    this.#path = path`/ai-service/${tenant}/agentic`;
  }

  /** Waits for the whole answer. Its `sessionId` goes on with the conversation. */
  async send(message: ChatMessage, options?: CallOptions): Promise<ChatAnswer> {
    const request = { ...this.#request('/chat', message), timeout: completionTimeout };
    const [answer] = await this.#transport.fetchJson<ChatAnswer[]>(request, options);
    if (answer === undefined) throw new ApiError('invalid_answer', 'The service answered without an answer.');
    return answer;
  }

  /**
   * The answer as it is written. The request goes out when the stream is read.
   *
   * @example
   * const stream = annals.chat.stream({ agentId: 'price-desk', message: 'Who changed the price of p-17?' });
   * for await (const text of stream) process.stdout.write(text);
   * const { sessionId } = await stream.answer();
   */
  stream(message: ChatMessage, options?: CallOptions): ChatStream {
    return new AnswerStream(() => this.#transport.stream(this.#request('/chat-stream', message), options));
  }

  /** Has a job answer. `annals.jobs.wait(jobId)` waits for it. */
  async queue(message: ChatMessage, options?: CallOptions): Promise<{ jobId: string; sessionId: string }> {
    const { text, headers } = await this.#transport.send(this.#request('/chat-async', message), options);
    const { jobId } = parseAnswer(text) as { jobId: string };
    return { jobId, sessionId: headers.get('session-id') ?? '' };
  }

  #request(operation: string, { sessionId, ...body }: ChatMessage): ApiRequest {
    const headers = { 'session-id': sessionId };
    return { method: 'POST', path: `${this.#path}${operation}`, headers, body: jsonBody(body) };
  }
}
