import { serverSentEvents } from '../streams/server-sent-events.ts';
import { parseAnswer } from '../transport/answer-json.ts';
import { ApiError, isRecord, readErrorForm } from '../transport/api-error.ts';
import type { StreamedAnswer } from '../transport/request.ts';

/**
 * An answer as it is written: `for await` yields its parts. Leaving the loop ends the answer. A stream that breaks off
 * is an ApiError, and never a short answer.
 */
export class AnswerStream<Answer> implements AsyncIterable<string> {
  readonly #parts: AsyncGenerator<string, void, undefined>;
  #answer: Answer | undefined;
  #requestId: string | undefined;

  constructor(open: () => Promise<StreamedAnswer>) {
    this.#parts = this.#read(open);
  }

  /** A stream can be read once. */
  [Symbol.asyncIterator](): AsyncGenerator<string, void, undefined> {
    return this.#parts;
  }

  /** Under this id the service logs the request. Known once the answer begins. */
  get requestId(): string | undefined {
    return this.#requestId;
  }

  /** Reads what is left, and returns the whole answer. */
  async answer(): Promise<Answer> {
    for await (const _ of this.#parts);
    if (this.#answer === undefined) throw new Error('The stream was left before its end, so there is no answer.');
    return this.#answer;
  }

  async *#read(open: () => Promise<StreamedAnswer>): AsyncGenerator<string, void, undefined> {
    const { body, headers } = await open();
    const requestId = headers.get('x-request-id') ?? undefined;
    this.#requestId = requestId;
    for await (const { event, data } of serverSentEvents(body)) {
      const content = parseAnswer(data);
      if (event === 'token' && isRecord(content) && typeof content.text === 'string') yield content.text;
      if (event === 'error') throw errorOfEvent(content, requestId);
      if (event === 'done') {
        this.#answer = content as Answer;
        return;
      }
    }
    throw new ApiError('connection_failed', 'The stream ended before the answer did.', { requestId });
  }
}

/** An error after the first part cannot be a status: it is an event with the error message. */
function errorOfEvent(content: unknown, requestId: string | undefined): ApiError {
  const told = isRecord(content) ? content : {};
  const status = typeof told.status === 'number' ? told.status : undefined;
  const retryAfter = typeof told.retryAfter === 'number' ? told.retryAfter : undefined;
  const { type, message, details } = readErrorForm(content) ?? { type: 'unknown', message: 'The answer broke off.' };
  return new ApiError(type, message, { status, details, retryAfter, requestId });
}
