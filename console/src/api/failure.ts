import { ApiError } from '@annals/client';
import { bytesText } from '../components/numbers.ts';
import { LongAnswerError, maxAnswerBytes } from './long-answer.ts';

/** An error in the words of the page. */
export interface Failure {
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
  const told = titles[type];
  const wait = retryAfter === undefined ? [] : [`Try again in ${retryAfter} s.`];
  return {
    title: told ?? message,
    details: [...(told === undefined || told === message ? [] : [message]), ...details.map(wordsOf), ...wait],
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
