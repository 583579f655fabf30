import type pg from 'pg';
import type { CatalogueTable } from '../db/source/source-catalogue.ts';
import type { CapturedTable } from './captured-tables.ts';

export interface PartitionNews {
  /** What an operator should know, in sentences. A partition that was made as one is no news: its rows come through the log. */
  readonly news: readonly string[];
  /** The names of the partitions now, by their OIDs. */
  readonly partitions: CapturedTable['partitions'];
}

const afterwards = 'Run capture once with --resync to record';

/** The partitions that came with rows, or left with theirs. Neither is in the log. */
export async function partitionNews(
  client: pg.Client,
  table: CatalogueTable,
  known: CapturedTable,
): Promise<PartitionNews> {
  const root = `${table.schema}.${table.name}`;
  const partitions = Object.fromEntries(table.partitions.map((one) => [one.oid, `${one.schema}.${one.name}`]));
  const added = Object.keys(partitions).filter((oid) => known.partitions[oid] === undefined);
  const gone = Object.entries(known.partitions).filter(([oid]) => partitions[oid] === undefined);
  if (added.length === 0 && gone.length === 0) return { news: [], partitions };
  const { rows } = await client.query<{ oid: string; what: string }>(newsStatement, [added, gone.map(([oid]) => oid)]);
  const found = new Map(rows.map(({ oid, what }) => [oid, what]));
  return {
    news: [
      ...added.flatMap((oid) =>
        found.get(oid) === 'attached'
          ? [`${partitions[oid]} was attached to ${root}: the rows that it had are not in the log. ${afterwards} them`]
          : [],
      ),
      ...gone.map(([oid, name]) => {
        const what = found.get(oid) === 'detached' ? 'detached from' : 'dropped, and was a partition of';
        return `${name} was ${what} ${root}: no deletes of its rows are in the log. ${afterwards} them`;
      }),
    ],
    partitions,
  };
}

// A partition that was made as one has its type and its place below the root from one transaction. A table that was attached has its
// place, or one above it has, from a later one. The identifiers of these transactions stay when the rows are frozen.
const newsStatement = `
select c.oid::text, 'attached' as what
  from pg_catalog.pg_class c join pg_catalog.pg_type t on t.oid = c.reltype
 where c.oid = any ($1::oid[])
   and exists (select from pg_catalog.pg_partition_ancestors(c.oid) as above
                 join pg_catalog.pg_inherits i on i.inhrelid = above.relid
                where pg_catalog.age(i.xmin) < pg_catalog.age(t.xmin))
union all
select c.oid::text, 'detached' from pg_catalog.pg_class c where c.oid = any ($2::oid[])`;
