import { ApiError, type ErrorDetail } from '@annals/client';
import { bytesText } from '../components/numbers.ts';

/** An error in the words of the page. */
interface Failure {
  readonly title: string;
  /** What is wrong with which part, as the service says it. */
  readonly details: readonly string[];
  /** Under this id the service's log has the request. */
  readonly requestId: string | undefined;
  /** Whether it may succeed when it is tried again. */
  readonly mayPass: boolean;
  /** Where the answer can be downloaded that the page cannot show. */
  readonly download: string | undefined;
}

const titles: Readonly<Record<string, string>> = {
  connection_failed: 'The service cannot be reached. Check your connection.',
  timeout: 'The service did not answer in time.',
  insufficient_permissions: 'Your client has no scope for this.',
  quota_exceeded: 'The quota of this tenant, or a budget, is used up.',
  price_unknown: 'A budget limits costs, and the model has no price.',
  rate_limit_exceeded: 'This tenant has called too often. Wait a moment.',
  internal_service_error: 'The service failed. Tell the operator the request id.',
  service_unavailable: 'The service is busy or its database is away.',
  invalid_answer: 'The service answered with something that the console cannot read.',
};

/** Says in words what went wrong. */
export function failureOf(error: unknown): Failure {
  if (!(error instanceof ApiError)) {
    return {
      title: error instanceof Error ? error.message : String(error),
      details: [],
      requestId: undefined,
      mayPass: false,
      download: undefined,
    };
  }
  if (error instanceof LongAnswerError) return failureOfLength(error);
  const { type, message, status = 503, details, requestId, retryAfter } = error;
  const known = titles[type];
  // A request that did not arrive is in no log.
  if (type === 'connection_failed' && known !== undefined)
    return { title: known, details: [], requestId: undefined, mayPass: true, download: undefined };
  const wait = retryAfter === undefined ? [] : [`Try again in ${retryAfter} s.`];
  return {
    title: known ?? message,
    details: [...(known === undefined || known === message ? [] : [message]), ...details.map(wordsOf), ...wait],
    requestId,
    mayPass: status >= 500 || status === 429,
    download: undefined,
  };
}

function failureOfLength({ bytes, isWhole, url, requestId }: LongAnswerError): Failure {
  return {
    title: `This answer has ${isWhole ? '' : 'more than '}${bytesText(bytes)}. The console shows at most ${bytesText(maxAnswerBytes)}.`,
    details: ['A longer one could crash the page. Download it as JSON, and open it with a program for long files.'],
    requestId,
    mayPass: false,
    download: url,
  };
}

function wordsOf({ field, message }: { readonly field: string; readonly message: string }): string {
  return field === '' ? message : `${field}: ${message}`;
}

/** Whether the call was ended by the page itself. */
export function isAborted(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'AbortError';
}

/** The error of an answer that the client has not read itself. */
export async function errorOfResponse(response: Response): Promise<ApiError> {
  const body = errorBodyOf(await response.text());
  const fault = body.fault?.faultstring;
  return new ApiError(body.type ?? 'unknown', body.message ?? fault ?? `The service answered ${response.status}.`, {
    status: response.status,
    details: body.details,
    requestId: response.headers.get('x-request-id') ?? undefined,
    retryAfter: secondsOf(response.headers.get('retry-after')),
  });
}

/** The service's two forms of an error. */
interface ErrorMessage {
  readonly type?: string;
  readonly message?: string;
  readonly details?: readonly ErrorDetail[];
  readonly fault?: { readonly faultstring?: string };
}

function errorBodyOf(text: string): ErrorMessage {
  try {
    return JSON.parse(text) ?? {};
  } catch {
    // For example the page of a proxy. Only its status tells something.
    return {};
  }
}

function secondsOf(retryAfter: string | null): number | undefined {
  return retryAfter !== null && /^\d+$/.test(retryAfter) ? Number(retryAfter) : undefined;
}

/** Bytes. Parsing takes some twenty times as much memory, and a browser kills a page at 4 GiB. */
export const maxAnswerBytes = 64 * 1_024 * 1_024;

/** Milliseconds for which the rest of a longer answer is counted. */
const countingTime = 5_000;

/** An answer that is too long for the page. Its address serves for a download. */
export class LongAnswerError extends ApiError {
  /** How long the answer is, or at least how long. */
  readonly bytes: number;
  readonly isWhole: boolean;
  readonly url: string;

  constructor(
    length: { readonly bytes: number; readonly isWhole: boolean },
    { url, headers }: Pick<Response, 'url' | 'headers'>,
  ) {
    super('answer_too_long', 'The answer is too long for this page.', {
      status: 200,
      requestId: headers.get('x-request-id') ?? undefined,
    });
    this.bytes = length.bytes;
    this.isWhole = length.isWhole;
    this.url = url;
  }
}

/**
 * The same answer, where it is not too long. Throws LongAnswerError. The service sends a long answer without its
 * length, so the page counts while it reads, and lets go of what it has once that is too much.
 *
 * @example
 * const response = await withinLimit(await fetch(address));
 */
export async function withinLimit(response: Response, limit = maxAnswerBytes): Promise<Response> {
  const { body, headers, status, statusText } = response;
  if (body === null || !isJson(headers)) return response;
  // `content-length` of a compressed answer counts the compressed bytes, so it is ignored.
  const length = headers.has('content-encoding') ? null : headers.get('content-length');
  if (length !== null) {
    if (Number(length) <= limit) return response;
    await body.cancel();
    throw new LongAnswerError({ bytes: Number(length), isWhole: true }, response);
  }
  const reader = body.getReader();
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  let bytes = 0;
  for (;;) {
    const { value } = await reader.read();
    if (value === undefined) return new Response(new Blob(pieces), { headers, status, statusText });
    bytes += value.byteLength;
    if (bytes > limit) throw new LongAnswerError(await countRest(reader, bytes), response);
    pieces.push(value);
  }
}

/** Reads on without keeping anything, so that the person learns how long it is the answer is. */
async function countRest(reader: ReadableStreamDefaultReader<Uint8Array>, read: number) {
  const until = performance.now() + countingTime;
  let bytes = read;
  while (performance.now() < until) {
    const { value } = await reader.read();
    if (value === undefined) return { bytes, isWhole: true };
    bytes += value.byteLength;
  }
  await reader.cancel();
  return { bytes, isWhole: false };
}

function isJson(headers: Headers): boolean {
  return headers.get('content-type')?.startsWith('application/json') === true;
}
