import type { Held } from '../dispatch/held.ts';
import { pauseAfter, spread } from '../webhooks/schedule.ts';

// Milliseconds.
const hour = 60 * 60_000;

/** Attempts that have failed in a row. After somebody has resumed the subscription they count from the beginning. */
export function failuresOf({ state }: Pick<Held, 'state'>, { attempts }: { readonly attempts: number }): number {
  return state.state === 'retrying' ? attempts : 0;
}

/** Milliseconds until the next attempt after this many failed ones: as webhooks, and then every hour. */
export function pauseOf(attempts: number, retryAfter = 0, random: () => number = Math.random): number {
  const step = pauseAfter(attempts, { retryAfter, random });
  return step ?? Math.max(hour * (1 - spread + 2 * spread * random()), Math.min(retryAfter, 2 * hour));
}
