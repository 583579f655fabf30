import type { StopSignal } from '../stop-signal.ts';
import { currentWork } from './work.ts';

/** How long one kind of work has run in this turn of the event loop. */
export class LoopTurn {
  /** In milliseconds of performance.now(); undefined before the work begins in this turn. */
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
      // Work that has resumed since then began a turn of its own.
      if (this.#begun === now) this.#begun = undefined;
    });
    return now;
  }
}

/** Milliseconds. Shorter computations never rest, however long others have run in the same turn of the event loop. */
export const minSlice = 1;

/** Milliseconds of a slice while other tenants have short requests in progress. */
export const sliceBesideOthers = 4;

/** Milliseconds of a slice. */
export const defaultSlice = 8;

/**
 * Divides a long computation on the event loop into slices, so that other requests run in between. All computations of
 * one turn of the loop share a slice, and tenants take turns. While other tenants have short requests in progress,
 * slices are shorter and rarer.
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

  /** Whether the slice is over. Check it every few thousand steps. */
  get isDue(): boolean {
    const length = othersHaveShortWork(this.#tenant) ? Math.min(this.#length, sliceBesideOthers) : this.#length;
    return computing.age() >= length && performance.now() - this.#begun >= Math.min(minSlice, this.#length);
  }

  /** Lets other work run, then starts the next slice. Throws the reason if the current work is aborted. */
  async rest(): Promise<void> {
    await nextTurn(this.#tenant);
    this.#signal?.throwIfAborted();
    this.#begun = performance.now();
  }
}

/** Milliseconds of rest for each millisecond of computing, while other tenants have short requests in progress. */
export const restPerComputing = 2;
/** Milliseconds. Reached only by the long turns of a busy machine. */
export const maxRest = 50;
/** Milliseconds without computing after which a tenant need not rest, since its own short requests compute too. */
export const freshAfter = 250;

/** The computations of this turn of the event loop. */
const computing = new LoopTurn();

/** Resting computations by tenant, in the order of their last turns, oldest first. */
const resting = new Map<string, (() => void)[]>();
/** When a computation of the tenant last resumed; forgotten after `freshAfter`. */
const lastTurns = new Map<string, number>();
let isResumeScheduled = false;
/** When a computation resumed in this turn; undefined if none did. */
let resumed: number | undefined;
let restUntil = 0;
let restTimer: NodeJS.Timeout | undefined;

/**
 * Resolves in a later turn of the event loop, for one caller in each turn; tenants take turns. While another tenant has
 * short requests in progress, long computations get at most a third of the time: a short request needs several turns,
 * and would wait for a long computation in each of them.
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
  // Runs after the computation rests again or ends, since its promises settle before.
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

/** Short requests in progress, by tenant. */
const underWay = new Map<string, number>();
let all = 0;

/**
 * Counts a short request: it needs the event loop briefly and several times, with waits for the database in between.
 * Long computations of other tenants leave it room until the returned function is called, which is idempotent.
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

/** Whether another tenant has a short request in progress. */
export function othersHaveShortWork(tenant: string): boolean {
  return all > (underWay.get(tenant) ?? 0);
}
