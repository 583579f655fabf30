const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;

/** Milliseconds after an attempt that failed until the next one: after the first, the second … */
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

/** How much longer or shorter a step may be, so that what failed together is not repeated together. */
export const spread = 0.2;

/** Longest pause between two probes of a target that cannot be reached, in milliseconds. */
export const maxProbePause = 10 * minute;

/** Milliseconds until the next attempt after this many failed ones; undefined after the last. A target's `Retry-After` counts up to twice the step. */
export function pauseAfter(
  attempts: number,
  { retryAfter = 0, random = Math.random }: { retryAfter?: number | undefined; random?: () => number } = {},
): number | undefined {
  const step = attemptSteps[attempts - 1];
  if (step === undefined) return undefined;
  return Math.max(spreadOut(step, random), Math.min(retryAfter, 2 * step));
}

/** Milliseconds until the next probe of a target that could not be reached so often in a row. */
export function probePause(times: number, random: () => number = Math.random): number {
  return spreadOut(Math.min(maxProbePause, 5 * second * 2 ** Math.min(times - 1, 20)), random);
}

/** Milliseconds in which a target that is too busy is left alone: the first time, the second … in a row. */
export function slowPause(times: number, retryAfter = 0, random: () => number = Math.random): number {
  const step = Math.min(minute, second * 2 ** Math.min(times - 1, 20));
  return Math.max(spreadOut(step, random), Math.min(retryAfter, 2 * step));
}

function spreadOut(milliseconds: number, random: () => number): number {
  return milliseconds * (1 - spread + 2 * spread * random());
}
