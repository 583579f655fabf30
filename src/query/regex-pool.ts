import { ThreadLost } from '../core/fairness/thread.ts';
import { type ThreadCall, type ThreadPool, threaded, threads } from '../core/fairness/threads.ts';
import { QueryError } from './query-error.ts';
import { compileRegex, measureRegex, RegexFault, regexStepBudget, regexSteps, regexWorkLimit } from './regex.ts';

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
  readonly #threads: ThreadPool;
  readonly #timeLimit: number;

  /** `timeLimit`: milliseconds of wall time after which the thread of a call is ended. */
  constructor(pool: ThreadPool = threads, timeLimit = 10_000) {
    this.#threads = pool;
    this.#timeLimit = timeLimit;
  }

  /**
   * Returns one byte for each name: 1 where the pattern matches. Rejects with QueryError where the pattern is invalid
   * or needs more than is left of the budget, and with AnnalsError (429) where too many calls of the tenant wait
   * already.
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

  async #matchInThread(source: string, names: readonly string[], budget: RegexBudget): Promise<Uint8Array> {
    const matched = new Uint8Array(names.length);
    let start = 0;
    const take = (result: unknown) => {
      const { outcome, processorTime } = result as PartResult;
      budget.processorTime -= processorTime;
      if (outcome === 'too slow' || budget.processorTime < 0) throw new RegexFault(tooSlow, 0);
      if ('fault' in outcome) throw new RegexFault(outcome.fault, 0);
      matched.set(outcome, start);
      start += outcome.length;
    };
    try {
      await this.#threads.callEach(partsOf(source, names, budget), this.#timeLimit, take);
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
function* partsOf(source: string, names: readonly string[], budget: RegexBudget): Generator<ThreadCall> {
  for (let start = 0; start < names.length; ) {
    const end = endOfPart(names, start);
    yield matchPart.callOf(source, names.slice(start, end), budget.processorTime);
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

interface PartResult {
  /** One byte for each name, 1 where it matches; or the reason why there is no result. */
  readonly outcome: Uint8Array | { readonly fault: string } | 'too slow';
  /** Milliseconds of the thread's processor time that the part took. */
  readonly processorTime: number;
}

/** In a thread: matches a part of the names, within the milliseconds of processor time that the call has left. */
const matchPart = threaded(
  import.meta.url,
  'matchPart',
  (source: string, names: readonly string[], timeLeft: number): PartResult => {
    const start = threadTime();
    const outcome = outcomeOf(source, names, () => threadTime() - start > timeLeft);
    return { outcome, processorTime: threadTime() - start };
  },
);

/** The latest patterns, because calls of several tenants take turns. */
const compiled = new Map<string, (name: string) => boolean>();
const maxCompiled = 4;

function outcomeOf(source: string, names: readonly string[], isOverdue: () => boolean): PartResult['outcome'] {
  let matches: (name: string) => boolean;
  try {
    matches = matcherOf(source);
  } catch (error) {
    if (error instanceof RegexFault) return { fault: error.expected };
    throw error;
  }
  const matched = new Uint8Array(names.length);
  let unchecked = 0;
  for (const [index, name] of names.entries()) {
    matched[index] = matches(name) ? 1 : 0;
    unchecked += name.length + 1;
    if (unchecked < charactersBetweenChecks) continue;
    if (isOverdue()) return 'too slow';
    unchecked = 0;
  }
  return matched;
}

function matcherOf(source: string): (name: string) => boolean {
  const known = compiled.get(source);
  if (known !== undefined) return known;
  if (compiled.size === maxCompiled) compiled.delete(compiled.keys().next().value ?? '');
  const matches = compileRegex(source);
  compiled.set(source, matches);
  return matches;
}

/** Few enough that even the slowest pattern takes well under a second for them. */
const charactersBetweenChecks = 1000;

/** Milliseconds of processor time of this thread. Unlike wall time, it does not count other work of the machine. */
function threadTime(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
