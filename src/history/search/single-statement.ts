import { TimeSlice } from '../../core/fairness/time-slice.ts';
import { RegexBudget } from '../../query/regex-pool.ts';
import type { EntryRow } from '../entries/entry-store.ts';
import type { PageQuery } from './find-page.ts';
import { type Dictionary, entitiesOf } from './names/dictionary.ts';
import { noPathNames } from './names/path-name-store.ts';
import {
  type PageRead,
  readDocumentsPage,
  readPathsPage,
  readTalliedPage,
  severalStatements,
} from './page-statements.ts';
import { type Expression, isGroup, isOpen, type OpenTerm, type Term } from './plan/expression.ts';
import { patternsOnIds } from './plan/id-patterns.ts';
import { decidingPatterns } from './plan/path-candidates.ts';
import { needsDocumentIds, resolve, termsOnPaths } from './plan/resolve.ts';
import { actorsOf, isLarge, planTallies, possibleKinds } from './plan/tally-plan.ts';
import { namedDocuments } from './predicate.ts';
import type { QueryAtMoment, Reading } from './snapshot.ts';

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
  const byDocuments = needsDocumentIds(page.query);
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

/** An AND of terms, exactly one of which tallies cannot answer. */
interface Conjunction {
  readonly since: number;
  readonly before: number | null;
  /** null means any. */
  readonly kinds: readonly number[] | null;
  readonly actors: readonly number[] | null;
  readonly open: OpenTerm;
}

/** Converts the expression to a conjunction if it is one. `from` is the beginning of the window. */
async function asConjunction(
  expression: Expression,
  dictionary: Dictionary,
  from: number,
  slice = new TimeSlice(),
): Promise<Conjunction | undefined> {
  const terms = flat(expression);
  if (terms === undefined) return undefined;
  const times = terms.filter((term) => term.kind === 'time');
  const actors = terms.filter((term) => term.kind === 'actors');
  const [open, ...others] = terms.filter(isOpen);
  if (open === undefined || others.length > 0) return undefined;
  const isImplied = (term: Term) => open.kind === 'related' && term === open.implies;
  const before = Math.min(...times.map((term) => term.to ?? Number.POSITIVE_INFINITY));
  return {
    since: Math.max(from, ...times.map((term) => term.from ?? 0)),
    before: before === Number.POSITIVE_INFINITY ? null : before,
    kinds: await possibleKinds({ kind: 'and', operands: terms.filter((term) => !isImplied(term)) }, dictionary, slice),
    actors:
      actors.length === 0
        ? null
        : await actorsOf({ kind: 'and', operands: actors }, { dictionary, slice, classes: [], steps: 0 }),
    open,
  };
}

function flat(expression: Expression): Term[] | undefined {
  if (!isGroup(expression)) return [expression];
  if (expression.kind === 'or' && expression.operands.length !== 1) return undefined;
  const parts = expression.operands.map(flat);
  return parts.every((part) => part !== undefined) ? parts.flat() : undefined;
}
