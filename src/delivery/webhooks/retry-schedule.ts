import type { DeliveryRun } from '../dispatch/delivery-run.ts';

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;

/** Milliseconds from the first, second … failed attempt to the next. */
export const attemptSteps: readonly number[] = [
  5 * second,
  minute,
  5 * minute,
  30 * minute,
  2 * hour,
  5 * hour,
  10 * hour,
  14 * hour,
  20 * hour,
  24 * hour,
];

/** The fraction by which a step varies, so that simultaneous failures are not retried together. */
const jitter = 0.2;

/** Maximum milliseconds between probes of an unreachable target. */
export const maxProbePause = 10 * minute;

/** Milliseconds until the next attempt; undefined after the last. `Retry-After` is honored up to twice the step. */
export function pauseAfter(
  attempts: number,
  { retryAfter = 0, random = Math.random }: { retryAfter?: number | undefined; random?: () => number } = {},
): number | undefined {
  const step = attemptSteps[attempts - 1];
  if (step === undefined) return undefined;
  return Math.max(withJitter(step, random), Math.min(retryAfter, 2 * step));
}

/** Milliseconds until the next probe of a target that was unreachable `times` in a row. */
export function probePause(times: number, random: () => number = Math.random): number {
  return withJitter(Math.min(maxProbePause, 5 * second * 2 ** Math.min(times - 1, 20)), random);
}

/** Milliseconds of pause for a target that was overloaded `times` in a row. */
export function slowPause(times: number, retryAfter = 0, random: () => number = Math.random): number {
  const step = Math.min(minute, second * 2 ** Math.min(times - 1, 20));
  return Math.max(withJitter(step, random), Math.min(retryAfter, 2 * step));
}

function withJitter(milliseconds: number, random: () => number): number {
  return milliseconds * (1 - jitter + 2 * jitter * random());
}

/** Consecutive failed attempts. Resuming the subscription resets them. */
export function failuresOf({ state }: Pick<DeliveryRun, 'state'>, { attempts }: { readonly attempts: number }): number {
  return state.state === 'retrying' ? attempts : 0;
}

/** Milliseconds until the next attempt after `attempts` failures: as for webhooks, then hourly. */
export function pauseOf(attempts: number, retryAfter = 0, random: () => number = Math.random): number {
  const step = pauseAfter(attempts, { retryAfter, random });
  return step ?? Math.max(withJitter(hour, random), Math.min(retryAfter, 2 * hour));
}
