import type pg from 'pg';
import type { CatalogueTable } from './source-catalogue.ts';

/** A table as its catalogue was last read. */
export interface KnownTable {
  /** Name and OID of the type, in order, without generated columns. */
  readonly columns: readonly (readonly [name: string, type: number])[];
  /** The names of the leaf partitions by their OIDs. */
  readonly partitions: Readonly<Record<string, string>>;
}

export function knownTable({ columns, partitions }: CatalogueTable): KnownTable {
  return {
    columns: columns.flatMap(({ name, type, isGenerated }) => (isGenerated ? [] : [[name, type] as const])),
    partitions: Object.fromEntries(partitions.map(({ oid, schema, name }) => [oid, `${schema}.${name}`])),
  };
}

/** What changed about the columns of a table, in a sentence; undefined if nothing. */
export function columnNews(
  name: string,
  known: KnownTable['columns'],
  columns: KnownTable['columns'],
): string | undefined {
  const before = new Map(known);
  const after = new Map(columns);
  const news = {
    'no longer has': [...before.keys()].filter((column) => !after.has(column)),
    'now has': [...after.keys()].filter((column) => !before.has(column)),
    'has another type of': [...after].flatMap(([column, type]) => {
      const old = before.get(column);
      return old === undefined || old === type ? [] : [column];
    }),
  };
  const parts = Object.entries(news).flatMap(([what, list]) =>
    list.length === 0 ? [] : [`${what} ${list.join(', ')}`],
  );
  if (parts.length === 0) return undefined;
  return `the table ${name} ${parts.join(' and ')}. Its documents stay as they were recorded until their rows change`;
}

/** The partitions that were attached to a table or left it, in sentences. Those created as partitions are no news. */
export async function partitionNews(
  client: pg.Client,
  root: string,
  known: KnownTable['partitions'],
  now: KnownTable['partitions'],
): Promise<string[]> {
  const added = Object.entries(now).filter(([oid]) => known[oid] === undefined);
  const gone = Object.entries(known).filter(([oid]) => now[oid] === undefined);
  if (added.length === 0 && gone.length === 0) return [];
  const oids = (list: typeof added) => list.map(([oid]) => oid);
  const { rows } = await client.query<{ oid: string; what: string }>(newsStatement, [oids(added), oids(gone)]);
  const found = new Map(rows.map(({ oid, what }) => [oid, what]));
  return [
    ...added.flatMap(([oid, name]) =>
      found.get(oid) === 'attached' ? [`${name} was attached to ${root}: the rows that it had are not recorded`] : [],
    ),
    ...gone.map(([oid, name]) => {
      const what = found.get(oid) === 'detached' ? 'detached from' : 'dropped, and was a partition of';
      return `${name} was ${what} ${root}: no deletes of its rows are recorded`;
    }),
  ];
}

// A partition that was created as one has its type and its inheritance from one transaction; an attached one, or one
// above it, has its inheritance from a later one. These transaction ids stay when the rows are frozen.
const newsStatement = `
select c.oid::text, 'attached' as what
  from pg_catalog.pg_class c join pg_catalog.pg_type t on t.oid = c.reltype
 where c.oid = any ($1::oid[])
   and exists (select from pg_catalog.pg_partition_ancestors(c.oid) as above
                 join pg_catalog.pg_inherits i on i.inhrelid = above.relid
                where pg_catalog.age(i.xmin) < pg_catalog.age(t.xmin))
union all
select c.oid::text, 'detached' from pg_catalog.pg_class c where c.oid = any ($2::oid[])`;
