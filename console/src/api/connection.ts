import { ApiError } from '@annals/client';
import { effect, type ReadonlySignal, signal } from '@preact/signals';
import { basePath } from '../router/router.tsx';

/** Below this address the service answers the operations of the interface to the session. */
export const apiUrl = `${location.origin}${basePath}api`;

const sessionUrl = `${apiUrl}/session`;

const lost = signal<number | undefined>(undefined);

/** Since when the service cannot be reached, in milliseconds since 1970; undefined while it can. */
export const lostAt: ReadonlySignal<number | undefined> = lost;

/** Milliseconds before the service is asked whether it is back. */
const firstPause = 1_000;
const maxPause = 30_000;

/** Milliseconds after which a connection that was back counts as lasting: the next pause is the first one again. */
const lasting = 30_000;

/** Milliseconds. */
const recent = 5_000;

// The page itself has just come.
let answeredAt = Date.now();
let pauses = 0;
let backAt = 0;
let timer: ReturnType<typeof setTimeout> | undefined;
let isAsking = false;

/** No answer came. `untilReached` says when another call may succeed. */
export class UnreachedError extends ApiError {
  constructor(cause?: unknown) {
    super('connection_failed', 'The service cannot be reached.', { cause });
  }
}

/** Milliseconds for the question whether the service is back. */
const askingTime = 10_000;

/**
 * Calls the service. While it cannot be reached, reads fail at once without a request; callers repeat them after
 * `untilReached`. Throws UnreachedError, or the reason of the signal.
 */
export async function reach(input: RequestInfo | URL, init: RequestInit = {}): Promise<Response> {
  if (lost.value !== undefined && (init.method ?? 'GET') === 'GET') throw new UnreachedError();
  try {
    const response = await fetch(input, init);
    if (!isOfService(response)) throw new UnreachedError();
    note(true);
    return response;
  } catch (error) {
    if (init.signal?.aborted === true) throw error;
    note(false);
    throw error instanceof UnreachedError ? error : new UnreachedError(error);
  }
}

/** Throws UnreachedError where the service cannot be reached now. An answer of the last seconds is enough. */
export async function checkReached(): Promise<void> {
  if (lost.value === undefined && Date.now() - answeredAt < recent) return;
  await (await reach(sessionUrl)).body?.cancel();
}

/** Resolves once the service can be reached. Rejects with the reason of the signal. */
export async function untilReached(abort?: AbortSignal): Promise<void> {
  abort?.throwIfAborted();
  let stop = () => {};
  let leave = () => {};
  try {
    await new Promise<void>((resolve, reject) => {
      leave = () => reject(abort?.reason);
      abort?.addEventListener('abort', leave, { once: true });
      stop = effect(() => {
        if (lost.value === undefined) resolve();
      });
    });
  } finally {
    stop();
    abort?.removeEventListener('abort', leave);
  }
}

/** A proxy answers for a service that is away. Every answer of the service itself has the version of the console. */
function isOfService({ status, headers }: Response): boolean {
  return (status !== 502 && status !== 504) || headers.has('annals-console-version');
}

function note(isReached: boolean): void {
  if (isReached) answeredAt = Date.now();
  if (isReached === (lost.value === undefined)) return;
  clearTimeout(timer);
  if (isReached) {
    backAt = Date.now();
    lost.value = undefined;
    return;
  }
  if (Date.now() - backAt > lasting) pauses = 0;
  lost.value = Date.now();
  plan();
}

/** Chance spreads the pages that have lost the same service. */
function plan(): void {
  const pause = Math.min(firstPause * 2 ** pauses, maxPause) * (0.5 + Math.random() / 2);
  pauses += 1;
  timer = setTimeout(ask, pause);
}

/** Asks whether the service is back, and again after a pause. A hidden tab asks once it is seen. */
async function ask(): Promise<void> {
  clearTimeout(timer);
  if (lost.value === undefined || isAsking || document.visibilityState === 'hidden') return;
  isAsking = true;
  const response = await fetch(sessionUrl, { signal: AbortSignal.timeout(askingTime) }).catch(() => undefined);
  isAsking = false;
  // The browser keeps a request open whose body is not read.
  await response?.body?.cancel();
  if (response !== undefined && isOfService(response)) note(true);
  else if (lost.value !== undefined) plan();
}

/** Asks at once, whatever the pause. */
export function askAtOnce(): void {
  pauses = 0;
  void ask();
}

addEventListener('online', askAtOnce);
document.addEventListener('visibilitychange', askAtOnce);
