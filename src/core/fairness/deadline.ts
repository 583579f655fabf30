import { AnnalsError } from '../errors.ts';
import type { Stop, StopSignal } from '../stop-signal.ts';

interface Deadline {
  /** In milliseconds of performance.now(). */
  readonly until: number;
  readonly limit: number;
  /** Undefined once the work has ended. */
  stop: Stop | undefined;
}

// All deadlines share one timer: most work ends within a millisecond, of which a timer each would take a large part. An
// ended deadline stays in the array until the next check, without a reference to its work. A Set would be worse: it
// reallocates its table every few changes, and the old tables keep each other alive until a full garbage collection.
let deadlines: Deadline[] = [];
const checkEvery = 50;
let checking: NodeJS.Timeout | undefined;

/**
 * Aborts `stop` after `rest` milliseconds with a 503 service_unavailable, whose message states the whole `limit`.
 * Returns a function that removes the deadline.
 */
export function setDeadline(stop: Stop, limit: number, rest = limit): () => void {
  const deadline: Deadline = { until: performance.now() + rest, limit, stop };
  deadlines.push(deadline);
  checking ??= setInterval(checkDeadlines, checkEvery).unref();
  return () => {
    deadline.stop = undefined;
  };
}

function checkDeadlines(): void {
  const now = performance.now();
  const checked = deadlines;
  // Listeners of an abort may set further deadlines.
  deadlines = [];
  for (const deadline of checked) {
    if (deadline.stop === undefined) continue;
    if (deadline.until > now) deadlines.push(deadline);
    else deadline.stop.abort(tooLate(deadline.limit));
  }
  if (deadlines.length > 0) return;
  clearInterval(checking);
  checking = undefined;
}

/** The result of shared work. Rejects with the signal's reason, without stopping the work. */
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

/** The result of the work. Rejects after this many milliseconds, without stopping the work. */
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
