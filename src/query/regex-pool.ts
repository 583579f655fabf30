import { ThreadLost, threadFile } from '../core/concurrency/thread.ts';
import { defaultThreads, ThreadPool } from '../core/concurrency/thread-pool.ts';
import { QueryError } from './query-error.ts';
import { compileRegex, measureRegex, RegexFault, regexStepBudget, regexSteps, regexWorkLimit } from './regex.ts';
import type { RegexReply, RegexRequest } from './regex-worker.ts';

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
  /** Maximum number of threads. Each starts when it is first needed. */
  readonly threads?: number;
  /** Maximum number of calls of one tenant that wait for a thread. The next one is answered with 429. */
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
 * Tries regular expressions on many names in worker threads, so that no other request waits (contract 4). Tenants take
 * turns after each part of the names, so one that tries many names does not keep the others waiting (contract 11).
 */
export class RegexMatcherPool {
  readonly #threads: ThreadPool<RegexRequest, RegexReply>;
  readonly #timeLimit: number;

  constructor(options: RegexMatcherPoolOptions = {}) {
    this.#timeLimit = options.timeLimit ?? 10_000;
    this.#threads = new ThreadPool({
      file: threadFile(import.meta.url, 'regex-worker'),
      threads: options.threads ?? defaultThreads(),
      memory: options.memory ?? 256,
      ...(options.waiting === undefined ? {} : { maxWaitingOfTenant: options.waiting }),
      name: 'regular expressions at work',
    });
  }

  /**
   * Returns one byte for each name: 1 where the pattern matches. Rejects with QueryError where the pattern is invalid or needs
   * more than is left of the budget, with AnnalsError (429) where too many calls of the tenant wait already, and with
   * AnnalsError (503) where the pool is closed.
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
    await this.#threads.close();
  }

  async #matchInThread(source: string, names: readonly string[], budget: RegexBudget): Promise<Uint8Array> {
    const matched = new Uint8Array(names.length);
    let start = 0;
    const take = ({ outcome, processorTime }: RegexReply) => {
      budget.processorTime -= processorTime;
      if (outcome === 'too slow' || budget.processorTime < 0) throw new RegexFault(tooSlow, 0);
      if ('fault' in outcome) throw new RegexFault(outcome.fault, 0);
      matched.set(outcome, start);
      start += outcome.length;
    };
    try {
      await this.#threads.askEach(partsOf(source, names, budget), this.#timeLimit, take);
    } catch (error) {
      throw error instanceof ThreadLost && error.isTooSlow ? new RegexFault(tooSlow, 0) : error;
    }
    return matched;
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

/** The names in parts, because a copy of millions at once would block the event loop. */
function* partsOf(source: string, names: readonly string[], budget: RegexBudget): Generator<RegexRequest> {
  for (let start = 0; start < names.length; ) {
    const end = endOfPart(names, start);
    yield { source, names: names.slice(start, end), processorTime: budget.processorTime };
    start = end;
  }
}

/** A thread tries so many characters of names, 16 more for each name, before another tenant may have it. */
export const charactersOfPart = 64 * 1024;

function endOfPart(names: readonly string[], start: number): number {
  let characters = 0;
  let end = start;
  while (end < names.length && characters < charactersOfPart) {
    characters += (names[end]?.length ?? 0) + 16;
    end += 1;
  }
  return end;
}
