import { AnnalsError } from '../errors.ts';

/**
 * Does work that is to end when the client has gone (`gone`) or after so many milliseconds: then its signal is given, and
 * what it rejects with is that signal's reason, in the second case a 503.
 */
export async function withinTime<Result>(
  limit: number,
  gone: AbortSignal | undefined,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  gone?.throwIfAborted();
  const stop = new AbortController();
  const timer = setTimeout(() => stop.abort(tooSlow(limit)), limit);
  const onGone = () => stop.abort(gone?.reason);
  gone?.addEventListener('abort', onGone, { once: true });
  try {
    return await work(stop.signal);
  } finally {
    clearTimeout(timer);
    gone?.removeEventListener('abort', onGone);
  }
}

/** What is shared with others and goes on without this one. */
export async function unlessStopped<Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result> {
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
