import { TimeSlice } from '../../core/fairness/time-slice.ts';
import type { Statements } from '../../postgres/statements.ts';
import { RegexBudget } from '../../query/regex-pool.ts';
import type { EntryRow, PlanName } from '../entries/entry-store.ts';
import { type Dictionary, entitiesOf } from './names/dictionary.ts';
import { noPathNames } from './names/path-name-store.ts';
import { type Expression, type ExpressionTerm, isGroup, isOpen, type OpenTerm } from './plan/expression.ts';
import { patternsOnIds } from './plan/id-patterns.ts';
import { decidingPatterns } from './plan/path-candidates.ts';
import { needsDocumentIds, resolve, termsOnPaths } from './plan/resolve.ts';
import { actorsOf, isLarge, planTallies, possibleKinds } from './plan/tally-plan.ts';
import { namedDocuments } from './predicate.ts';
import type { QueryAtMoment, ReadDependencies } from './snapshot.ts';
import { type TalliedPage, talliedPageStatement } from './tally-store.ts';

/**
 * `outdated names`: the statement's snapshot has names that the dictionary lacks. `several statements`: one statement
 * cannot answer, or should not, because the plan is large or an entry has much text.
 */
export type PageRead =
  | { readonly plan: PlanName; readonly total: number; readonly entries: EntryRow[] }
  | 'outdated names'
  | 'several statements';

interface StatementPage extends QueryAtMoment {
  readonly skip: number;
  readonly size: number;
  /** With more entries the answer is `several statements`. */
  readonly maxTotal?: number;
}

/**
 * Answers a page with one statement if possible: from tallies, for documents that the query names one by one, or for
 * paths that their numbers identify.
 */
export async function readInSingleStatement(
  dependencies: ReadDependencies,
  page: StatementPage,
  dictionary: Dictionary,
): Promise<PageRead> {
  if (patternsOnIds(page.query).length > 0) return 'several statements';
  const { regexes } = dependencies;
  const resolver = { dictionary, regexes, budget: new RegexBudget(), paths: noPathNames };
  const expression = await resolve(page.query, resolver);
  const onDocuments = needsDocumentIds(page.query);
  const read = termsOnPaths(page.query) !== undefined ? readPaths : onDocuments ? readDocuments : readTallies;
  return await read(dependencies, page, dictionary, expression);
}

/** So many entries cost less than the statements that would count them one value at a time. */
const maxFew = 100;

/**
 * All entries of a query for paths in one statement, if they are few and identified by the numbers of their paths.
 * Undefined if that takes several statements.
 */
export async function readFew(
  dependencies: ReadDependencies,
  query: QueryAtMoment,
  dictionary: Dictionary,
): Promise<EntryRow[] | undefined> {
  if (termsOnPaths(query.query) === undefined) return undefined;
  const page = { ...query, skip: 0, size: maxFew, maxTotal: maxFew };
  const read = await readInSingleStatement(dependencies, page, dictionary);
  return typeof read === 'string' ? undefined : read.entries;
}

type Read = (
  dependencies: ReadDependencies,
  page: StatementPage,
  dictionary: Dictionary,
  expression: Expression,
) => Promise<PageRead>;

const readTallies: Read = async ({ pool }, { tenant, query, from, ...page }, dictionary, expression) => {
  const plan = await planTallies(expression, dictionary, from, new TimeSlice());
  if (plan === undefined || isLarge(plan)) return 'several statements';
  const byNames = query.operands.length > 0;
  return await readTalliedPage(pool, tenant, { ...page, intervals: plan.intervals }, { dictionary, byNames });
};

/** `byNames`: whether names decided the intervals. A name that the dictionary lacks might then belong to them. */
export async function readTalliedPage(
  statements: Statements,
  tenant: string,
  page: TalliedPage,
  { dictionary, byNames }: { dictionary: Dictionary; byNames: boolean },
): Promise<PageRead> {
  const { since, recent, lineage } = dictionary;
  const names = byNames ? [since, recent, lineage] : [null, null, lineage];
  const { rows } = await statements.query<PageRow>(talliedPageStatement(tenant, page, names));
  return pageOf(rows, dictionary, 'tallies');
}

const readDocuments: Read = async ({ pool }, { tenant, now, from, skip, size }, dictionary, expression) => {
  const conjunction = await asConjunction(expression, dictionary, from);
  const named = conjunction && namedDocuments(tenant, conjunction.open);
  if (conjunction === undefined || named === undefined) return 'several statements';
  const { documents, relatedDocuments, relatedEntities, ids, terms, texts, context } = named;
  // The index has a separate range of ids for each kind.
  const kinds = ids === null ? conjunction.kinds : (conjunction.kinds ?? dictionary.kinds.map(({ id }) => id));
  const { rows } = await pool.query<PageRow>({
    name: 'documents page',
    text: `select page from change_page_documents(
             $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18::text::xid8, $19, $20)`,
    values: [
      ...[tenant, now, conjunction.since, conjunction.before, kinds, conjunction.actors],
      ...[documents, relatedDocuments, relatedEntities, ids?.from, ids?.before, ids?.like],
      ...[terms, texts, context, skip, size, dictionary.since, dictionary.recent, dictionary.lineage],
    ],
  });
  return pageOf(rows, dictionary, 'documents');
};

const readPaths: Read = async ({ pool }, { tenant, now, from, ...page }, dictionary, expression) => {
  const conjunction = await asConjunction(expression, dictionary, from);
  if (conjunction?.open.kind !== 'path') return 'several statements';
  const patterns = decidingPatterns(conjunction.open.path);
  if (patterns === undefined) return 'several statements';
  const { since, before, kinds, actors } = conjunction;
  const { skip, size, maxTotal = null } = page;
  const { rows } = await pool.query<PageRow>({
    name: 'paths page',
    text: 'select page from change_page_paths($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12::text::xid8, $13, $14)',
    values: [
      ...[tenant, now, since, before, kinds, actors, entitiesOf(kinds, dictionary), patterns],
      ...[skip, size, maxTotal, dictionary.since, dictionary.recent, dictionary.lineage],
    ],
  });
  return pageOf(rows, dictionary, 'search');
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
): Promise<Conjunction | undefined> {
  const terms = conjuncts(expression);
  if (terms === undefined) return undefined;
  const slice = new TimeSlice();
  const times = terms.filter((term) => term.kind === 'time');
  const actors = terms.filter((term) => term.kind === 'actors');
  const [open, ...furtherOpen] = terms.filter(isOpen);
  if (open === undefined || furtherOpen.length > 0) return undefined;
  const isImplied = (term: ExpressionTerm) => open.kind === 'related' && term === open.implies;
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

function conjuncts(expression: Expression): ExpressionTerm[] | undefined {
  if (!isGroup(expression)) return [expression];
  if (expression.kind === 'or' && expression.operands.length !== 1) return undefined;
  const parts = expression.operands.map(conjuncts);
  return parts.every((part) => part !== undefined) ? parts.flat() : undefined;
}

/** One text for a page: the driver takes much longer to read rows and columns than Annals takes to split a text. */
interface PageRow {
  page: string;
}

/**
 * Separates the parts of the page's text. JSON texts cannot contain it; an id, a name or a schema version may. The head
 * has the total (empty where the statement gave up), whether the snapshot has no names that the dictionary lacks, and
 * the number of entries. The parts of each entry follow, as `sql/history/change_page_entry.sql` writes them.
 */
const separator = '\u001e';
const partsOfHead = 3;
const partsOfEntry = 10;

function pageOf([row]: readonly PageRow[], dictionary: Dictionary, plan: PlanName): PageRead {
  if (row === undefined) throw new Error('a page came without its total');
  const parts = row.page.split(separator);
  const [total = '', current, count] = parts;
  if (current !== 'true') return 'outdated names';
  if (total === '') return 'several statements';
  // An id, a name or a schema version contains the separator.
  if (parts.length !== partsOfHead + Number(count) * partsOfEntry) return 'several statements';
  const entries: EntryRow[] = [];
  for (let first = partsOfHead; first < parts.length; first += partsOfEntry) {
    const entry = entryOf(parts, first, dictionary);
    if (entry === undefined) return 'outdated names';
    if (entry.paths === '') return 'several statements';
    entries.push(entry);
  }
  return { plan, total: Number(total), entries };
}

/** The entry whose parts begin at `first`; undefined if the dictionary lacks its names. */
function entryOf(parts: readonly string[], first: number, dictionary: Dictionary): EntryRow | undefined {
  const part = (index: number) => parts[first + index] ?? '';
  const kind = dictionary.kindOf.get(Number(part(1)));
  const actor = dictionary.actorOf.get(Number(part(2)));
  if (kind === undefined || actor === undefined) return undefined;
  return {
    at: Number(part(0)),
    type: kind.type,
    entity: kind.entity,
    entityId: part(3),
    name: textOrNull(part(4)),
    schemaVersion: textOrNull(part(5)),
    actor: actor.name,
    ...(actor.actorId !== undefined && { actorId: actor.actorId }),
    ...(actor.onBehalfOfName !== undefined && { onBehalfOfName: actor.onBehalfOfName }),
    ...(actor.onBehalfOfId !== undefined && { onBehalfOfId: actor.onBehalfOfId }),
    ...(part(9) !== '' && { correlationId: part(9) }),
    related: part(6) === '' ? null : part(6),
    paths: part(7),
    ...(part(8) !== '' && { erased: part(8) }),
  };
}

function textOrNull(part: string): string | null {
  return part === '' ? null : part.slice(1);
}
