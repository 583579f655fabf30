import type pg from 'pg';
import { unlessAborted, withDeadline } from '../concurrency/deadline.ts';
import { Semaphore } from '../concurrency/semaphore.ts';
import { TimeSlice } from '../concurrency/time-slice.ts';
import type { Database, DatabaseTransaction } from '../db/database.ts';
import type { Statements } from '../db/statements.ts';
import { inStoppableTransaction, stoppablePool } from '../db/stoppable.ts';
import type { Query } from '../query/ast.ts';
import { RegexBudget, type RegexMatcherPool } from '../query/regex-pool.ts';
import type { StopSignal } from '../stop-signal.ts';
import type { Dictionary } from './names/dictionary.ts';
import { DictionaryCache } from './names/dictionary-cache.ts';
import { asConjunction } from './plan/conjunction.ts';
import { type Expression, isOnDocuments, termsOf } from './plan/expression.ts';
import { patternsOnIds } from './plan/id-patterns.ts';
import { asksForDocuments, resolve } from './plan/resolve.ts';
import { type Plan, planTallies } from './plan/tally-plan.ts';
import { readDocumentsPage } from './read/documents-page-store.ts';
import { readPlaces } from './read/long-page.ts';
import { mergedPage } from './read/merged-page.ts';
import type { PageRead } from './read/page-rows.ts';
import { entryConditions, namedDocuments } from './read/predicate.ts';
import { searchOf } from './read/search.ts';
import { countEntries, findPlaces, type Search } from './read/search-store.ts';
import { openSnapshot, resolveInTransaction } from './read/snapshot.ts';
import { type PageOfEntries, type Place, readExtent } from './read/store.ts';
import { readTalliedPage, readTalliedPlaces } from './read/tallied-page-store.ts';
import { defaultWindowFrom, hasFromBound } from './window.ts';

export interface AskedPage {
  skip: number;
  size: number;
  /** Given when whoever asks has gone: what runs for them in the database ends, and the promise rejects with its reason. */
  signal?: StopSignal | undefined;
  /** Whether a page with much text may come as `pieces`; without, one with very much is refused. */
  inPieces?: boolean;
}

/**
 * Answers `size` entries after the first `skip`, newest first, and how many there are in all; a query that takes too long
 * is a 503.
 */
export type FindPage = (tenant: string, query: Query, page: AskedPage) => Promise<PageOfEntries>;

interface Dependencies {
  pool: pg.Pool;
  db: Database;
  regexes: RegexMatcherPool;
  now: () => number;
  /** Shared with whoever else asks for names; left out: one of its own. */
  dictionaries?: DictionaryCache;
  /** Milliseconds that a query may take, whatever it waits for; 30 seconds unless told. */
  timeLimit?: number;
}

interface Question {
  tenant: string;
  query: Query;
  /** The first millisecond of the window. */
  from: number;
  now: number;
  skip: number;
  size: number;
  inPieces: boolean;
}

// New names come seldom. Where each of so many looks finds some, they are read in the snapshot that is then answered from.
const mostAttempts = 3;
const usualTimeLimit = 30_000;
/** Questions that may take long leave connections to all others, and those of one tenant some to those of the others. */
const longQuestions = { places: 6, name: 'queries that take long' };

export function createFindPage(dependencies: Dependencies): FindPage {
  const { pool, db, regexes, now, timeLimit = usualTimeLimit } = dependencies;
  const { dictionaries = new DictionaryCache(pool) } = dependencies;
  const turns = new Semaphore(longQuestions);

  return async (tenant, query, { skip, size, signal: gone, inPieces = false }) => {
    const moment = now();
    const from = hasFromBound(query) ? 0 : Math.max(0, defaultWindowFrom(moment));
    const question: Question = { tenant, query, from, now: moment, skip, size, inPieces };
    const find: Find = asksForDocuments(query) ? findWithDocuments : findInTallies;
    return await withDeadline(timeLimit, gone, async (signal) => {
      const means: Means = { pool, db, statements: stoppablePool(pool, signal), regexes, turns, signal, timeLimit };
      let dictionary = dictionaries.known(tenant) ?? (await unlessAborted(dictionaries.get(tenant), signal));
      for (let attempt = 0; attempt < mostAttempts; attempt++) {
        const found = await find(means, question, dictionary);
        if (found === 'long') break;
        if (found !== undefined) return found;
        dictionary = await unlessAborted(dictionaries.get(tenant, dictionary), signal);
      }
      return await findInSnapshot(means, question, dictionary);
    });
  };
}

interface Means {
  pool: pg.Pool;
  db: Database;
  /** The pool for one statement at a time. */
  statements: Statements;
  regexes: RegexMatcherPool;
  turns: Semaphore;
  signal: StopSignal;
  timeLimit: number;
}

type Find = (means: Means, question: Question, dictionary: Dictionary) => Promise<PageRead>;

const findInTallies: Find = async (means, question, dictionary) => {
  const { statements, regexes, signal } = means;
  const { tenant, query, from, now, skip, size } = question;
  const expression = await resolve(query, { dictionary, regexes, budget: new RegexBudget() });
  const plan = await planTallies(expression, dictionary, from, new TimeSlice(signal));
  if (plan === undefined || isLarge(plan)) return await findInSnapshot(means, question, dictionary);
  const plannedByNames = query.operands.length > 0;
  const asked = { now, intervals: plan.intervals, skip, size, dictionary, plannedByNames };
  return await readTalliedPage(statements, tenant, asked);
};

const findWithDocuments: Find = async (means, question, dictionary) => {
  if (patternsOnIds(question.query).length > 0) return await findInSnapshot(means, question, dictionary);
  const { statements, regexes, signal } = means;
  const { tenant, query, from, now, skip, size } = question;
  const expression = await resolve(query, { dictionary, regexes, budget: new RegexBudget() });
  const conjunction = await asConjunction(expression, dictionary, from, new TimeSlice(signal));
  const documents = conjunction === undefined ? undefined : namedDocuments(conjunction.onDocuments);
  if (conjunction === undefined || documents === undefined) return await findInSnapshot(means, question, dictionary);
  const { since, before, kinds, actors } = conjunction;
  const asked = { now, since, before, kinds, actors, ...documents, skip, size, dictionary };
  return await readDocumentsPage(statements, tenant, asked);
};

/** Several statements, one snapshot, and the names as that snapshot has them. */
async function findInSnapshot(means: Means, question: Question, known: Dictionary): Promise<PageOfEntries> {
  const { regexes, turns, signal, timeLimit } = means;
  const { tenant, query, from, now } = question;
  const work = async (transaction: DatabaseTransaction) => {
    const { horizon, dictionary } = await openSnapshot(transaction, tenant, now, known);
    const since = Math.max(from, horizon);
    const pace = new TimeSlice(signal);
    const expression = await resolveInTransaction(transaction, query, { tenant, since, dictionary, regexes, pace });
    const searching = { ...question, since, dictionary, pace };
    const { total, places } = await findInTransaction(transaction, expression, searching);
    return { total, ...(await readPlaces(means.pool, transaction, places, question)) };
  };
  return await turns.use(
    tenant,
    signal,
    async () => await inStoppableTransaction(means, { signal, timeLimit, isolation: 'repeatable read' }, work),
  );
}

interface Searching extends Question {
  since: number;
  dictionary: Dictionary;
  pace: TimeSlice;
}

async function findInTransaction(
  transaction: DatabaseTransaction,
  expression: Expression,
  searching: Searching,
): Promise<{ total: number; places: Place[] }> {
  const { tenant, since, now, dictionary, skip, size, pace } = searching;
  const plan = await planTallies(expression, dictionary, since, pace);
  const conditions = await entryConditions(expression, dictionary, pace);
  const everything: Search = { tenant, since, condition: conditions.satisfies(expression) };
  if (plan === undefined || !(await isWorthIt(transaction, plan, searching))) {
    return await findPart(transaction, everything, { skip, size });
  }
  const { intervals } = plan;
  const tallied = { now, horizon: since, intervals, dictionary };
  if (!termsOf(expression).some(isOnDocuments)) {
    return await readTalliedPlaces(transaction, tenant, { ...tallied, skip, size });
  }
  const search = await searchOf(expression, conditions, searching);
  if (intervals.length === 0) return await findPart(transaction, search, { skip, size });
  const rest = await countEntries(transaction, search);
  return await mergedPage(transaction, { tallied, search, rest, everything, skip, size });
}

async function findPart(
  transaction: DatabaseTransaction,
  search: Search,
  page: { skip: number; size: number },
): Promise<{ total: number; places: Place[] }> {
  const total = await countEntries(transaction, search);
  return { total, places: page.skip >= total ? [] : await findPlaces(transaction, search, page) };
}

/** Whether it may be cheaper to read the entries than the tallies. */
function isLarge({ keys, intervals }: Plan): boolean {
  return keys > 20_000 || intervals.length > 8;
}

/** Whether it is cheaper to read the tallies; in nanoseconds, as measured with 1.2 million entries. */
async function isWorthIt(
  transaction: DatabaseTransaction,
  plan: Plan,
  { tenant, since }: { tenant: string; since: number },
): Promise<boolean> {
  if (!isLarge(plan)) return true;
  const oldest = plan.intervals.at(-1)?.since ?? since;
  const { entries, pending } = await readExtent(transaction, tenant, Math.max(since, oldest));
  return plan.keys * 16_000 + plan.intervals.length * pending * 560 < entries * 500;
}
