import { setTimeout as sleep } from 'node:timers/promises';
import { AnnalsError } from '../../core/errors.ts';

/** Milliseconds in which a request waits for earlier requests of its session. */
export const maxWaitForSession = 300_000;
const minPause = 15;
const maxPause = 150;

/**
 * Waits as long as earlier requests of the session are under way; `maxWait` is in milliseconds. Returns whether it waited.
 * Throws service_unavailable (503) after `maxWait`, and the signal's reason after an abort.
 */
export async function waitForTurnInSession(
  earlierAreUnderWay: () => Promise<boolean>,
  signal: AbortSignal | undefined,
  maxWait = maxWaitForSession,
): Promise<boolean> {
  let waited = false;
  const end = performance.now() + maxWait;
  for (let pause = minPause; await earlierAreUnderWay(); pause = Math.min(maxPause, pause * 1.5)) {
    if (performance.now() > end) {
      throw new AnnalsError('service_unavailable', 'Earlier requests of the session are still in progress.', {
        headers: { 'Retry-After': '5' },
      });
    }
    waited = true;
    await sleep(pause, undefined, { signal });
  }
  signal?.throwIfAborted();
  return waited;
}
