import pg from 'pg';

/** A mapped table of the source, or one of its partitions, from the source's catalogue. */
export interface CatalogueTable extends TableName {
  readonly oid: string;
  /** `r`: a table. `p`: a partitioned one. Others cannot be captured. */
  readonly kind: string;
  /** `p`: permanent. Changes of other tables are not in the log. */
  readonly persistence: string;
  /** Only roots of partitions can be captured. */
  readonly isPartition: boolean;
  readonly replicaIdentity: string;
  /** In the order of the key. */
  readonly primaryKey: readonly string[];
  /**
   * The logged columns of a row before its change. Undefined: none, so updates and deletes of a published table fail.
   */
  readonly identity: ReadonlySet<string> | undefined;
  /** Possible identities other than `full`: the primary key, then the unique indexes that PostgreSQL accepts. */
  readonly keys: readonly IdentityKey[];
  /** Publications with the table's updates or deletes, each of which may limit the identity. */
  readonly publications: readonly TablePublication[];
  readonly columns: readonly CatalogueColumn[];
  /** The leaf partitions; empty for a table that is not partitioned. */
  readonly partitions: readonly Omit<CatalogueTable, 'partitions'>[];
}

interface CatalogueColumn {
  readonly name: string;
  /** The type's OID. */
  readonly type: number;
  readonly isGenerated: boolean;
  /** Computed on read (PostgreSQL 18 and later), so it cannot be published. */
  readonly isVirtual: boolean;
  /** See `isWrittenAsText`. */
  readonly isText: boolean;
}

interface IdentityKey {
  /** The name of the index; undefined for the primary key. */
  readonly index: string | undefined;
  readonly columns: readonly string[];
}

interface TablePublication {
  readonly name: string;
  readonly hasColumnList: boolean;
  /** From PostgreSQL 18 on, updates fail if the identity has a generated column that is not published. */
  readonly lacksGenerated: boolean;
}

interface TableRow {
  oid: string;
  root: string | null;
  schema: string;
  name: string;
  kind: string;
  persistence: string;
  is_partition: string;
  replica_identity: string;
  primary_key: string;
  has_usable_key: string;
  index_identity: string;
  indexes: string;
  publications: string;
  columns: string;
}

/**
 * SQL: whether PostgreSQL's JSON of the column `a` differs from its text, which documents have
 * (recording/mapping/postgres-types.ts): for composite types and types with a cast to `json` (for example hstore), also
 * as elements of an array or below a domain.
 */
export const isWrittenAsText = `case when
  -- Skips the search for base types, which most columns have.
  (select t.oid >= 16384 or t.typtype in ('c', 'd') or t.typelem <> 0 from pg_type t where t.oid = a.atttypid) then exists (
  with recursive used as (
    select a.atttypid as oid
    union
    select case when t.typtype = 'd' then t.typbasetype else t.typelem end
      from used join pg_type t using (oid) where t.typtype = 'd' or t.typelem <> 0
  ) select from used join pg_type t using (oid)
     where t.typtype = 'c'
        or t.oid >= 16384 and exists (select from pg_cast where castsource = t.oid and casttarget = 'json'::regtype and castmethod = 'f'))
  else false end`;

/** Reads the tables with these names (`schema.table`) from the catalogue. Missing tables have no entry. */
export async function readCatalogue(
  client: pg.Client,
  names: readonly string[],
): Promise<ReadonlyMap<string, CatalogueTable>> {
  const { rows } = await client.query<TableRow>(catalogueStatement, [names]);
  const tables = new Map<string, CatalogueTable>();
  const partitions = new Map<string, Omit<CatalogueTable, 'partitions'>[]>();
  for (const row of rows) {
    const table = tableOf(row);
    if (row.root === null) {
      const below: Omit<CatalogueTable, 'partitions'>[] = [];
      partitions.set(row.oid, below);
      tables.set(`${row.schema}.${row.name}`, { ...table, partitions: below });
    } else {
      partitions.get(row.root)?.push(table);
    }
  }
  return tables;
}

function tableOf(row: TableRow): Omit<CatalogueTable, 'partitions'> {
  const columns: { name: string; type: number; generated: string; text: boolean }[] = JSON.parse(row.columns);
  const primaryKey: string[] = JSON.parse(row.primary_key);
  const indexed: string[] = JSON.parse(row.index_identity);
  const indexes: IdentityKey[] = JSON.parse(row.indexes);
  const usableKey = row.has_usable_key === 't' ? primaryKey : [];
  const identity =
    row.replica_identity === 'f'
      ? columns.map(({ name }) => name)
      : row.replica_identity === 'd'
        ? usableKey
        : row.replica_identity === 'i'
          ? indexed
          : [];
  return {
    oid: row.oid,
    schema: row.schema,
    name: row.name,
    kind: row.kind,
    persistence: row.persistence,
    isPartition: row.is_partition === 't',
    replicaIdentity: row.replica_identity,
    primaryKey,
    identity: identity.length === 0 ? undefined : new Set(identity),
    keys: [...(usableKey.length === 0 ? [] : [{ index: undefined, columns: usableKey }]), ...indexes],
    publications: JSON.parse(row.publications),
    columns: columns.map(({ name, type, generated, text }) => ({
      name,
      type,
      isGenerated: generated !== '',
      isVirtual: generated === 'v',
      isText: text,
    })),
  };
}

// Roots come first; a partition refers to the mapped table above it. A deferrable primary key is no identity. Columns
// of later versions of PostgreSQL are read through to_jsonb.
const catalogueStatement = `
with mapped as (
  select c.oid, null::oid as root
    from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
   where n.nspname || '.' || c.relname = any ($1::text[]) and c.relkind in ('r', 'p', 'v', 'm', 'f')
), listed as (
  select oid, root from mapped
  union all
  select tree.relid, mapped.oid
    from mapped join pg_catalog.pg_class c on c.oid = mapped.oid and c.relkind = 'p'
    cross join lateral pg_catalog.pg_partition_tree(mapped.oid) as tree
   where tree.isleaf
), published as (
  select below.relid, jsonb_agg(jsonb_build_object(
           'name', p.pubname, 'lacksGenerated', coalesce(to_jsonb(p) ->> 'pubgencols' = 'n', false),
           'hasColumnList', exists (select from pg_catalog.pg_publication_rel r
                                     where r.prpubid = p.oid and r.prrelid = t.relid and to_jsonb(r) ->> 'prattrs' is not null)
         )) as publications
    from pg_catalog.pg_publication p
    cross join lateral pg_catalog.pg_get_publication_tables(p.pubname::text) as t
    cross join lateral (
      select t.relid
      union
      select tree.relid::oid from pg_catalog.pg_partition_tree(t.relid) as tree) as below
   where p.pubupdate or p.pubdelete
   group by below.relid
)
select c.oid::text, listed.root::text, n.nspname as schema, c.relname as name, c.relkind as kind,
       c.relpersistence as persistence, c.relispartition as is_partition, c.relreplident as replica_identity,
       (select coalesce(jsonb_agg(a.attname order by key.place), '[]')
          from pg_catalog.pg_index i
          cross join lateral unnest(i.indkey::int2[]) with ordinality as key (attnum, place)
          join pg_catalog.pg_attribute a on a.attrelid = i.indrelid and a.attnum = key.attnum
         where i.indrelid = c.oid and i.indisprimary and i.indislive and key.place <= i.indnkeyatts)::text as primary_key,
       exists (select from pg_catalog.pg_index i
                where i.indrelid = c.oid and i.indisprimary and i.indislive and i.indimmediate
                  and (i.indisvalid or c.relkind = 'p')) as has_usable_key,
       (select coalesce(jsonb_agg(jsonb_build_object('index', x.relname, 'columns', names.columns)
                                  order by i.indnkeyatts, x.relname), '[]')
          from pg_catalog.pg_index i
          join pg_catalog.pg_class x on x.oid = i.indexrelid
          cross join lateral (
            select jsonb_agg(a.attname order by key.place) as columns, bool_and(a.attnotnull and a.attgenerated = '') as fits
              from unnest(i.indkey::int2[]) with ordinality as key (attnum, place)
              left join pg_catalog.pg_attribute a on a.attrelid = i.indrelid and a.attnum = key.attnum
             where key.place <= i.indnkeyatts) as names
         where i.indrelid = c.oid and i.indisunique and not i.indisprimary and i.indimmediate and i.indislive
           and i.indisvalid and i.indpred is null and i.indexprs is null and names.fits)::text as indexes,
       coalesce(published.publications, '[]')::text as publications,
       (select coalesce(jsonb_agg(a.attname), '[]')
          from pg_catalog.pg_index i
          cross join lateral unnest(i.indkey::int2[]) with ordinality as key (attnum, place)
          join pg_catalog.pg_attribute a on a.attrelid = i.indrelid and a.attnum = key.attnum
         where i.indrelid = c.oid and i.indisreplident and i.indislive and key.place <= i.indnkeyatts)::text as index_identity,
       (select coalesce(jsonb_agg(jsonb_build_object('name', a.attname, 'type', a.atttypid::int8,
                                                     'generated', a.attgenerated, 'text', ${isWrittenAsText}) order by a.attnum), '[]')
          from pg_catalog.pg_attribute a
         where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped)::text as columns
  from listed
  join pg_catalog.pg_class c on c.oid = listed.oid
  join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  left join published on published.relid = c.oid
 order by listed.root nulls first, n.nspname, c.relname`;

/** A table of the source by its two names. */
export interface TableName {
  readonly schema: string;
  readonly name: string;
}

export function quotedTable({ schema, name }: TableName): string {
  return `${pg.escapeIdentifier(schema)}.${pg.escapeIdentifier(name)}`;
}

/** The name as in mappings. */
export function plainTable({ schema, name }: TableName): string {
  return `${schema}.${name}`;
}
