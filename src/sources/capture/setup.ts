import pg from 'pg';
import { codeOf } from '../../core/errors.ts';
import { type Source, withSource } from '../../postgres/source/source.ts';
import { type CatalogueTable, plainTable, readCatalogue } from '../../postgres/source/source-catalogue.ts';
import type { Mapping } from '../../recording/mapping/mapping.ts';
import type { SourceLog } from '../source-log.ts';
import { CaptureError } from './capture-error.ts';
import type { CaptureOptions } from './capture-options.ts';
import type { CapturedTables } from './captured-tables.ts';
import { faultsOfTable } from './mapping-faults.ts';
import {
  lockTimeout,
  type PublishedTables,
  publicationStatements,
  readPublication,
  readPublished,
} from './publication.ts';
import { dropSlot, readSlot, type Slot } from './slot.ts';
import { fullIdentityStatement, reasonAgainstFull, type TableFault } from './table-faults.ts';

const minVersion = 140_000;

/** Checks the server. Returns `server_version_num`. */
export async function checkServer(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ version: string; level: string; standby: string }>(
    `select current_setting('server_version_num') as version, current_setting('wal_level') as level,
            pg_is_in_recovery() as standby`,
  );
  const [row] = rows;
  const version = Number(row?.version);
  if (row === undefined || version < minVersion) throw new CaptureError('the source is older than PostgreSQL 14');
  if (row.standby === 't') throw new CaptureError('the source is a standby: capture reads the primary');
  if (row.level !== 'logical') {
    throw new CaptureError(
      `the source's wal_level is ${row.level}. Run this, and restart it: alter system set wal_level = logical;`,
    );
  }
  return version;
}

function faultsOf(
  mapping: Mapping,
  tables: ReadonlyMap<string, CatalogueTable>,
  { captured, skipped, publication }: { captured: CapturedTables; skipped: ReadonlySet<string>; publication: string },
): TableFault[] {
  if (mapping.tenant === undefined) return [{ message: 'the mapping names no tenant' }];
  if (mapping.tables.size === 0) return [{ message: 'the mapping names no table' }];
  return [...mapping.tables].flatMap(([name, mapped]) => {
    if (skipped.has(name)) return [];
    const table = tables.get(name);
    if (table === undefined) return [{ message: `there is no table ${name}, or this role may not see it` }];
    const known = captured.get(name);
    const columns = known?.relation === table.oid ? known.columns.map(([column]) => column) : undefined;
    return faultsOfTable(mapping, mapped, table, { known: columns, publication });
  });
}

function refusal(faults: readonly TableFault[]): CaptureError {
  const statements = faults.flatMap(({ statement }) => (statement === undefined ? [] : [`  ${statement}`]));
  return new CaptureError(
    [
      'these tables cannot be captured, and nothing was changed:',
      ...faults.map(({ message }) => `  ${message}`),
      ...(statements.length === 0 ? [] : ['These statements solve the problems; --alter runs them:', ...statements]),
    ].join('\n'),
  );
}

interface Published {
  /** By name in the mapping. */
  readonly tables: ReadonlyMap<string, CatalogueTable>;
  readonly published: PublishedTables;
}

/**
 * Publishes the mapped tables, except `skipped` (withdrawn) ones, in one transaction with the checks, so that no table
 * is published whose updates would fail. Throws a CaptureError with every fault of every table, or with the statements
 * for an owner if the role may not publish.
 */
export async function publishTables(
  client: pg.Client,
  { mapping, slot: publication, choice, log }: CaptureOptions,
  captured: CapturedTables,
  skipped: ReadonlySet<string>,
): Promise<Published> {
  const checks = { captured, skipped, publication };
  let statements: string[] = [];
  await client.query('begin');
  try {
    await client.query(`set local lock_timeout = '${lockTimeout}'`);
    const before = await readCatalogue(client, [...mapping.tables.keys()]);
    const faults = faultsOf(mapping, before, checks);
    const mending = faults.flatMap(({ statement }) => (statement === undefined ? [] : [statement]));
    if (faults.length > 0 && (!choice.alter || mending.length < faults.length)) throw refusal(faults);
    const targets = [...before].flatMap(([name, table]) => (skipped.has(name) ? [] : [table]));
    const full = choice.identity === 'full' ? fullIdentities(targets, publication, log) : [];
    statements = [...new Set([...mending, ...full]), ...(await publicationStatements(client, publication, targets))];
    for (const statement of statements) {
      await client.query(statement);
      log.info({ statement }, 'capture ran a statement at the source');
    }
    // Publishing locks the tables against other definition changes.
    const tables = await readCatalogue(client, [...mapping.tables.keys()]);
    const remaining = faultsOf(mapping, tables, checks);
    if (remaining.length > 0) throw refusal(remaining);
    const published = await readPublished(client, publication);
    await client.query('commit');
    return { tables, published };
  } catch (error) {
    await client.query('rollback').catch(() => {});
    throw explained(error, statements);
  }
}

/** The statements for `--identity full`. Logs tables that cannot have it. */
function fullIdentities(tables: readonly CatalogueTable[], publication: string, log: SourceLog): string[] {
  return tables.flatMap((table) => {
    const all = [table, ...table.partitions];
    const against = all.flatMap((member) => reasonAgainstFull(member, publication) ?? [])[0];
    if (against === undefined)
      return all.flatMap((member) =>
        member.replicaIdentity === 'f' ? [] : [fullIdentityStatement(member, publication)],
      );
    log.warn({}, `${plainTable(table)} keeps its replica identity, because ${against}`);
    return [];
  });
}

function explained(error: unknown, statements: readonly string[]): unknown {
  const code = codeOf(error);
  if (code === '42501') {
    return new CaptureError(
      [
        'the role of the source URL may not publish these tables. Let an owner run, and start again:',
        ...statements.map((statement) => `  ${statement}`),
      ].join('\n'),
    );
  }
  if (code === '55P03') return new CaptureError('a table is locked by another transaction; nothing was changed');
  return error;
}

/** Throws a CaptureError if the slot is not one that capture made for this database. */
export async function checkSlot(client: pg.Client, name: string, slot: Slot): Promise<void> {
  const database = await databaseOf(client);
  if (slot.plugin === 'pgoutput' && slot.database === database) return;
  const owner =
    slot.plugin !== 'pgoutput'
      ? `uses the plugin ${slot.plugin ?? 'of physical replication'}`
      : `belongs to the database ${slot.database}, and this one is ${database}`;
  throw new CaptureError(
    `the slot ${name} ${owner}. The names of slots are those of the whole server: choose another name with --slot`,
  );
}

async function databaseOf(client: pg.Client): Promise<string | undefined> {
  const { rows } = await client.query<{ database: string }>('select current_database() as database');
  return rows[0]?.database;
}

/** A slot error with its remedy. */
export function explainedSlotFault(error: unknown): unknown {
  const code = codeOf(error);
  if (code === '42501') {
    return new CaptureError(
      'the role of the source URL may not read the log. Let an owner run this with its name, and start again:\n' +
        '  alter role NAME replication;',
    );
  }
  if (code === '53400') return new CaptureError('the source has no free replication slot: raise max_replication_slots');
  return error;
}

/** Drops the slot and the publication. Returns which existed. A slot of another database stays. */
export async function removeCapture(source: Source, slot: string): Promise<{ slot: boolean; publication: boolean }> {
  return await withSource(source, async (client) => {
    // The slot first, since it makes the source retain WAL.
    const slotState = await readSlot(client, slot);
    const hadSlot = slotState?.database === (await databaseOf(client)) && (await dropSlot(client, slot));
    const hadPublication = (await readPublication(client, slot)) !== 'missing';
    if (hadPublication) await dropPublication(client, slot);
    return { slot: hadSlot, publication: hadPublication };
  });
}

async function dropPublication(client: pg.Client, publication: string): Promise<void> {
  const statement = `drop publication ${pg.escapeIdentifier(publication)};`;
  try {
    await client.query(statement);
  } catch (error) {
    if (!(error instanceof pg.DatabaseError) || error.code !== '42501') throw error;
    throw new CaptureError(
      `the slot is dropped, and the publication belongs to another role. Let an owner run:\n  ${statement}`,
    );
  }
}
