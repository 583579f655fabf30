import { type RawBuilder, type SqlBool, sql } from 'kysely';
import { statementsOf } from '../../postgres/statements.ts';
import { projectedText, textOfProjection } from '../../query/json-projection.ts';
import type { Kind } from './names/dictionary.ts';
import { type PathNames, readPathNames } from './names/path-name-store.ts';
import { compareCodePoints } from './names/search-names.ts';
import { hasNumber } from './path-predicate.ts';
import { type HistorySnapshot, kindsShown } from './snapshot.ts';

export interface PathSearch {
  /** Default: any entity type. */
  readonly entity?: string | undefined;
  readonly prefix: string;
  readonly size: number;
}

/**
 * The first names of paths that begin with a prefix, in the order of code points. Case does not count (Unicode's simple
 * folding). A name counts only if an entry that the tenant still has bears it.
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
  const ofKinds = isOfKinds(kinds);
  const told = await firstVisible(snapshot, tenant, named(names, begins), { ofKinds, size });
  const read = await firstRead(snapshot, tenant, names, { ofKinds, begins, size });
  return [...new Set([...told, ...read])].sort(compareCodePoints).slice(0, size);
}

/** A name, and its number for each entity type that has it. */
interface NumberedName {
  readonly name: string;
  readonly numbers: number[];
  /** Where an entry with the number may have another name instead. */
  readonly isShared: boolean;
}

/** The names that begin so, in order. */
function named({ names, rest }: PathNames, begins: RegExp): NumberedName[] {
  const numbered = Map.groupBy(
    names.filter(({ name }) => begins.test(name)),
    ({ name }) => name,
  );
  return [...numbered]
    .map(([name, ofEntities]) => ({
      name,
      numbers: ofEntities.map(({ number }) => number),
      isShared: ofEntities.some(({ number, isShared }) => isShared || number === rest),
    }))
    .sort((one, other) => compareCodePoints(one.name, other.name));
}

/** The first names that an entry bears: those of dropped entries, and of changes that were not recorded, are left out. */
async function firstVisible(
  snapshot: HistorySnapshot,
  tenant: string,
  names: readonly NumberedName[],
  { ofKinds, size }: { ofKinds: SqlCondition; size: number },
): Promise<string[]> {
  if (names.length === 0) return [];
  const visible: string[] = [];
  const newest = await numbersOfNewest(snapshot, tenant, ofKinds);
  for (let start = 0; start < names.length && visible.length < size; start += size) {
    const portion = names.slice(start, start + size);
    const unseen = portion.filter(({ numbers }) => !numbers.some((number) => newest.has(number)));
    const older = await borneByOlder(snapshot, tenant, unseen, ofKinds);
    const gone = new Set(unseen.filter((name) => !older.has(name)));
    for (const candidate of portion) {
      const { name, numbers, isShared } = candidate;
      if (gone.has(candidate)) continue;
      if (isShared && !(await isBorne(snapshot, tenant, { name, numbers, ofKinds }))) continue;
      visible.push(name);
    }
  }
  return visible.slice(0, size);
}

/** The newest entries that are read first: they have most of the names. */
const newestEntries = 2_000;

async function numbersOfNewest(
  { transaction, horizon }: HistorySnapshot,
  tenant: string,
  ofKinds: SqlCondition,
): Promise<ReadonlySet<number>> {
  const { rows } = await sql<{ number: number }>`
    select distinct n.number
      from (
        select e.path_numbers from change_entry e
          where e.tenant = ${tenant} and e.at >= ${horizon} and ${ofKinds}
          order by e.at desc, e.sequence desc limit ${sql.lit(newestEntries)}
      ) as e
      cross join lateral unnest(e.path_numbers) as n (number)`.execute(transaction);
  return new Set(rows.map(({ number }) => number));
}

/** Those of the names one of whose numbers an entry has. */
async function borneByOlder(
  { transaction, horizon }: HistorySnapshot,
  tenant: string,
  names: readonly NumberedName[],
  ofKinds: SqlCondition,
): Promise<ReadonlySet<NumberedName>> {
  if (names.length === 0) return new Set();
  // The planner sees how many entries each number has, and makes a plan that finds all of them: to find one, it would read the history
  // and expect to meet it soon. Of a name that no entry bears, that is all of it.
  const cases = names.map(
    ({ numbers }, place) => sql`when ${sql.lit(place)} then exists (
      with bearing as materialized (
        select from change_entry e
          where e.tenant = ${tenant} and e.at >= ${horizon} and ${ofKinds}
            and e.path_numbers && ${sql.lit(`{${numbers.join()}}`)}::integer[]
      )
      select from bearing)`,
  );
  const { rows } = await sql<{ place: number }>`
    select w.place from generate_series(0, ${names.length - 1}::integer) as w (place)
      where case w.place ${sql.join(cases, sql` `)} end`.execute(transaction);
  return new Set(rows.flatMap(({ place }) => names[place] ?? []));
}

/** Whether an entry with one of the numbers has a path of this name. */
async function isBorne(
  { transaction, horizon }: HistorySnapshot,
  tenant: string,
  { name, numbers, ofKinds }: { name: string; numbers: readonly number[]; ofKinds: SqlCondition },
): Promise<boolean> {
  const { rows } = await sql<{ borne: boolean }>`
    select exists (
      select from change_entry e cross join lateral jsonb_object_keys(change_paths(e.paths)) as p (path)
        where e.tenant = ${tenant} and e.at >= ${horizon} and ${ofKinds} and ${hasNumber(numbers)}
          and change_path_name(p.path) = ${projectedText(name)}) as borne`.execute(transaction);
  return rows[0]?.borne === true;
}

type SqlCondition = RawBuilder<SqlBool>;

/** The condition that an entry `e` is of one of the kinds. */
function isOfKinds(kinds: readonly Kind[] | undefined): SqlCondition {
  return kinds === undefined ? sql`true` : sql`e.kind = any (${kinds.map(({ id }) => id)}::bigint[])`;
}

/** Names in one fetch. */
const readAtOnce = 5_000;

/** The first names of the entries whose numbers do not tell them. */
async function firstRead(
  { transaction, horizon }: HistorySnapshot,
  tenant: string,
  { rest }: PathNames,
  { ofKinds, begins, size }: { ofKinds: SqlCondition; begins: RegExp; size: number },
): Promise<string[]> {
  if (rest === undefined) return [];
  await sql`declare path_names no scroll cursor for
    select distinct change_path_name(p.path) collate "C" as name
      from change_entry e cross join lateral jsonb_object_keys(change_paths(e.paths)) as p (path)
      where e.tenant = ${tenant} and e.at >= ${horizon} and ${ofKinds} and ${hasNumber([rest])}
      order by 1`.execute(transaction);
  const first: string[] = [];
  for (;;) {
    const { rows } = await sql<{ name: string }>`fetch ${sql.lit(readAtOnce)} from path_names`.execute(transaction);
    first.push(...rows.map(({ name }) => textOfProjection(name)).filter((name) => begins.test(name)));
    if (first.length >= size || rows.length < readAtOnce) return first.slice(0, size);
  }
}
