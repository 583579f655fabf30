import type { StopSignal } from '../stop-signal.ts';
import { currentWork } from './work.ts';

/** The time that one kind of work has taken in this turn of the event loop. */
export class LoopTurn {
  /** Milliseconds of performance.now(); undefined while the work has not begun in this turn. */
  #begun: number | undefined;

  /** Milliseconds since the work began in this turn; it begins with the first call. */
  age(): number {
    return performance.now() - (this.#begun ?? this.begin());
  }

  /** Returns the time at which the work begins. */
  begin(): number {
    const now = performance.now();
    this.#begun = now;
    setImmediate(() => {
      // Work that has resumed since has begun a turn of its own.
      if (this.#begun === now) this.#begun = undefined;
    });
    return now;
  }
}

/** Milliseconds. A shorter computation never rests, however much others have computed in the same turn of the event loop. */
export const minSlice = 1;

/** Milliseconds of a slice while other tenants have short requests under way. */
export const sliceBesideOthers = 4;

/** Milliseconds of a slice. */
export const defaultSlice = 8;

/**
 * Divides a long computation on the event loop into slices, so that other requests run between them. All computations
 * of one turn of the loop share one slice, and tenants take turns. While other tenants have short requests under way, slices
 * are shorter and far between.
 *
 * @example
 * const slice = new TimeSlice();
 * for (const name of names) {
 *   if (slice.isDue) await slice.rest();
 *   count(name);
 * }
 */
export class TimeSlice {
  readonly #signal: StopSignal | undefined;
  readonly #tenant: string;
  readonly #length: number;
  #begun = performance.now();

  /** `length` is in milliseconds. */
  constructor(length = defaultSlice) {
    const work = currentWork();
    this.#signal = work?.signal;
    this.#tenant = work?.tenant ?? '';
    this.#length = length;
    computing.age();
  }

  /** Whether the slice is used up. Check it every few thousand steps. */
  get isDue(): boolean {
    const length = othersHaveShortWork(this.#tenant) ? Math.min(this.#length, sliceBesideOthers) : this.#length;
    return computing.age() >= length && performance.now() - this.#begun >= Math.min(minSlice, this.#length);
  }

  /** Lets other work run, then starts the next slice. Throws the reason if the current work was aborted. */
  async rest(): Promise<void> {
    await nextTurn(this.#tenant);
    this.#signal?.throwIfAborted();
    this.#begun = performance.now();
  }
}

/** Milliseconds of rest for each millisecond of computing, while other tenants have short requests under way. */
export const restPerComputing = 2;
/** Milliseconds. Only on a busy machine a turn takes so long that a rest would be longer. */
export const maxRest = 50;
/** A tenant that has not computed for so many milliseconds goes on without a rest: its own short requests compute too. */
export const freshAfter = 250;

/** The computations of this turn of the event loop. */
const computing = new LoopTurn();

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
    resumed = computing.begin();
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

/** How many short requests of each tenant are under way. */
const underWay = new Map<string, number>();
let all = 0;

/**
 * Counts a request that needs the event loop for little, several times and soon: it waits for the database in between.
 * Long computations of other tenants leave it room until the returned function is called; idempotent.
 */
export function beginShortWork(tenant: string): () => void {
  underWay.set(tenant, (underWay.get(tenant) ?? 0) + 1);
  all += 1;
  let isUnderWay = true;
  return () => {
    if (!isUnderWay) return;
    isUnderWay = false;
    all -= 1;
    const left = (underWay.get(tenant) ?? 0) - 1;
    if (left > 0) underWay.set(tenant, left);
    else underWay.delete(tenant);
    if (left === 0 && restTimer !== undefined) scheduleResume();
  };
}

/** Whether another tenant has a short request under way. */
export function othersHaveShortWork(tenant: string): boolean {
  return all > (underWay.get(tenant) ?? 0);
}
