import { ApiError } from '../../../typescript/src/transport/api-error.ts';
import type { HistoryProblem } from '../history-element.ts';
import { NoTokenError } from './no-token-error.ts';

/** Why nothing can be shown, and when it is tried again. */
export interface Problem extends HistoryProblem {
  /** Milliseconds since 1970; undefined where only the reader tries again. */
  readonly retryAt: number | undefined;
}

/** Milliseconds. */
const firstDelay = 3_000;
const maxDelay = 60_000;

/** What an error means to the reader. `attempt` counts from 1. */
export function problemOf(error: unknown, attempt: number): Problem {
  const type = typeOf(error);
  const waits = type !== 'refused' && type !== 'failed';
  // Chance spreads the pages that have lost the same service.
  const backOff = Math.min(firstDelay * 2 ** (attempt - 1), maxDelay) * (0.5 + Math.random() / 2);
  const asked = error instanceof ApiError ? (error.retryAfter ?? 0) * 1_000 : 0;
  return { type, error, retryAt: waits ? Date.now() + Math.max(backOff, asked) : undefined };
}

/** Whether no answer came, from the service or from the host's own server. */
export function isUnanswered({ error }: Problem): boolean {
  return error instanceof NoTokenError || (error instanceof ApiError && error.status === undefined);
}

function typeOf(error: unknown): HistoryProblem['type'] {
  if (error instanceof NoTokenError) return 'no-token';
  if (!(error instanceof ApiError)) return 'failed';
  if (error.status === 429) return 'busy';
  if (error.status === 401 || error.status === 403) return 'refused';
  return error.status === undefined || error.status >= 500 ? 'away' : 'failed';
}
