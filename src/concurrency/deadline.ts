import { AnnalsError } from '../errors.ts';
import type { Stop, StopSignal } from '../stop-signal.ts';

interface Deadline {
  /** In milliseconds of performance.now(). */
  readonly until: number;
  readonly limit: number;
  readonly stop: Stop;
}

// All deadlines share one timer. Most work ends within a millisecond, and a timer for each would cost a large part of
// that.
const deadlines = new Set<Deadline>();
const lookEvery = 50;
let looking: NodeJS.Timeout | undefined;

/**
 * Aborts `stop` after `rest` milliseconds with a 503 service_unavailable, whose message states the whole `limit`. Returns
 * the function that removes the deadline.
 */
export function setDeadline(stop: Stop, limit: number, rest = limit): () => void {
  const deadline = { until: performance.now() + rest, limit, stop };
  deadlines.add(deadline);
  looking ??= setInterval(lookAtDeadlines, lookEvery).unref();
  return () => {
    deadlines.delete(deadline);
  };
}

function lookAtDeadlines(): void {
  const now = performance.now();
  for (const deadline of deadlines) {
    if (deadline.until > now) continue;
    deadlines.delete(deadline);
    deadline.stop.abort(tooLate(deadline.limit));
  }
  if (deadlines.size > 0) return;
  clearInterval(looking);
  looking = undefined;
}

/** The result of work that several callers wait for. Rejects with the signal's reason; the work goes on. */
export async function unlessAborted<Result>(work: Promise<Result>, signal: StopSignal | undefined): Promise<Result> {
  if (signal === undefined) return await work;
  signal.throwIfAborted();
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

/** The result of the work, or an error after this many milliseconds; the work goes on. */
export async function within<Result>(milliseconds: number, work: Promise<Result>): Promise<Result> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`no answer within ${milliseconds} ms`)), milliseconds);
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

function tooLate(limit: number): AnnalsError {
  const seconds = Math.ceil(limit / 1000);
  return new AnnalsError(
    'service_unavailable',
    `The request was not answered within ${seconds} ${seconds === 1 ? 'second' : 'seconds'}. Ask for less at once, or try again later.`,
    { headers: { 'Retry-After': '5' } },
  );
}
