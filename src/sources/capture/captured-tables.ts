import { sql } from 'kysely';
import type pg from 'pg';
import type { Database } from '../../postgres/database.ts';
import { type CatalogueTable, plainTable, readCatalogue } from '../../postgres/source/source-catalogue.ts';
import { type KnownTable, knownTable } from '../../postgres/source/table-news.ts';
import { keyColumns } from '../../recording/mapping/mapping.ts';
import type { CaptureOptions } from './capture-options.ts';
import { lockTimeout, type PublishedTables, readPublished, withdrawStatement } from './publication.ts';
import { publishGenerated, type TableFault, unwritableFaults } from './table-faults.ts';

/** A captured table, with its columns as of the last recorded row. OIDs are text. */
export interface CapturedTable extends KnownTable {
  readonly relation: string;
  /** The table's membership in the publication, or `withdrawn`. */
  readonly publication: string;
  /** `pg_class.relreplident`. */
  readonly identity: string;
}

/** Membership of a table that capture took out of the publication. Only `--resync` or `--accept-gap` puts it back. */
export const withdrawn = '0';

/** By name in the mapping. */
export type CapturedTables = ReadonlyMap<string, CapturedTable>;

export async function readCapturedTables(db: Database): Promise<CapturedTables> {
  const { rows } = await sql<CapturedTableRow>`
    select name, identity, relation::text, publication::text, columns::text, partitions::text from capture_table`.execute(
    db,
  );
  return new Map(
    rows.map(({ name, columns, partitions, ...row }) => [
      name,
      { ...row, columns: JSON.parse(columns), partitions: JSON.parse(partitions) },
    ]),
  );
}

/** Replaces the stored tables. */
export async function storeCapturedTables(db: Database, tables: CapturedTables): Promise<void> {
  const rows = [...tables].map(([name, { columns, partitions, ...table }]) => ({
    ...table,
    name,
    columns: JSON.stringify(columns),
    partitions: JSON.stringify(partitions),
  }));
  await db.transaction().execute(async (transaction) => {
    await transaction.deleteFrom('capture_table').execute();
    if (rows.length > 0) await transaction.insertInto('capture_table').values(rows).execute();
  });
}

/** The new state of the tables. Known columns and partitions stay until their change is reported. */
export function knownTables(
  tables: ReadonlyMap<string, CatalogueTable>,
  published: PublishedTables,
  captured: CapturedTables,
): CapturedTables {
  // A withdrawn table that was dropped since is still a gap.
  const gone = [...captured].filter(([name, known]) => known.publication === withdrawn && !tables.has(name));
  return new Map([
    ...gone,
    ...[...tables].map(([name, table]): [string, CapturedTable] => {
      const known = captured.get(name);
      const publication = published.get(table.oid) ?? withdrawn;
      const { oid: relation, replicaIdentity: identity } = table;
      const isKnown = known?.relation === relation;
      return [name, isKnown ? { ...known, publication } : { relation, publication, identity, ...knownTable(table) }];
    }),
  ]);
}

/** Why rows are missing: a captured table is gone, replaced or unpublished. Undefined if none is. */
export function gapOfTables(
  captured: CapturedTables,
  tables: ReadonlyMap<string, CatalogueTable>,
  published: PublishedTables,
): string | undefined {
  for (const [name, known] of captured) {
    if (known.publication === withdrawn) continue;
    const table = tables.get(name);
    if (table === undefined) return `the table ${name} is gone`;
    if (table.oid !== known.relation) return `another table has the name ${name} now, whose rows were not recorded`;
    const membership = published.get(table.oid);
    if (membership === undefined) return `the table ${name} left the publication`;
    if (membership !== known.publication) return `the table ${name} left the publication, and is in it again`;
  }
  return undefined;
}

/**
 * Withdraws each published table whose updates fail, unless the start fixes it. Returns the new state of the tables.
 */
export async function withdrawUnwritable(
  client: pg.Client,
  options: CaptureOptions,
  captured: CapturedTables,
): Promise<CapturedTables> {
  const { mapping, slot, choice } = options;
  const published = await readPublished(client, slot);
  let rest = captured;
  for (const table of (await readCatalogue(client, [...mapping.tables.keys()])).values()) {
    if (!published.has(table.oid)) continue;
    // The start itself completes the publication.
    const faults = unwritableReasons(options, table).filter(({ statement }) => statement !== publishGenerated(slot));
    if (faults.length === 0 || (choice.alter && faults.every(({ statement }) => statement !== undefined))) continue;
    rest = (await withdrawTable(client, options, rest, { table, faults })) ?? rest;
  }
  return rest;
}

/** Why updates of a published table fail; empty if they do not. */
export function unwritableReasons({ mapping, slot }: CaptureOptions, table: CatalogueTable): TableFault[] {
  const mapped = mapping.tables.get(plainTable(table));
  return unwritableFaults(
    table,
    mapped === undefined ? table.primaryKey : keyColumns(mapping, mapped, table.primaryKey),
    slot,
  );
}

/**
 * Takes a table whose updates fail out of the publication, and stores the gap. Returns the new state of the tables, or
 * undefined if the source refuses; then it logs the statement for an owner.
 */
export async function withdrawTable(
  client: pg.Client,
  { db, slot, log }: CaptureOptions,
  captured: CapturedTables,
  { table, faults }: { table: CatalogueTable; faults: readonly TableFault[] },
): Promise<CapturedTables | undefined> {
  const name = plainTable(table);
  const statement = withdrawStatement(slot, table);
  const why = faults.map(({ message }) => message).join('; ');
  const mending = faults.flatMap((fault) => fault.statement ?? []).join(' ');
  const remedy = mending === '' ? '' : ` Run: ${mending}`;
  const known = captured.get(name);
  const rest = known === undefined ? captured : new Map([...captured, [name, { ...known, publication: withdrawn }]]);
  try {
    await client.query('begin');
    await client.query(`set local lock_timeout = '${lockTimeout}'`);
    await client.query(statement);
    // Before the commit: a table that somebody else unpublished is a gap of all tables.
    await storeCapturedTables(db, rest);
    await client.query('commit');
  } catch (error) {
    await client.query('rollback').catch(() => {});
    await storeCapturedTables(db, captured);
    log.warn(
      { table: name, err: error },
      `${why}. Capture could not take the table out of the publication. Let an owner mend it.${remedy} Or run: ${statement}`,
    );
    return undefined;
  }
  log.warn(
    { table: name },
    `gap: ${why}. Capture took the table out of the publication, so that the application can write it, and no longer records its changes.` +
      `${remedy}${remedy === '' ? ' Mend it,' : ' Then'} start capture once with --resync`,
  );
  return rest;
}

interface CapturedTableRow {
  name: string;
  relation: string;
  publication: string;
  identity: string;
  columns: string;
  partitions: string;
}

declare module '../../postgres/tables.ts' {
  interface Tables {
    capture_table: CapturedTableRow;
  }
}
