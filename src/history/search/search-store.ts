import { type RawBuilder, sql } from 'kysely';
import type { DatabaseTransaction } from '../../postgres/database.ts';
import { projectedText } from '../../query/json-projection.ts';
import type { Place } from '../entries/entry-store.ts';
import { namedPaths, type PathNames } from './names/path-name-store.ts';
import { mustBeRead } from './path-predicate.ts';
import { type IdField, isContextField } from './plan/id-patterns.ts';
import type { Search } from './search.ts';

/** With estimates below this, the planner may read all rows of a tenant for each row. */
const maxDoubted = 100;
/** A tenant with fewer entries needs no other plan. */
const minEntries = 200;

/**
 * Whether the planner takes a tenant with many entries for one with next to none. Its statistics do not know a tenant
 * that is new beside larger ones until the tables are analysed.
 */
export async function isUnderestimated(transaction: DatabaseTransaction, tenant: string): Promise<boolean> {
  const entries = sql`select from change_entry where tenant = ${tenant}`;
  const { rows: plans } = await sql<{ 'QUERY PLAN': [{ Plan: { 'Plan Rows': number } }] }>`
    explain (format json) ${entries}`.execute(transaction);
  const estimate = plans[0]?.['QUERY PLAN'][0].Plan['Plan Rows'] ?? 0;
  if (estimate >= maxDoubted) return false;
  const { rows } = await sql<{ many: boolean }>`
    select count(*) = ${minEntries} as many from (${entries} limit ${minEntries}) as entries`.execute(transaction);
  return rows[0]?.many ?? false;
}

/**
 * Runs a statement with the SQL of the search in it; for an underestimated tenant without nested loops, which would
 * read all rows of one table for each row of the other. Hashes and merges, which take their place, read each row once.
 */
export async function runSearch<Row>(
  transaction: DatabaseTransaction,
  search: Search,
  statement: RawBuilder<Row>,
): Promise<Row[]> {
  if (!search.underestimated) return (await statement.execute(transaction)).rows;
  const { rows: settings } = await sql<{ before: string }>`
    select current_setting('enable_nestloop') as before, set_config('enable_nestloop', 'off', true)`.execute(
    transaction,
  );
  const { rows } = await statement.execute(transaction);
  await sql`select set_config('enable_nestloop', ${settings[0]?.before ?? 'on'}, true)`.execute(transaction);
  return rows;
}

export async function countEntries(transaction: DatabaseTransaction, search: Search): Promise<number> {
  const rows = await runSearch(transaction, search, sql<{ total: number }>`select count(*) as total ${found(search)}`);
  return rows[0]?.total ?? 0;
}

/** Counts the entries that a search finds and reads the places of a page of them, newest first. It searches once. */
export async function searchPage(
  transaction: DatabaseTransaction,
  search: Search,
  page: { skip: number; size: number },
): Promise<{ total: number; places: Place[] }> {
  const statement = sql<{ total: number; at: number | null; sequence: number }>`
    with found as materialized (select e.at, e.sequence ${found(search)})
    select counted.total, place.at, place.sequence
      from (select count(*) as total from found) as counted
      left join lateral (
        select * from found order by at desc, sequence desc offset ${page.skip} limit ${page.size}
      ) as place on true
      order by place.at desc, place.sequence desc`;
  const rows = await runSearch(transaction, search, statement);
  const places = rows.flatMap(({ at, sequence }) => (at === null ? [] : [{ at, sequence }]));
  return { total: rows[0]?.total ?? 0, places };
}

export async function findPlaces(
  transaction: DatabaseTransaction,
  search: Search,
  page: { skip: number; size: number },
): Promise<Place[]> {
  return await runSearch(
    transaction,
    search,
    sql<Place>`select e.at, e.sequence ${found(search)}
      order by e.at desc, e.sequence desc offset ${page.skip} limit ${page.size}`,
  );
}

/**
 * A tenant's entries in the two parts that have indexes of ids. PostgreSQL reads ids from such an index alone where the
 * condition of the index stands beside those on the ids. Both parts name the tenant, as a cluster requires.
 */
const entriesByIds = (tenant: string) => sql`(
  select * from change_entry where tenant = ${tenant} and octet_length(entity_id) <= change_short_id()
  union all
  select * from change_entry where tenant = ${tenant} and octet_length(entity_id) > change_short_id()
) as e`;

/** The SQL of the search, from `from` on. */
export function found({ tenant, since, places, byIds = false, condition }: Search): RawBuilder<unknown> {
  const from =
    places === undefined
      ? byIds
        ? entriesByIds(tenant)
        : sql`change_entry e`
      : sql`(${places}) as place
          join change_entry e on e.tenant = ${tenant} and e.at = place.at and e.sequence = place.sequence`;
  return sql`from ${from} where e.tenant = ${tenant} and e.at >= ${since} and ${condition}`;
}

/** The rows `e` of change_entry, or `r` of change_related, at these places, with a 1-based `ordinal`. */
export function rowsAt(places: readonly Place[], tenant: string, row: 'e' | 'r'): RawBuilder<unknown> {
  const table = sql.table(row === 'e' ? 'change_entry' : 'change_related');
  const column = (name: string) => sql.ref(`${row}.${name}`);
  return sql`unnest(${places.map(({ at }) => at)}::bigint[], ${places.map(({ sequence }) => sequence)}::bigint[])
      with ordinality as place (at, sequence, ordinal)
    join ${table} ${sql.raw(row)} on ${column('tenant')} = ${tenant} and ${column('at')} = place.at
      and ${column('sequence')} = place.sequence`;
}

/** Those path names that entries found by the search have. */
export async function namesFound(
  transaction: DatabaseTransaction,
  search: Search,
  paths: PathNames,
): Promise<PathNames> {
  const { rows } = await sql<{ number: number }>`
    select distinct named.number from (select e.path_numbers ${found(search)}) as e
      cross join lateral unnest(e.path_numbers) as named (number)`.execute(transaction);
  const numbers = new Set(rows.map(({ number }) => number));
  return { ...paths, names: paths.names.filter(({ number }) => numbers.has(number)) };
}

const idsAtOnce = 5_000;

export interface IdSource {
  since: number;
  places?: readonly Place[] | undefined;
  within?: Search | undefined;
  /** Only documents of these kinds; null means any. */
  kinds: readonly number[] | null;
  /** Only ids that contain one of these texts; null means any. */
  containing: readonly string[] | null;
  paths: PathNames;
}

/**
 * Reads the distinct ids of the documents, or of the related documents, of entries, or their paths or members of their
 * contexts in the form of the projection; paths that names identify may be those of other entries too. A transaction can run it once at a time.
 */
export async function* readDocumentIds(
  transaction: DatabaseTransaction,
  tenant: string,
  of: IdField,
  { since, places, within, kinds, containing, paths }: IdSource,
): AsyncGenerator<string[]> {
  const ofKinds = kinds === null ? sql`true` : sql`e.kind = any (${kinds}::bigint[])`;
  const contains = (id: RawBuilder<unknown>) =>
    containing === null
      ? sql`true`
      : sql`(${sql.join(
          containing.map(
            (text) => sql`strpos(${id}, ${of === 'path' || isContextField(of) ? projectedText(text) : text}) > 0`,
          ),
          sql` or `,
        )})`;
  const rowsOf = (all: RawBuilder<unknown>, row: 'e' | 'r') =>
    places === undefined ? all : rowsAt(places, tenant, row);
  const entriesOf = (search: Search) => sql`(select e.* ${found(search)}) as e`;
  const entries = within === undefined ? sql`change_entry e` : entriesOf(within);
  const entriesWithIds = within === undefined ? entriesByIds(tenant) : entriesOf({ ...within, byIds: true });
  const items =
    within === undefined
      ? sql`change_related r`
      : sql`${entries} join change_related r on r.tenant = ${tenant} and r.at = e.at and r.sequence = e.sequence`;
  const idsOf = {
    document: () => sql`select distinct e.entity_id as id from ${rowsOf(entriesWithIds, 'e')}
              where e.tenant = ${tenant} and e.at >= ${since} and ${ofKinds} and ${contains(sql`e.entity_id`)}`,
    related: () => sql`select distinct r.entity_id as id from ${rowsOf(items, 'r')}
              where r.tenant = ${tenant} and r.at >= ${since} and ${contains(sql`r.entity_id`)}`,
    path: () => sql`select distinct p.path as id
      from ${rowsOf(entries, 'e')} cross join lateral jsonb_object_keys(change_paths(e.paths)) as p (path)
      where e.tenant = ${tenant} and e.at >= ${since} and ${ofKinds} and ${mustBeRead(paths)} and ${contains(sql`p.path`)}`,
  };
  const membersOf = (name: string) => {
    const value = sql`change_context_text(e.context, ${projectedText(name)})`;
    return sql`select distinct ${value} as id from ${rowsOf(entries, 'e')}
      where e.tenant = ${tenant} and e.at >= ${since} and ${ofKinds} and e.context is not null and ${value} is not null
        and ${contains(value)}`;
  };
  if (of === 'path') yield namedPaths(paths);
  // The caller needs all ids, not the first ones soon.
  await sql`set local cursor_tuple_fraction = 1`.execute(transaction);
  await sql`declare document_ids no scroll cursor for ${
    isContextField(of) ? membersOf(of.slice('context.'.length)) : idsOf[of]()
  }`.execute(transaction);
  for (;;) {
    const { rows } = await sql<{ id: string }>`fetch ${sql.lit(idsAtOnce)} from document_ids`.execute(transaction);
    if (rows.length > 0) yield rows.map(({ id }) => id);
    if (rows.length < idsAtOnce) break;
  }
  await sql`close document_ids`.execute(transaction);
}
