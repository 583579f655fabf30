import './tables.ts';
import { sql } from 'kysely';
import type pg from 'pg';
import type { Database } from '../../postgres/database.ts';
import { type CatalogueTable, plainTable, readCatalogue } from '../../postgres/source/source-catalogue.ts';
import { type KnownTable, knownTable } from '../../postgres/source/table-news.ts';
import { keyColumns } from '../../recording/mapping/mapping.ts';
import type { CaptureOptions } from './capture-options.ts';
import { lockTimeout, type PublishedTables, readPublished, withdrawStatement } from './publication.ts';
import { publishGenerated, type TableFault, unwritableFaults } from './table-faults.ts';

/** What capture knows of a table that it records: of its columns, as the row had them that was recorded last. OIDs are text. */
export interface CapturedTable extends KnownTable {
  readonly relation: string;
  /** The table's membership in the publication, or `withdrawn`. */
  readonly publication: string;
  /** As `pg_class.relreplident` has it. */
  readonly identity: string;
}

/** In place of its membership: capture took the table out of the publication, and only `--resync` or `--accept-gap` puts it back. */
export const withdrawn = '0';

/** By their names in the mapping. */
export type CapturedTables = ReadonlyMap<string, CapturedTable>;

export async function readCapturedTables(db: Database): Promise<CapturedTables> {
  const rows = await db
    .selectFrom('capture_table')
    .select(['name', 'identity'])
    .select([
      sql<string>`relation::text`.as('relation'),
      sql<string>`publication::text`.as('publication'),
      sql<string>`columns::text`.as('columns'),
      sql<string>`partitions::text`.as('partitions'),
    ])
    .execute();
  return new Map(
    rows.map(({ name, columns, partitions, ...row }) => [
      name,
      { ...row, columns: JSON.parse(columns), partitions: JSON.parse(partitions) },
    ]),
  );
}

/** Stores what is known of all tables, in place of what was. */
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

/** The new state of the tables. Known columns and partitions stay until a change of them is reported. */
export function knownTables(
  tables: ReadonlyMap<string, CatalogueTable>,
  published: PublishedTables,
  captured: CapturedTables,
): CapturedTables {
  // One that was withdrawn and dropped since is still a gap.
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

/** Why rows of a table are missing though its name is there: what has this name is not what was recorded. Undefined where nothing is. */
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

/** Withdraws each published table whose updates fail, unless the start mends it. Returns what is known of the tables then. */
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
    // The start sets what the publication lacks.
    const faults = unwritableReasons(options, table).filter(({ statement }) => statement !== publishGenerated(slot));
    if (faults.length === 0 || (choice.alter && faults.every(({ statement }) => statement !== undefined))) continue;
    rest = (await withdrawTable(client, options, rest, { table, faults })) ?? rest;
  }
  return rest;
}

/** Why the application cannot update the rows of a mapped table that is published. Empty: it can. */
export function unwritableReasons({ mapping, slot }: CaptureOptions, table: CatalogueTable): TableFault[] {
  const mapped = mapping.tables.get(plainTable(table));
  return unwritableFaults(
    table,
    mapped === undefined ? table.primaryKey : keyColumns(mapping, mapped, table.primaryKey),
    slot,
  );
}

/**
 * Takes a table out of the publication whose updates fail because of it, and records the gap. Returns what is known of the tables then,
 * or undefined where the source refuses: its message, once logged, names the statement for an owner.
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
    // Before the commit: a table that left the publication by the hand of another is a gap of all tables.
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
