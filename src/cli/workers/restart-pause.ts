/** A worker that has lived for this long died of something new (milliseconds). */
const calmAfter = 60_000;
const minPause = 1_000;
const maxPause = 30_000;

/**
 * Milliseconds until a worker that has died is started anew: none at first. If it dies again within a minute, 1 s, then
 * twice as long each time, and 30 s at most.
 */
export function restartPause(before: number | undefined, lived: number): number {
  if (before === undefined || lived >= calmAfter) return 0;
  return Math.min(maxPause, Math.max(minPause, before * 2));
}
