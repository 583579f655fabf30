import { AnnalsError } from '../errors.ts';
import { Stop, type StopSignal } from '../stop-signal.ts';

interface Limited {
  /** In milliseconds of performance.now(). */
  until: number;
  limit: number;
  stop: Stop;
}

// One timer for all of them: most end in a millisecond, and a timer for each would cost them a good part of that.
const limited = new Set<Limited>();
const lookEvery = 50;
let looking: NodeJS.Timeout | undefined;

/**
 * Does work that is to end when the client has gone (`gone`) or after so many milliseconds: then its signal is given, and
 * what it rejects with is that signal's reason, in the second case a 503.
 */
export async function withinTime<Result>(
  limit: number,
  gone: StopSignal | undefined,
  work: (signal: StopSignal) => Promise<Result>,
): Promise<Result> {
  gone?.throwIfAborted();
  const stop = new Stop();
  const one: Limited = { until: performance.now() + limit, limit, stop };
  limited.add(one);
  looking ??= setInterval(lookAtLimits, lookEvery).unref();
  const onGone = () => stop.abort(gone?.reason);
  gone?.addEventListener('abort', onGone, { once: true });
  try {
    return await work(stop);
  } finally {
    limited.delete(one);
    gone?.removeEventListener('abort', onGone);
  }
}

function lookAtLimits(): void {
  const now = performance.now();
  for (const { until, limit, stop } of limited) if (until <= now) stop.abort(tooSlow(limit));
  if (limited.size > 0) return;
  clearInterval(looking);
  looking = undefined;
}

/** What is shared with others and goes on without this one. */
export async function unlessStopped<Result>(work: Promise<Result>, signal: StopSignal): Promise<Result> {
  signal.throwIfAborted();
  const { promise: stopped, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([work, stopped]);
  } finally {
    signal.removeEventListener('abort', onAbort);
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
