import { sql } from 'kysely';
import { statementsOf } from '../../postgres/statements.ts';
import { projectedText, textOfProjection } from '../../query/json-projection.ts';
import { type PathNames, readPathNames } from './names/path-name-store.ts';
import { compareCodePoints } from './names/search-names.ts';
import { hasNumber } from './path-predicate.ts';
import { type HistorySnapshot, kindsShown } from './snapshot.ts';
import type { SqlCondition } from './values-in-text.ts';

export interface PathSearch {
  /** Default: any entity type. */
  readonly entity?: string | undefined;
  readonly prefix: string;
  readonly size: number;
}

/** The entries that a search looks at, by the SQL condition on a row `e`. */
interface SearchScope extends HistorySnapshot {
  readonly tenant: string;
  readonly isInScope: SqlCondition;
}

/**
 * The first names of paths that begin with a prefix, in the order of code points, ignoring case (Unicode's simple
 * folding). A name counts only if an entry that the tenant still keeps has it.
 */
export async function searchPaths(
  snapshot: HistorySnapshot,
  tenant: string,
  { entity, prefix, size }: PathSearch,
): Promise<string[]> {
  const begins = new RegExp(`^${RegExp.escape(prefix)}`, 'iu');
  const kinds = kindsShown(snapshot, entity);
  const entities = kinds === undefined ? null : [...new Set(kinds.map((kind) => kind.entity))];
  const names = await readPathNames(statementsOf(snapshot.transaction), tenant, { entities, like: null });
  const ofKinds = kinds === undefined ? sql`true` : sql`e.kind = any (${kinds.map(({ id }) => id)}::bigint[])`;
  const isInScope: SqlCondition = sql`e.at >= ${snapshot.horizon} and ${ofKinds}`;
  const scope = { ...snapshot, tenant, isInScope };
  const numbered = await firstVisible(scope, numberedNames(names, begins), size);
  const read = await firstRead(scope, names, { begins, size });
  return [...new Set([...numbered, ...read])].sort(compareCodePoints).slice(0, size);
}

interface NumberedPath {
  readonly name: string;
  readonly numbers: number[];
  /** Whether an entry with the number may have another name instead. */
  readonly isShared: boolean;
}

function numberedNames({ names, rest }: PathNames, begins: RegExp): NumberedPath[] {
  const matching = names.filter(({ name }) => begins.test(name));
  return [...Map.groupBy(matching, ({ name }) => name)]
    .map(([name, ofEntities]) => ({
      name,
      numbers: ofEntities.map(({ number }) => number),
      isShared: ofEntities.some(({ number, isShared }) => isShared || number === rest),
    }))
    .sort((a, b) => compareCodePoints(a.name, b.name));
}

/** The first names that an entry has: not those of dropped entries, or of changes that were not recorded. */
async function firstVisible(scope: SearchScope, names: readonly NumberedPath[], size: number): Promise<string[]> {
  if (names.length === 0) return [];
  const visible: string[] = [];
  const newest = await numbersOfNewest(scope);
  for (let start = 0; start < names.length && visible.length < size; start += size) {
    const portion = names.slice(start, start + size);
    const unseen = portion.filter(({ numbers }) => !numbers.some((number) => newest.has(number)));
    const older = await withOlderEntries(scope, unseen);
    const gone = new Set(unseen.filter((name) => !older.has(name)));
    for (const candidate of portion) {
      if (gone.has(candidate)) continue;
      if (candidate.isShared && !(await hasEntry(scope, candidate))) continue;
      visible.push(candidate.name);
    }
  }
  return visible.slice(0, size);
}

/** The newest entries, which are read first: they have most of the names. */
const newestEntries = 2_000;

async function numbersOfNewest({ transaction, tenant, isInScope }: SearchScope): Promise<ReadonlySet<number>> {
  const { rows } = await sql<{ number: number }>`
    select distinct n.number
      from (
        select e.path_numbers from change_entry e
          where e.tenant = ${tenant} and ${isInScope} order by e.at desc, e.sequence desc limit ${sql.lit(newestEntries)}
      ) as e
      cross join lateral unnest(e.path_numbers) as n (number)`.execute(transaction);
  return new Set(rows.map(({ number }) => number));
}

async function withOlderEntries(
  { transaction, tenant, isInScope }: SearchScope,
  names: readonly NumberedPath[],
): Promise<ReadonlySet<NumberedPath>> {
  if (names.length === 0) return new Set();
  // Materialized, so that the planner plans to find all entries of a number. To find one, it would read the history and
  // expect to meet it soon: all of the history, if no entry has the name.
  const cases = names.map(
    ({ numbers }, place) => sql`when ${sql.lit(place)} then exists (
      with having_number as materialized (
        select from change_entry e where e.tenant = ${tenant} and ${isInScope} and e.path_numbers && ${sql.lit(`{${numbers.join()}}`)}::integer[]
      )
      select from having_number)`,
  );
  const { rows } = await sql<{ place: number }>`
    select w.place from generate_series(0, ${names.length - 1}::integer) as w (place)
      where case w.place ${sql.join(cases, sql` `)} end`.execute(transaction);
  return new Set(rows.flatMap(({ place }) => names[place] ?? []));
}

/** Whether an entry with one of the numbers has a path of this name. */
async function hasEntry(
  { transaction, tenant, isInScope }: SearchScope,
  { name, numbers }: NumberedPath,
): Promise<boolean> {
  const { rows } = await sql<{ exists: boolean }>`
    select exists (
      select from change_entry e cross join lateral jsonb_object_keys(change_paths(e.paths)) as p (path)
        where e.tenant = ${tenant} and ${isInScope} and ${hasNumber(numbers)} and change_path_name(p.path) = ${projectedText(name)})`.execute(
    transaction,
  );
  return rows[0]?.exists === true;
}

const readAtOnce = 5_000;

/** The first names of the entries whose numbers do not identify them. */
async function firstRead(
  { transaction, tenant, isInScope }: SearchScope,
  { rest }: PathNames,
  { begins, size }: { begins: RegExp; size: number },
): Promise<string[]> {
  if (rest === undefined) return [];
  await sql`declare path_names no scroll cursor for
    select distinct change_path_name(p.path) collate "C" as name
      from change_entry e cross join lateral jsonb_object_keys(change_paths(e.paths)) as p (path)
      where e.tenant = ${tenant} and ${isInScope} and ${hasNumber([rest])}
      order by 1`.execute(transaction);
  const first: string[] = [];
  for (;;) {
    const { rows } = await sql<{ name: string }>`fetch ${sql.lit(readAtOnce)} from path_names`.execute(transaction);
    first.push(...rows.map(({ name }) => textOfProjection(name)).filter((name) => begins.test(name)));
    if (first.length >= size || rows.length < readAtOnce) return first.slice(0, size);
  }
}
