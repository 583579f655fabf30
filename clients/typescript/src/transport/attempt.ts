import { ApiError, errorOfAnswer } from './api-error.ts';
import { AttemptLimit } from './attempt-limit.ts';
import { type Answer, type ApiRequest, initOf, type StreamedAnswer, urlOf } from './request.ts';

export interface Attempt {
  readonly fetch: typeof fetch;
  readonly baseUrl: string;
  readonly request: ApiRequest;
  readonly token: string | undefined;
  readonly requestId: string;
  /** From 1. */
  readonly number: number;
  /** Milliseconds. */
  readonly timeout: number;
  readonly signal: AbortSignal | undefined;
}

/** Sends a request once and reads the whole answer. Throws ApiError, or the reason of the caller's signal. */
export async function readAnswer(attempt: Attempt): Promise<Answer> {
  return await within(attempt, async (limit) => {
    const response = await send(attempt, limit);
    const { ok, status, headers } = response;
    const text = await response.text();
    limit.end();
    if (!ok && attempt.request.isResult?.(status, text) !== true) throw errorOf(response, text, attempt);
    return { status, headers, text };
  });
}

/**
 * Sends a request once and hands over the body as it comes. The time limit then holds for each silence. A body that
 * breaks off is an ApiError of its reader.
 */
export async function openStream(attempt: Attempt): Promise<StreamedAnswer> {
  return await within(attempt, async (limit) => {
    const response = await send(attempt, limit);
    const { ok, headers } = response;
    if (!ok) throw errorOf(response, await response.text(), attempt);
    return { headers, body: watchedBody(response.body, attempt, limit) };
  });
}

async function send(attempt: Attempt, limit: AttemptLimit): Promise<Response> {
  const { baseUrl, request } = attempt;
  // The browser's fetch throws if it is called as a method of another object, so it is called as a plain function.
  const { fetch } = attempt;
  return await fetch(urlOf(baseUrl, request), { ...initOf(request, attempt), signal: limit.signal });
}

function errorOf(response: Response, text: string, { requestId, number }: Attempt): ApiError {
  return errorOfAnswer(response, text, { requestId, attempts: number });
}

async function within<Result>(attempt: Attempt, run: (limit: AttemptLimit) => Promise<Result>): Promise<Result> {
  const limit = new AttemptLimit(attempt.timeout, attempt.signal);
  try {
    return await run(limit);
  } catch (error) {
    limit.end();
    throw failureOf(error, attempt, limit);
  }
}

function failureOf(
  error: unknown,
  { baseUrl, signal, timeout, requestId, number }: Attempt,
  limit: AttemptLimit,
): unknown {
  if (error instanceof ApiError) return error;
  if (signal?.aborted === true) return signal.reason;
  const options = { cause: error, requestId, attempts: number };
  if (limit.expired) return new ApiError('timeout', `The service did not answer within ${timeout} ms.`, options);
  return new ApiError(
    'connection_failed',
    `The connection to the service failed: ${causeOf(error)}${hint(baseUrl)}`,
    options,
  );
}

/** A browser does not tell a page that its origin is not allowed. The service's own pages always are. */
function hint(baseUrl: string): string {
  const { document, location } = globalThis;
  const isElsewhere = document !== undefined && new URL(baseUrl, document.baseURI).origin !== location?.origin;
  return isElsewhere ? ' (Does ANNALS_CORS_ORIGINS of the service allow the origin of this page?)' : '';
}

/** Node's own message, "fetch failed", says nothing; its cause has the reason. */
function causeOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return cause instanceof Error && cause.message !== '' ? cause.message : String(cause);
}

/** Reads one piece at a time, when its reader asks for one. */
function watchedBody(
  body: ReadableStream<Uint8Array> | null,
  attempt: Attempt,
  limit: AttemptLimit,
): ReadableStream<Uint8Array> {
  const reader = body?.getReader();
  // Between two reads the caller works, so the time limit of the service stops.
  limit.pause();
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        limit.restart();
        try {
          const piece = await reader?.read();
          if (piece?.value !== undefined) {
            limit.pause();
            controller.enqueue(piece.value);
            return;
          }
          limit.end();
          controller.close();
        } catch (error) {
          limit.end();
          controller.error(failureOf(error, attempt, limit));
        }
      },
      async cancel(reason) {
        limit.end();
        await reader?.cancel(reason);
      },
    },
    { highWaterMark: 0 },
  );
}
