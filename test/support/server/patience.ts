import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';

/** As expect.poll, which gives up after a second: a machine with much to do may take longer for anything. */
export function eventually<Value>(ask: () => Value) {
  return expect.poll(ask, { timeout: 30_000, interval: 40 });
}

const tick = 10;

/**
 * Whether something comes true within so many milliseconds of those in which this process had its turns. Time in which
 * the machine let it stand still counts as one tick: what is waited for could not come about in it either.
 */
export async function comesTrueWithin(milliseconds: number, isTrue: () => boolean): Promise<boolean> {
  for (let passed = 0; passed < milliseconds && !isTrue(); passed += tick) await sleep(tick);
  return isTrue();
}

/** Lets everything else of this process continue for so many milliseconds, and for many turns of its event loop. */
export async function letOthersWork(milliseconds: number): Promise<void> {
  await comesTrueWithin(milliseconds, () => false);
}
