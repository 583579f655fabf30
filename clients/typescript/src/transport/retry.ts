import type { ApiError } from './api-error.ts';

/**
 * When a request may be sent again.
 * - `always`: a repeat does no harm, because the method is idempotent or the service knows the request again.
 * - `refused`: only where the service certainly did not carry it out.
 */
export type Repeat = 'always' | 'refused';

export interface RetryLimits {
  /** Attempts after the first. */
  readonly maxRetries: number;
  /** Milliseconds. A `Retry-After` beyond it is not waited for. */
  readonly maxRetryDelay: number;
}

const idempotentMethods = new Set(['GET', 'HEAD', 'PUT', 'DELETE']);

export function repeatOf(method: string): Repeat {
  return idempotentMethods.has(method) ? 'always' : 'refused';
}

/**
 * The milliseconds to wait before the next attempt, or undefined where the error is final. `attempt` counts from 1. A
 * `Retry-After` is a lower bound. Chance spreads the callers, so that they do not come back all at once.
 */
export function delayBeforeRetry(
  error: ApiError,
  { attempt, repeat, limits }: { attempt: number; repeat: Repeat; limits: RetryLimits },
): number | undefined {
  if (attempt > limits.maxRetries || !mayRepeat(error, repeat)) return undefined;
  const asked = (error.retryAfter ?? 0) * 1_000;
  return asked > limits.maxRetryDelay ? undefined : backOff(attempt, error.retryAfter);
}

/** The milliseconds before the next attempt, longer from attempt to attempt. `retryAfter` is in seconds. */
export function backOff(attempt: number, retryAfter: number | undefined): number {
  if (retryAfter !== undefined) return retryAfter * 1_000 + Math.random() * Math.min(firstDelay * 2 ** attempt, 1_000);
  return Math.min(firstDelay * 2 ** (attempt - 1), maxBackOff) * (0.5 + Math.random() / 2);
}

/** Milliseconds. */
const firstDelay = 250;
const maxBackOff = 8_000;

function mayRepeat(error: ApiError, repeat: Repeat): boolean {
  if (error.status === 429) return true;
  if (error.status === 502 || error.status === 503) return repeat === 'always';
  if (error.type !== 'connection_failed') return false;
  return repeat === 'always' || neverArrived(error.cause);
}

/** Codes with which Node says that there was no connection, so that nothing was sent. Browsers never say it. */
const unconnected = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);

function neverArrived(failure: unknown): boolean {
  const cause = failure instanceof Error ? failure.cause : undefined;
  const causes = cause instanceof AggregateError ? cause.errors : [cause];
  return causes.every((each) => each instanceof Error && 'code' in each && unconnected.has(String(each.code)));
}
