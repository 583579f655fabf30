import type { DeliveryRun } from '../dispatch/delivery-run.ts';
import { jitter, pauseAfter } from '../webhooks/retry-schedule.ts';

// Milliseconds.
const hour = 60 * 60_000;

/** Consecutive failed attempts. Resuming the subscription resets them. */
export function failuresOf({ state }: Pick<DeliveryRun, 'state'>, { attempts }: { readonly attempts: number }): number {
  return state.state === 'retrying' ? attempts : 0;
}

/** Milliseconds until the next attempt after `attempts` failures: as for webhooks, then hourly. */
export function pauseOf(attempts: number, retryAfter = 0, random: () => number = Math.random): number {
  const step = pauseAfter(attempts, { retryAfter, random });
  return step ?? Math.max(hour * (1 - jitter + 2 * jitter * random()), Math.min(retryAfter, 2 * hour));
}
