import { availableParallelism } from 'node:os';
import { AnnalsError } from '../errors.ts';
import { QueryError } from './query-error.ts';
import { compileRegex, measureRegex, RegexFault, regexStepBudget, regexSteps, regexWorkLimit } from './regex.ts';
import { RegexThread } from './regex-thread.ts';

/** The budget that the regular expressions of one query share; each call takes from it (contract 4). */
export class RegexBudget {
  /** Sizes of patterns times characters of names. */
  steps: number;
  /** Milliseconds of a thread's processor time. */
  processorTime: number;

  constructor(limits: { steps?: number; processorTime?: number } = {}) {
    this.steps = limits.steps ?? regexStepBudget;
    this.processorTime = limits.processorTime ?? 1000;
  }
}

export interface RegexMatcherPoolOptions {
  /** Threads at most; each starts when it is first needed. */
  readonly threads?: number;
  /** Calls that may wait for a thread. The next one is answered with 503. */
  readonly waiting?: number;
  /** Milliseconds of wall time after which the thread of a call is ended. */
  readonly timeLimit?: number;
  /** MiB of heap that a thread may have. A thread that needs more is ended. */
  readonly memory?: number;
}

export interface MatchNamesOptions {
  /** The position of the pattern's term in the query, for the error. */
  readonly position?: number;
  readonly budget?: RegexBudget;
}

/**
 * Tries regular expressions on many names in worker threads, so that no other request waits (contract 4). Idle threads do not
 * keep the process alive.
 */
export class RegexMatcherPool {
  readonly #limits: Required<RegexMatcherPoolOptions>;
  readonly #threads = new Set<RegexThread>();
  readonly #idle: RegexThread[] = [];
  readonly #waiting: { resolve(thread: RegexThread): void; reject(error: Error): void }[] = [];
  #closed = false;

  constructor(options: RegexMatcherPoolOptions = {}) {
    this.#limits = {
      threads: options.threads ?? Math.max(1, Math.min(4, availableParallelism() - 1)),
      waiting: options.waiting ?? 128,
      timeLimit: options.timeLimit ?? 10_000,
      memory: options.memory ?? 256,
    };
  }

  /**
   * Returns one byte for each name: 1 where the pattern matches. Rejects with QueryError where the pattern is invalid or needs
   * more than is left of the budget, and with AnnalsError (503) where too many calls wait already or the pool is closed.
   */
  async matchNames(source: string, names: readonly string[], options: MatchNamesOptions = {}): Promise<Uint8Array> {
    const { position = 1, budget = new RegexBudget() } = options;
    try {
      const { size, work } = measureRegex(source);
      const steps = regexSteps(size, names);
      budget.steps -= steps;
      if (work > regexWorkLimit || budget.steps < 0) throw new RegexFault(tooManySteps, 0);
      if (steps <= inlineSteps && work <= inlineWork) return matchHere(source, names);
      return await this.#matchInThread(source, names, budget);
    } catch (error) {
      if (error instanceof RegexFault) throw new QueryError(position, error.expected);
      throw error;
    }
  }

  /** Starts a thread and lets it match once, so that the first query does not wait for that. */
  async warmUp(): Promise<void> {
    const names = Array.from({ length: 300 }, (_, index) => `Name ${index}`);
    await this.#matchInThread('^N.*[0-4]$', names, new RegexBudget());
  }

  /** Ends all threads. Calls under way reject with 503. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const { reject } of this.#waiting.splice(0)) reject(unavailable());
    await Promise.all([...this.#threads].map((thread) => thread.end()));
  }

  async #matchInThread(source: string, names: readonly string[], budget: RegexBudget): Promise<Uint8Array> {
    const thread = await this.#acquire();
    let timedOut = false;
    const timer = setTimeout(() => {
      timedOut = true;
      void thread.end();
    }, this.#limits.timeLimit);
    try {
      return await matchInChunks(thread, source, names, budget);
    } catch (error) {
      if (timedOut || isOutOfMemory(error)) throw new RegexFault(tooSlow, 0);
      throw this.#closed ? unavailable() : error;
    } finally {
      clearTimeout(timer);
      this.#release(thread);
    }
  }

  async #acquire(): Promise<RegexThread> {
    if (this.#closed) throw unavailable();
    for (let idle = this.#idle.pop(); idle !== undefined; idle = this.#idle.pop()) {
      if (!idle.ended) return idle;
      this.#threads.delete(idle);
    }
    if (this.#threads.size < this.#limits.threads) return this.#start();
    if (this.#waiting.length >= this.#limits.waiting) throw unavailable();
    return await new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
  }

  #start(): RegexThread {
    const thread = new RegexThread(this.#limits.memory);
    this.#threads.add(thread);
    return thread;
  }

  #release(thread: RegexThread): void {
    if (thread.ended) this.#threads.delete(thread);
    if (this.#closed) return;
    const next = this.#waiting.shift();
    if (next !== undefined) next.resolve(thread.ended ? this.#start() : thread);
    else if (!thread.ended) this.#idle.push(thread);
  }
}

/** Below this a pattern takes a millisecond or two, which is less than the round trip to a thread costs. */
const inlineSteps = 50_000;
const inlineWork = 500;

const tooManySteps = `a regular expression whose size times the characters of the names it is tried on stays within ${regexStepBudget.toLocaleString('en')}; narrow the query or simplify the pattern`;
const tooSlow =
  'a regular expression that takes less time and memory on the names it is tried on; simplify the pattern';

function matchHere(source: string, names: readonly string[]): Uint8Array {
  const matches = compileRegex(source);
  return Uint8Array.from(names, (name) => (matches(name) ? 1 : 0));
}

/** Sends the names to the thread in pieces, because a copy of millions at once would block the event loop. */
async function matchInChunks(
  thread: RegexThread,
  source: string,
  names: readonly string[],
  budget: RegexBudget,
): Promise<Uint8Array> {
  const matched = new Uint8Array(names.length);
  for (let start = 0; start < names.length; ) {
    const end = endOfChunk(names, start);
    const request = {
      source: start === 0 ? source : undefined,
      names: names.slice(start, end),
      processorTime: budget.processorTime,
    };
    const { outcome, processorTime } = await thread.ask(request);
    budget.processorTime -= processorTime;
    if (outcome === 'too slow' || budget.processorTime < 0) throw new RegexFault(tooSlow, 0);
    if ('fault' in outcome) throw new RegexFault(outcome.fault, 0);
    matched.set(outcome, start);
    start = end;
  }
  return matched;
}

function isOutOfMemory(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY';
}

function endOfChunk(names: readonly string[], start: number): number {
  let characters = 0;
  let end = start;
  while (end < names.length && characters < 65_536) {
    characters += (names[end]?.length ?? 0) + 16;
    end += 1;
  }
  return end;
}

function unavailable(): AnnalsError {
  return new AnnalsError('service_unavailable', 'Too many regular expressions are being matched. Try again shortly.', {
    headers: { 'Retry-After': '1' },
  });
}
