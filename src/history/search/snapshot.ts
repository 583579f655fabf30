import { sql } from 'kysely';
import type { TimeSlice } from '../../core/concurrency/time-slice.ts';
import type { DatabaseTransaction } from '../../postgres/database.ts';
import { statementsOf } from '../../postgres/statements.ts';
import type { Query } from '../../query/ast.ts';
import { RegexBudget, type RegexMatcherPool } from '../../query/regex-pool.ts';
import type { Place } from '../entries/entry-store-new.ts';
import { type Dictionary, entitiesOf, extendDictionary } from './names/dictionary.ts';
import { readNames } from './names/name-store.ts';
import { noPathNames, readPathNames } from './names/path-name-store.ts';
import { type Expression, isAlways } from './plan/expression.ts';
import { everyId, type IdsOf, patternsOnIds, tryOnIds } from './plan/id-patterns.ts';
import { possibleKinds } from './plan/kind-classes.ts';
import { patternsOfNames } from './plan/path-candidates.ts';
import { resolve, termsOnPaths } from './plan/resolve.ts';
import { entryConditions } from './predicate.ts';
import { searchOfAll } from './search.ts';
import { namesFound, readDocumentIds, type Search } from './search-store.ts';

/**
 * Reads the tenant's horizon from the transaction's snapshot, and whether the snapshot has other names. It also tells the
 * planner what the later statements of the transaction cost, whatever the server's settings are.
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

/** The tenant's horizon and names in the snapshot of a repeatable read transaction. */
export async function openSnapshot(
  transaction: DatabaseTransaction,
  tenant: string,
  now: number,
  known: Dictionary,
): Promise<{ horizon: number; dictionary: Dictionary }> {
  const { horizon, current } = await readSnapshot(transaction, tenant, now, known);
  if (current) return { horizon, dictionary: known };
  const news = await readNames(statementsOf(transaction), tenant, known);
  return { horizon, dictionary: extendDictionary(known, news) };
}

/**
 * The query after the lookup of all its names and ids. With `places`, the ids and paths are those of the entries there: the
 * result then holds for these entries alone. With `within`, they are those of the entries that satisfy that query, which is a
 * part of the query and has no regular expression.
 */
export async function resolveInTransaction(
  transaction: DatabaseTransaction,
  query: Query,
  {
    tenant,
    since,
    places,
    within,
    ...means
  }: {
    tenant: string;
    since: number;
    places?: readonly Place[];
    within?: Query | undefined;
    dictionary: Dictionary;
    regexes: RegexMatcherPool;
    slice: TimeSlice;
  },
): Promise<Expression> {
  const budget = new RegexBudget();
  const patterns = patternsOnIds(query);
  const onPaths = termsOnPaths(query);
  if (patterns.length === 0 && onPaths === undefined) return await resolve(query, { ...means, budget });
  // Only entries of these kinds can satisfy the query, whatever the patterns match and whatever paths there are.
  const open = await resolve(query, { ...means, budget, ids: everyId(patterns), paths: noPathNames });
  const kinds = await possibleKinds(open, means.dictionary, means.slice);
  const known =
    onPaths !== undefined
      ? await readPathNames(statementsOf(transaction), tenant, {
          entities: entitiesOf(kinds, means.dictionary),
          like: patternsOfNames(onPaths),
        })
      : noPathNames;
  const reached =
    within !== undefined && patterns.length > 0
      ? await reachedBy(await resolve(within, { ...means, budget, paths: known }), { tenant, since, ...means })
      : undefined;
  const narrows = reached !== undefined && patterns.some(({ of }) => of === 'path');
  const paths = narrows ? await namesFound(transaction, reached, known) : known;
  const read = (of: IdsOf, containing: readonly string[] | null) =>
    readDocumentIds(transaction, tenant, of, { since, places, within: reached, kinds, containing, paths });
  const ids = await tryOnIds(patterns, read, { ...means, budget });
  return await resolve(query, { ...means, budget, ids, paths });
}

/** The search for the entries of a query; undefined if it has all of them. */
async function reachedBy(
  expression: Expression,
  of: { tenant: string; since: number; dictionary: Dictionary; slice: TimeSlice },
): Promise<Search | undefined> {
  if (isAlways(expression)) return undefined;
  return await searchOfAll(expression, await entryConditions(of.tenant, expression, of.dictionary, of.slice), of);
}
