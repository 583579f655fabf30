import { TimeSlice } from '../../core/concurrency/time-slice.ts';
import { RegexBudget } from '../../query/regex-pool.ts';
import type { EntryRow } from '../entries/entry-store-new.ts';
import { readDocumentsPage } from './documents-page.ts';
import { type Dictionary, entitiesOf } from './names/dictionary.ts';
import { noPathNames } from './names/path-name-store.ts';
import type { PageQuery } from './page-query.ts';
import { type PageRead, severalStatements } from './page-rows.ts';
import { readPathsPage } from './paths-page.ts';
import { asConjunction } from './plan/conjunction.ts';
import type { Expression } from './plan/expression.ts';
import { patternsOnIds } from './plan/id-patterns.ts';
import { decidingPatterns } from './plan/path-candidates.ts';
import { asksForDocuments, resolve, termsOnPaths } from './plan/resolve.ts';
import { isLarge, planTallies } from './plan/tally-plan.ts';
import { namedDocuments } from './predicate.ts';
import type { QueryAtMoment, Reading } from './snapshots.ts';
import { readTalliedPage } from './tallied-page.ts';

/**
 * Answers a page with one statement if it can: from tallies, for documents that the query names one by one, or for paths whose
 * numbers tell them.
 */
export async function readInSingleStatement(
  reading: Reading,
  page: WantedPage,
  dictionary: Dictionary,
): Promise<PageRead> {
  if (patternsOnIds(page.query).length > 0) return severalStatements;
  const { regexes } = reading;
  const means = { dictionary, regexes, budget: new RegexBudget(), paths: noPathNames };
  const expression = await resolve(page.query, means);
  const byDocuments = asksForDocuments(page.query);
  const read = termsOnPaths(page.query) !== undefined ? readPaths : byDocuments ? readDocuments : readTallies;
  return await read(reading, page, dictionary, expression);
}

/** So many entries cost less than the statements that would count them one value at a time. */
const maxFew = 100;

/**
 * All entries of a query for paths in one statement, if they are few and numbers tell them; undefined: Annals needs several
 * statements.
 */
export async function readFew(
  reading: Reading,
  asked: QueryAtMoment,
  dictionary: Dictionary,
): Promise<EntryRow[] | undefined> {
  if (termsOnPaths(asked.query) === undefined) return undefined;
  const page = { ...asked, skip: 0, size: maxFew, maxTotal: maxFew };
  const read = await readInSingleStatement(reading, page, dictionary);
  return read.kind === 'page' ? read.entries : undefined;
}

type WantedPage = QueryAtMoment & Pick<PageQuery, 'skip' | 'size'> & { readonly maxTotal?: number };

type Read = (reading: Reading, page: WantedPage, dictionary: Dictionary, expression: Expression) => Promise<PageRead>;

const readTallies: Read = async ({ pool }, { tenant, query, from, ...page }, dictionary, expression) => {
  const plan = await planTallies(expression, dictionary, from, new TimeSlice());
  if (plan === undefined || isLarge(plan)) return severalStatements;
  const byNames = query.operands.length > 0;
  return await readTalliedPage(pool, tenant, { ...page, intervals: plan.intervals }, { dictionary, byNames });
};

const readDocuments: Read = async ({ pool }, { tenant, from, ...page }, dictionary, expression) => {
  const conjunction = await asConjunction(expression, dictionary, from, new TimeSlice());
  const documents = conjunction === undefined ? undefined : namedDocuments(conjunction.open);
  if (conjunction === undefined || documents === undefined) return severalStatements;
  // The index has a separate range of ids for each kind.
  const kinds =
    documents.ids === null ? conjunction.kinds : (conjunction.kinds ?? dictionary.kinds.map(({ id }) => id));
  return await readDocumentsPage(pool, tenant, { ...page, ...conjunction, ...documents, kinds, dictionary });
};

const readPaths: Read = async ({ pool }, { tenant, from, ...page }, dictionary, expression) => {
  const conjunction = await asConjunction(expression, dictionary, from, new TimeSlice());
  if (conjunction?.open.kind !== 'path') return severalStatements;
  const patterns = decidingPatterns(conjunction.open.path);
  if (patterns === undefined) return severalStatements;
  const entities = entitiesOf(conjunction.kinds, dictionary);
  const { maxTotal = null } = page;
  return await readPathsPage(pool, tenant, { ...page, ...conjunction, entities, patterns, maxTotal, dictionary });
};
