/** When the computations of this turn of the event loop began (milliseconds of performance.now()); undefined if none has. */
let begun: number | undefined;

/** The computations that rest. The tenant whose last turn is longest ago comes first. */
const resting = new Map<string, (() => void)[]>();
let isResumeScheduled = false;

/**
 * Milliseconds since the first computation of this turn of the event loop began: since the first call in the turn, or since
 * `nextTurn` resolved in it.
 */
export function ageOfTurn(): number {
  return performance.now() - (begun ?? beginTurn());
}

/** Resolves in a later turn of the event loop. Only one caller continues in each turn; tenants take turns. */
export function nextTurn(tenant: string): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const queue = resting.get(tenant);
  if (queue === undefined) resting.set(tenant, [resolve]);
  else queue.push(resolve);
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
}

function resumeNext(): void {
  isResumeScheduled = false;
  for (const [tenant, queue] of resting) {
    const resume = queue.shift();
    resting.delete(tenant);
    if (queue.length > 0) resting.set(tenant, queue);
    beginTurn();
    resume?.();
    break;
  }
  if (resting.size > 0) scheduleResume();
}
