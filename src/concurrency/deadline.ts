import { AnnalsError } from '../errors.ts';
import { Stop, type StopSignal } from '../stop-signal.ts';

interface Limited {
  /** In milliseconds of performance.now(). */
  until: number;
  limit: number;
  stop: Stop;
}

// One timer for all deadlines: most work ends in a millisecond, and a timer for each would cost a good part of that.
const limited = new Set<Limited>();
const lookEvery = 50;
let looking: NodeJS.Timeout | undefined;

/**
 * Does work that ends after `limit` milliseconds, or when the client has gone (`gone`). The work's signal is aborted
 * then: with a 503 service_unavailable, or with the reason of `gone`.
 */
export async function withDeadline<Result>(
  limit: number,
  gone: StopSignal | undefined,
  work: (signal: StopSignal) => Promise<Result>,
): Promise<Result> {
  gone?.throwIfAborted();
  const stop = new Stop();
  const one: Limited = { until: performance.now() + limit, limit, stop };
  limited.add(one);
  looking ??= setInterval(lookAtDeadlines, lookEvery).unref();
  const onGone = () => stop.abort(gone?.reason);
  gone?.addEventListener('abort', onGone, { once: true });
  try {
    return await work(stop);
  } finally {
    limited.delete(one);
    gone?.removeEventListener('abort', onGone);
  }
}

function lookAtDeadlines(): void {
  const now = performance.now();
  for (const { until, limit, stop } of limited) if (until <= now) stop.abort(tooSlow(limit));
  if (limited.size > 0) return;
  clearInterval(looking);
  looking = undefined;
}

/** The result of work that others wait for too. Rejects with the signal's reason; the work goes on. */
export async function unlessAborted<Result>(work: Promise<Result>, signal: StopSignal): Promise<Result> {
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

/** The result of the work, or an error after so many milliseconds; the work goes on. */
export async function within<Result>(milliseconds: number, work: Promise<Result>): Promise<Result> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`no answer within ${milliseconds} ms`)), milliseconds);
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

function tooSlow(limit: number): AnnalsError {
  const seconds = Math.ceil(limit / 1000);
  return new AnnalsError(
    'service_unavailable',
    `The query was not answered within ${seconds} ${seconds === 1 ? 'second' : 'seconds'}. Narrow its time or its terms; ` +
      'an export takes as long as it needs.',
  );
}
