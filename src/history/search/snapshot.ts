import { sql } from 'kysely';
import { TimeSlice } from '../../core/fairness/time-slice.ts';
import type { Restriction } from '../../http/credentials.ts';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';
import { type Statements, statementsOf } from '../../postgres/statements.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import { andMasked, type Query } from '../../query/ast.ts';
import { withPlainRegexes } from '../../query/plain-regex.ts';
import { RegexBudget, type RegexMatcherPool } from '../../query/regex-pool.ts';
import type { Place } from '../entries/entry-store.ts';
import { type Dictionary, entitiesOf, extendDictionary, type Kind } from './names/dictionary.ts';
import { readNames } from './names/name-store.ts';
import { noPathNames, readPathNames } from './names/path-name-store.ts';
import { type Expression, isAlways } from './plan/expression.ts';
import { everyId, type IdField, patternsOnIds, tryOnIds } from './plan/id-patterns.ts';
import { patternsOfNames } from './plan/path-candidates.ts';
import { resolve, termsOnPaths } from './plan/resolve.ts';
import { possibleKinds } from './plan/tally-plan.ts';
import { type TimeBounds, timeBounds, windowFrom } from './plan/window.ts';
import { entryConditions } from './predicate.ts';
import { type Search, searchOfAll } from './search.ts';
import { namesFound, readDocumentIds } from './search-store.ts';

export interface ReadDependencies {
  /** Runs single statements. */
  readonly pool: Statements;
  readonly db: Database;
  readonly regexes: RegexMatcherPool;
}

/** A query at a moment. Times are milliseconds since 1970. */
export interface QueryAtMoment {
  readonly tenant: string;
  /** With the query of a restriction. */
  readonly query: Query;
  /** The query of the restriction alone. */
  readonly within?: Query | undefined;
  /** The first moment of the window. */
  readonly from: number;
  /** The times that the caller's own query leaves. */
  readonly bounds: TimeBounds;
  readonly now: number;
}

/**
 * The query with its window. This is the one place where a restriction joins a query. The caller's own query alone
 * decides the window.
 */
export function queryAt(tenant: string, q: Query, now: number, restriction?: Restriction): QueryAtMoment {
  const own = withPlainRegexes(q);
  const query = restriction === undefined ? own : andMasked(restriction.query, own, restriction.hide);
  return { tenant, query, within: restriction?.query, from: windowFrom(own, now), bounds: timeBounds(own), now };
}

export interface HistorySnapshot {
  readonly transaction: DatabaseTransaction;
  /** The first moment that the tenant still keeps. */
  readonly horizon: number;
  readonly dictionary: Dictionary;
  /** Whether the caller sees the entries of an entity type; undefined: of every type. */
  readonly shows?: (entity: string) => boolean;
}

/** The kinds of an entity type, or of all, whose entries the caller sees. Undefined: every kind there is. */
export function kindsShown(
  { dictionary, shows }: HistorySnapshot,
  entity: string | undefined,
): readonly Kind[] | undefined {
  if (entity === undefined && shows === undefined) return undefined;
  return dictionary.kinds.filter(
    (kind) => (entity === undefined || kind.entity === entity) && (shows === undefined || shows(kind.entity)),
  );
}

/** Runs work in a repeatable read transaction, so that all its statements see the same entries and names. */
export async function inHistorySnapshot<Result>(
  { db }: Pick<ReadDependencies, 'db'>,
  { tenant, now }: Pick<QueryAtMoment, 'tenant' | 'now'>,
  known: Dictionary,
  work: (snapshot: HistorySnapshot) => Promise<Result>,
): Promise<Result> {
  return await inTransaction(
    db,
    async (transaction) => await work({ transaction, ...(await openSnapshot(transaction, tenant, now, known)) }),
    { isolation: 'repeatable read' },
  );
}

export interface QuerySnapshot {
  readonly tenant: string;
  readonly transaction: DatabaseTransaction;
  readonly expression: Expression;
  readonly dictionary: Dictionary;
  /** The first moment that the tenant still keeps and that the window and the query's own times leave. */
  readonly since: number;
  /** The window with the times of the caller's own query: it does not reveal what a restriction leaves of it. */
  readonly range: TimeBounds;
  readonly now: number;
  readonly slice: TimeSlice;
}

export async function inQuerySnapshot<Result>(
  dependencies: ReadDependencies,
  { tenant, query, within, from, bounds, now }: QueryAtMoment,
  known: Dictionary,
  work: (snapshot: QuerySnapshot) => Promise<Result>,
): Promise<Result> {
  return await inHistorySnapshot(dependencies, { tenant, now }, known, async ({ transaction, horizon, dictionary }) => {
    const { regexes } = dependencies;
    const kept = Math.max(from, horizon);
    const slice = new TimeSlice();
    const scope = { tenant, since: kept, within, dictionary, regexes, slice };
    const expression = await resolveInTransaction(transaction, query, scope);
    const since = Math.max(kept, timeBounds(expression).from);
    const range = { from: Math.max(kept, bounds.from), to: bounds.to };
    return await work({ tenant, transaction, expression, dictionary, since, range, now, slice });
  });
}

/**
 * Reads the tenant's horizon from the transaction's snapshot, and whether the dictionary has all names of the snapshot.
 * Also sets the planner's costs for the later statements of the transaction, whatever the server's settings are.
 */
export async function readSnapshot(
  transaction: DatabaseTransaction,
  tenant: string,
  now: number,
  { since, recent, lineage }: Dictionary,
): Promise<{ horizon: number; current: boolean }> {
  const { rows } = await sql<{ horizon: number; current: boolean }>`
    select horizon, current, change_search_costs()
      from change_snapshot(${tenant}, ${now}, ${since}::text::xid8, ${recent}, ${lineage})`.execute(transaction);
  return rows[0] ?? { horizon: 0, current: false };
}

export async function openSnapshot(
  transaction: DatabaseTransaction,
  tenant: string,
  now: number,
  known: Dictionary,
): Promise<{ horizon: number; dictionary: Dictionary }> {
  const { horizon, current } = await readSnapshot(transaction, tenant, now, known);
  if (current) return { horizon, dictionary: known };
  const added = await readNames(statementsOf(transaction), tenant, known);
  return { horizon, dictionary: extendDictionary(known, added) };
}

interface ResolveScope {
  tenant: string;
  since: number;
  /** Only the entries at these places: the result holds for them alone. */
  places?: readonly Place[];
  /** Only the entries that satisfy this part of the query, which has no regular expression. */
  within?: Query | undefined;
  dictionary: Dictionary;
  regexes: RegexMatcherPool;
  slice: TimeSlice;
}

/** Resolves all names, ids and paths of a query, those of the entries in scope. */
export async function resolveInTransaction(
  transaction: DatabaseTransaction,
  query: Query,
  { tenant, since, places, within, ...resolver }: ResolveScope,
): Promise<Expression> {
  const budget = new RegexBudget();
  const patterns = patternsOnIds(query);
  const onPaths = termsOnPaths(query);
  if (patterns.length === 0 && onPaths === undefined) return await resolve(query, { ...resolver, budget });
  // Only entries of these kinds can satisfy the query, whatever the patterns match and whatever paths there are.
  const open = await resolve(query, { ...resolver, budget, ids: everyId(patterns), paths: noPathNames });
  const kinds = await possibleKinds(open, resolver.dictionary, resolver.slice);
  const known =
    onPaths === undefined
      ? noPathNames
      : await readPathNames(statementsOf(transaction), tenant, {
          entities: entitiesOf(kinds, resolver.dictionary),
          like: patternsOfNames(onPaths),
        });
  const reached =
    within !== undefined && patterns.length > 0
      ? await reachedBy(await resolve(within, { ...resolver, budget, paths: known }), { tenant, since, ...resolver })
      : undefined;
  const narrows = reached !== undefined && patterns.some(({ of }) => of === 'path');
  const paths = narrows ? await namesFound(transaction, reached, known) : known;
  const read = (of: IdField, containing: readonly string[] | null) =>
    readDocumentIds(transaction, tenant, of, { since, places, within: reached, kinds, containing, paths });
  const ids = await tryOnIds(patterns, read, { ...resolver, budget });
  return await resolve(query, { ...resolver, budget, ids, paths });
}

/** The search for the entries of a query; undefined if it has all of them. */
async function reachedBy(
  expression: Expression,
  of: { tenant: string; since: number; dictionary: Dictionary; slice: TimeSlice },
): Promise<Search | undefined> {
  if (isAlways(expression)) return undefined;
  return await searchOfAll(expression, await entryConditions(of.tenant, expression, of.dictionary, of.slice), of);
}
