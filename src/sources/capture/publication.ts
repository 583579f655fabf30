import pg from 'pg';
import { plainTable, quotedTable, type TableName } from '../../postgres/source/table-names.ts';

interface PublicationRow {
  all_tables: string;
  publishes_all: string;
  via_root: string;
}

interface PublishedRow {
  schema: string;
  name: string;
  relation: string;
  membership: string;
}

/** The OID of each published table, and that of its membership. */
export type PublishedTables = ReadonlyMap<string, string>;

/** The statements that make the publication what the mapping wants. Empty where it is so already. */
export async function publicationStatements(
  client: pg.Client,
  publication: string,
  tables: readonly TableName[],
): Promise<string[]> {
  const name = pg.escapeIdentifier(publication);
  const create = `create publication ${name} for ${tableList(tables)} with (publish_via_partition_root = true);`;
  const state = await readPublication(client, publication);
  if (state === 'missing') return [create];
  if (state === 'altered') return [`drop publication ${name};`, create];

  const published = await client.query<PublishedRow>(publishedStatement, [publication]);
  const wanted = new Map(tables.map((table) => [plainTable(table), table]));
  const present = new Set(published.rows.map(plainTable));
  const added = tables.filter((table) => !present.has(plainTable(table)));
  const dropped = published.rows.filter((table) => !wanted.has(plainTable(table)));
  return [
    ...(added.length === 0 ? [] : [`alter publication ${name} add ${tableList(added)};`]),
    ...(dropped.length === 0 ? [] : [`alter publication ${name} drop ${tableList(dropped)};`]),
  ];
}

export async function readPublished(client: pg.Client, publication: string): Promise<PublishedTables> {
  const { rows } = await client.query<PublishedRow>(publishedStatement, [publication]);
  return new Map(rows.map(({ relation, membership }) => [relation, membership]));
}

/** `altered`: it does not publish every change of every row, as the publication that capture makes does. */
export async function readPublication(
  client: pg.Client,
  publication: string,
): Promise<'missing' | 'altered' | 'whole'> {
  const { rows } = await client.query<PublicationRow>(publicationStatement, [publication]);
  const [found] = rows;
  if (found === undefined) return 'missing';
  const isWhole = found.all_tables === 'f' && found.publishes_all === 't' && found.via_root === 't';
  return isWhole && !(await hasFilters(client, publication)) ? 'whole' : 'altered';
}

/** Without tables that inherit from these. In the form that PostgreSQL 14 has as well. */
function tableList(tables: readonly TableName[]): string {
  return `table ${tables.map((table) => `only ${quotedTable(table)}`).join(', ')}`;
}

/** Row filters, column lists and whole schemas came with PostgreSQL 15. */
async function hasFilters(client: pg.Client, publication: string): Promise<boolean> {
  const { rows: versions } = await client.query<{ version: string }>(
    `select current_setting('server_version_num') as version`,
  );
  if (Number(versions[0]?.version) < 150_000) return false;
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
       pubviaroot as via_root
  from pg_catalog.pg_publication where pubname = $1`;

const publishedStatement = `
select n.nspname as schema, c.relname as name, c.oid as relation, r.oid as membership
  from pg_catalog.pg_publication p
  join pg_catalog.pg_publication_rel r on r.prpubid = p.oid
  join pg_catalog.pg_class c on c.oid = r.prrelid
  join pg_catalog.pg_namespace n on n.oid = c.relnamespace
 where p.pubname = $1
 order by 1, 2`;
