import pg from 'pg';
import {
  type CatalogueTable,
  plainTable,
  quotedTable,
  type TableName,
} from '../../postgres/source/source-catalogue.ts';
import { hasGeneratedIdentity, publishGenerated } from './table-faults.ts';

interface PublicationRow {
  all_tables: string;
  publishes_all: string;
  via_root: string;
  /** Null before PostgreSQL 18. */
  generated: string | null;
  is_ours: string;
}

interface PublishedRow {
  schema: string;
  name: string;
  relation: string;
  membership: string;
}

/** A statement that waits for a lock blocks the application behind it. */
export const lockTimeout = '5s';

/** The OID of each published table, with that of its membership. */
export type PublishedTables = ReadonlyMap<string, string>;

/** The statements that create or adapt the publication; empty if it is up to date. */
export async function publicationStatements(
  client: pg.Client,
  publication: string,
  tables: readonly CatalogueTable[],
): Promise<string[]> {
  const name = pg.escapeIdentifier(publication);
  const [current] = await publicationRows(client, publication);
  const state = await readPublication(client, publication);
  if (state !== 'whole') {
    const parameters = [
      'publish_via_partition_root = true',
      ...((await serverVersion(client)) >= 180_000 ? ['publish_generated_columns = stored'] : []),
    ];
    const create = `create publication ${name} for ${tableList(tables)} with (${parameters.join(', ')});`;
    return state === 'missing' ? [create] : [`drop publication ${name};`, create];
  }

  const published = await client.query<PublishedRow>(publishedStatement, [publication]);
  const target = new Map(tables.map((table) => [plainTable(table), table]));
  const present = new Set(published.rows.map(plainTable));
  const added = tables.filter((table) => !present.has(plainTable(table)));
  const dropped = published.rows.filter((table) => !target.has(plainTable(table)));
  // An earlier version or an owner made the publication: this role may not alter it, and need not until a table
  // requires it.
  const isNeeded = tables.some(hasGeneratedIdentity);
  const lacksGenerated = current?.generated === 'n' && (isNeeded || current.is_ours === 't');
  return [
    ...(lacksGenerated ? [publishGenerated(publication)] : []),
    ...(added.length === 0 ? [] : [`alter publication ${name} add ${tableList(added)};`]),
    ...(dropped.length === 0 ? [] : [`alter publication ${name} drop ${tableList(dropped)};`]),
  ];
}

export function withdrawStatement(publication: string, table: TableName): string {
  return `alter publication ${pg.escapeIdentifier(publication)} drop ${tableList([table])};`;
}

export async function readPublished(client: pg.Client, publication: string): Promise<PublishedTables> {
  const { rows } = await client.query<PublishedRow>(publishedStatement, [publication]);
  return new Map(rows.map(({ relation, membership }) => [relation, membership]));
}

/**
 * A fingerprint of the published tables and partitions: memberships, definitions, replica identities and indexes, by
 * `pg_class` and `pg_index`.
 */
export async function publishedState(client: pg.Client, publication: string): Promise<string> {
  const { rows } = await client.query<{ state: string }>(stateStatement, [publication]);
  return rows[0]?.state ?? '';
}

/** `altered`: it does not publish every change of every row. */
export async function readPublication(
  client: pg.Client,
  publication: string,
): Promise<'missing' | 'altered' | 'whole'> {
  const [current] = await publicationRows(client, publication);
  if (current === undefined) return 'missing';
  const isWhole = current.all_tables === 'f' && current.publishes_all === 't' && current.via_root === 't';
  return isWhole && !(await hasFilters(client, publication)) ? 'whole' : 'altered';
}

async function publicationRows(client: pg.Client, publication: string): Promise<PublicationRow[]> {
  return (await client.query<PublicationRow>(publicationStatement, [publication])).rows;
}

async function serverVersion(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ version: string }>(`select current_setting('server_version_num') as version`);
  return Number(rows[0]?.version);
}

/** Excludes inheriting tables, in a form that PostgreSQL 14 also accepts. */
function tableList(tables: readonly TableName[]): string {
  return `table ${tables.map((table) => `only ${quotedTable(table)}`).join(', ')}`;
}

/** Row filters, column lists and whole schemas came with PostgreSQL 15. */
async function hasFilters(client: pg.Client, publication: string): Promise<boolean> {
  if ((await serverVersion(client)) < 150_000) return false;
  const { rows } = await client.query<{ filtered: string }>(
    `select exists (select from pg_catalog.pg_publication_rel r join pg_catalog.pg_publication p on p.oid = r.prpubid
                     where p.pubname = $1 and (r.prqual is not null or r.prattrs is not null))
         or exists (select from pg_catalog.pg_publication_namespace n join pg_catalog.pg_publication p on p.oid = n.pnpubid
                     where p.pubname = $1) as filtered`,
    [publication],
  );
  return rows[0]?.filtered === 't';
}

const publicationStatement = `
select puballtables as all_tables, pubinsert and pubupdate and pubdelete and pubtruncate as publishes_all,
       pubviaroot as via_root, to_jsonb(p) ->> 'pubgencols' as generated,
       pg_has_role(pubowner, 'usage') as is_ours
  from pg_catalog.pg_publication p where pubname = $1`;

const publishedStatement = `
select n.nspname as schema, c.relname as name, c.oid as relation, r.oid as membership
  from pg_catalog.pg_publication p
  join pg_catalog.pg_publication_rel r on r.prpubid = p.oid
  join pg_catalog.pg_class c on c.oid = r.prrelid
  join pg_catalog.pg_namespace n on n.oid = c.relnamespace
 where p.pubname = $1
 order by 1, 2`;

const stateStatement = `
with published as (
  select r.oid as membership, p.xmin as definition, r.prrelid as relation
    from pg_catalog.pg_publication p join pg_catalog.pg_publication_rel r on r.prpubid = p.oid
   where p.pubname = $1
), listed as (
  select membership, definition, relation from published
  union all
  select membership, definition, tree.relid
    from published join pg_catalog.pg_class c on c.oid = relation and c.relkind = 'p'
    cross join lateral pg_catalog.pg_partition_tree(relation) as tree
   where tree.relid <> relation
)
select sum(hashtextextended(pg_catalog.format('%s %s %s %s %s', membership, definition, c.oid, c.xmin, (
         select sum(hashtextextended(pg_catalog.format('%s %s', i.indexrelid, i.xmin), 0))
           from pg_catalog.pg_index i where i.indrelid = c.oid)), 0))::text as state
  from listed join pg_catalog.pg_class c on c.oid = relation`;
