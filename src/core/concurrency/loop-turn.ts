import { onShortWorkEnd, othersHaveShortWork } from './short-work.ts';

/** Milliseconds of rest for each millisecond of computing, while other tenants have short requests under way. */
export const restPerComputing = 2;
/** Milliseconds. Only on a busy machine a turn takes so long that a rest would be longer. */
export const maxRest = 50;
/** A tenant that has not computed for so many milliseconds goes on without a rest: its own short requests compute too. */
export const freshAfter = 250;

/** When the computations of this turn of the event loop began (milliseconds of performance.now()); undefined if none has. */
let begun: number | undefined;

/** The computations that rest. The tenant whose last turn is longest ago comes first. */
const resting = new Map<string, (() => void)[]>();
/** When a computation of the tenant last went on. A tenant that has not computed for a while is not here. */
const lastTurns = new Map<string, number>();
let isResumeScheduled = false;
/** When the computation that goes on in this turn began; undefined if none does. */
let resumed: number | undefined;
let restUntil = 0;
let restTimer: NodeJS.Timeout | undefined;

/**
 * Milliseconds since the first computation of this turn of the event loop began: since the first call in the turn, or since
 * `nextTurn` resolved in it.
 */
export function ageOfTurn(): number {
  return performance.now() - (begun ?? beginTurn());
}

/**
 * Resolves in a later turn of the event loop. Only one caller continues in each turn; tenants take turns. While another
 * tenant has short requests under way, the turns of long computations are at most a third of the time: a short request
 * needs several turns, and would wait in each of them for a long computation.
 */
export function nextTurn(tenant: string): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  resting.getOrInsertComputed(tenant, () => []).push(resolve);
  scheduleResume();
  return promise;
}

function beginTurn(): number {
  const now = performance.now();
  begun = now;
  setImmediate(() => {
    // A computation that has continued meanwhile has begun a turn of its own.
    if (begun === now) begun = undefined;
  });
  return now;
}

function scheduleResume(): void {
  if (isResumeScheduled) return;
  isResumeScheduled = true;
  setImmediate(resumeNext);
  // Runs when the computation rests again or has ended, because its promises are settled before.
  setImmediate(endResumed);
}

function resumeNext(): void {
  clearTimeout(restTimer);
  restTimer = undefined;
  const now = performance.now();
  for (const [tenant, queue] of resting) {
    if (mustRest(tenant, now)) continue;
    const resume = queue.shift();
    resting.delete(tenant);
    if (queue.length > 0) resting.set(tenant, queue);
    lastTurns.set(tenant, now);
    resumed = beginTurn();
    resume?.();
    return;
  }
}

function endResumed(): void {
  isResumeScheduled = false;
  const now = performance.now();
  if (resumed !== undefined) {
    restUntil = Math.min(Math.max(restUntil, now) + restPerComputing * (now - resumed), now + maxRest);
    resumed = undefined;
  }
  for (const [tenant, at] of lastTurns) if (now - at >= freshAfter) lastTurns.delete(tenant);
  if (resting.size === 0) return;
  if (resting.keys().every((tenant) => mustRest(tenant, now))) {
    restTimer = setTimeout(scheduleResume, restUntil - now);
  } else {
    scheduleResume();
  }
}

function mustRest(tenant: string, now: number): boolean {
  if (now >= restUntil || !othersHaveShortWork(tenant)) return false;
  return now - (lastTurns.get(tenant) ?? Number.NEGATIVE_INFINITY) < freshAfter;
}

onShortWorkEnd(() => {
  if (restTimer !== undefined) scheduleResume();
});
