import type pg from 'pg';
import { type CatalogueTable, readCatalogue } from '../../postgres/source/source-catalogue.ts';
import { plainTable } from '../../postgres/source/table-names.ts';
import { keyColumns } from '../../recording/mapping/mapping.ts';
import type { CaptureOptions } from './capture-options.ts';
import { type CapturedTables, storeCapturedTables, withdrawn } from './captured-tables.ts';
import { lockTimeout, readPublished, withdrawStatement } from './publication.ts';
import { publishGenerated, type TableFault, unwritableFaults } from './table-faults.ts';

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
