import { sql } from 'kysely';
import { statementsOf } from '../../postgres/statements.ts';
import { textOfProjection } from '../../query/json-projection.ts';
import { compareCodePoints } from '../names/code-points.ts';
import { type PathName, type PathNames, readPathNames } from '../names/path-names.ts';
import { hasNumber, unnumbered } from '../page/path-predicate.ts';
import type { HistorySnapshot } from '../page/query-snapshot.ts';

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
  const entities = entity === undefined ? null : [entity];
  const names = await readPathNames(statementsOf(snapshot.transaction), tenant, { entities, like: null });
  const told = await firstVisible(snapshot, tenant, named(names.names, begins), size);
  const read = await firstRead(snapshot, tenant, names, { entity, begins, size });
  return [...new Set([...told, ...read])].sort(compareCodePoints).slice(0, size);
}

/** The names that begin so, in order, with their numbers. */
function named(names: readonly PathName[], begins: RegExp): [string, number[]][] {
  const numbersOf = new Map<string, number[]>();
  for (const { name, number } of names) {
    if (!begins.test(name)) continue;
    const numbers = numbersOf.get(name);
    if (numbers === undefined) numbersOf.set(name, [number]);
    else numbers.push(number);
  }
  return [...numbersOf].sort(([one], [other]) => compareCodePoints(one, other));
}

/** Names that are looked up at once. */
const namesAtOnce = 200;

async function firstVisible(
  snapshot: HistorySnapshot,
  tenant: string,
  names: readonly [string, readonly number[]][],
  size: number,
): Promise<string[]> {
  // Without retention, each name has an entry.
  if (snapshot.horizon === 0) return names.slice(0, size).map(([name]) => name);
  const visible: string[] = [];
  for (let start = 0; start < names.length && visible.length < size; start += namesAtOnce) {
    const portion = names.slice(start, start + namesAtOnce);
    const found = await visibleNumbers(
      snapshot,
      tenant,
      portion.flatMap(([, numbers]) => numbers),
    );
    visible.push(...portion.filter(([, numbers]) => numbers.some((number) => found.has(number))).map(([name]) => name));
  }
  return visible.slice(0, size);
}

/** The newest entries that are read first: they have most of the names. */
const newestEntries = 2_000;

async function visibleNumbers(
  { transaction, horizon }: HistorySnapshot,
  tenant: string,
  numbers: readonly number[],
): Promise<ReadonlySet<number>> {
  const { rows } = await sql<{ number: number }>`
    with newest as materialized (
      select distinct n.number
        from (
          select e.path_numbers from change_entry e where e.tenant = ${tenant} and e.at >= ${horizon}
            order by e.at desc, e.sequence desc limit ${sql.lit(newestEntries)}
        ) as e
        cross join lateral unnest(e.path_numbers) as n (number)
    )
    select w.number from unnest(${numbers}::integer[]) as w (number)
      where w.number in (select n.number from newest n)
        or exists (
          select from change_entry e
            where e.tenant = ${tenant} and e.at >= ${horizon} and e.path_numbers && array[w.number])`.execute(
    transaction,
  );
  return new Set(rows.map(({ number }) => number));
}

/** Names in one fetch. */
const readAtOnce = 5_000;

/** The first names of the entries whose numbers do not tell them. */
async function firstRead(
  { transaction, dictionary, horizon }: HistorySnapshot,
  tenant: string,
  { rest, unnumberedTo }: PathNames,
  { entity, begins, size }: { entity: string | undefined; begins: RegExp; size: number },
): Promise<string[]> {
  const conditions = [...(rest === undefined ? [] : [hasNumber([rest])]), ...unnumbered(unnumberedTo)];
  if (conditions.length === 0) return [];
  const kinds = dictionary.kinds.filter((kind) => kind.entity === entity).map(({ id }) => id);
  const ofEntity = entity === undefined ? sql`true` : sql`e.kind = any (${kinds}::bigint[])`;
  await sql`declare path_names no scroll cursor for
    select distinct change_path_name(p.path) collate "C" as name
      from change_entry e cross join lateral jsonb_object_keys(change_paths(e.paths)) as p (path)
      where e.tenant = ${tenant} and e.at >= ${horizon} and ${ofEntity} and (${sql.join(conditions, sql` or `)})
      order by 1`.execute(transaction);
  const first: string[] = [];
  for (;;) {
    const { rows } = await sql<{ name: string }>`fetch ${sql.lit(readAtOnce)} from path_names`.execute(transaction);
    first.push(...rows.map(({ name }) => textOfProjection(name)).filter((name) => begins.test(name)));
    if (first.length >= size || rows.length < readAtOnce) return first.slice(0, size);
  }
}
