import { AnnalsError } from '../errors.ts';
import type { Stop, StopSignal } from '../stop-signal.ts';

interface Deadline {
  /** In milliseconds of performance.now(). */
  readonly until: number;
  readonly limit: number;
  /** Undefined where the work has ended. */
  stop: Stop | undefined;
}

// All deadlines share one timer. Most work ends within a millisecond, and a timer for each would cost a large part of
// that. A deadline stays here until the timer's next look and holds nothing of its work. A Set would cost more: after each
// few changes it has a new table, to which the old one refers. So all tables, and all work in them, would live until the
// next full garbage collection.
let deadlines: Deadline[] = [];
const lookEvery = 50;
let looking: NodeJS.Timeout | undefined;

/**
 * Aborts `stop` after `rest` milliseconds with a 503 service_unavailable, whose message states the whole `limit`. Returns
 * the function that removes the deadline.
 */
export function setDeadline(stop: Stop, limit: number, rest = limit): () => void {
  const deadline: Deadline = { until: performance.now() + rest, limit, stop };
  deadlines.push(deadline);
  looking ??= setInterval(lookAtDeadlines, lookEvery).unref();
  return () => {
    deadline.stop = undefined;
  };
}

function lookAtDeadlines(): void {
  const now = performance.now();
  const looked = deadlines;
  // What is aborted may set further deadlines.
  deadlines = [];
  for (const deadline of looked) {
    if (deadline.stop === undefined) continue;
    if (deadline.until > now) deadlines.push(deadline);
    else deadline.stop.abort(tooLate(deadline.limit));
  }
  if (deadlines.length > 0) return;
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
