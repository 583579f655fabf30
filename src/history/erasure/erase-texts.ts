import { sql } from 'kysely';
import type { Sealer } from '../../core/sealing.ts';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';
import { tenantTables } from '../../postgres/tenants/delete-tenant.ts';
import { refuseHeld } from '../../postgres/tenants/held-tenant.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import { findKept } from '../../recording/batches/kept-change.ts';
import { uuidOf } from '../../recording/entry-columns.ts';
import { columnsWith } from './places.ts';
import { escapesOf, type Replacing, replaceInJson } from './replace-in-text.ts';

export interface ErasingTexts extends Replacing {
  readonly db: Database;
  readonly sealer: Sealer;
  readonly tenant: string;
  /** Undefined for an actor. */
  readonly document: { readonly entity: string; readonly entityId: string } | undefined;
}

type TenantTable = Awaited<ReturnType<typeof tenantTables>>[number];
type Row = Record<string, string | null> & { place: string };

/** Rows that are read at once. */
const portion = 100;

/**
 * Takes the subject out of everything besides the history, table by table in short transactions. Returns how many rows of each table
 * were changed or deleted. With `onlyCount` it changes nothing.
 */
export async function eraseTexts(erasing: ErasingTexts, onlyCount = false): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const table of await tenantTables(erasing.db)) {
    const rows = await eraseInTable(erasing, table, onlyCount);
    if (rows > 0) counts[table.name] = rows;
  }
  return counts;
}

async function eraseInTable(erasing: ErasingTexts, table: TenantTable, onlyCount: boolean): Promise<number> {
  const { db, tenant } = erasing;
  const { name, key } = table;
  const looked = (['text', 'clear', 'row'] as const).flatMap((doing) => columnsWith(name, doing));
  const sealed = columnsWith(name, 'sealed');
  if (looked.length + sealed.length === 0) return 0;
  const order = sql.join([...key.map((column) => sql.ref(column.name)), sql`ctid`]);
  let changed = 0;
  let after: string[] | undefined;
  for (;;) {
    const read = async (transaction: DatabaseTransaction) => {
      if (!onlyCount) await refuseHeld(transaction, tenant);
      const behind =
        after === undefined || key.length === 0
          ? sql`true`
          : sql`(${sql.join(key.map((one) => sql.ref(one.name)))}) > (${sql.join(after.map((value, index) => sql`${value}::text::${sql.raw(key[index]?.type ?? 'text')}`))})`;
      const columns = [
        ...looked.map((one) => sql`${sql.ref(one)}::text as ${sql.ref(one)}`),
        ...sealed.map((one) => sql`encode(${sql.ref(one)}, 'base64') as ${sql.ref(one)}`),
      ];
      const keys = key.map((one, index) => sql`${sql.ref(one.name)}::text as ${sql.ref(`key${index}`)}`);
      const { rows } = await sql<Row>`
        select ctid::text as place, ${sql.join([...keys, ...columns])} from ${sql.table(name)}
          where tenant = ${tenant} and ${behind} and (${sql.join(candidates(erasing, looked, sealed), sql` or `)})
          order by ${order} limit ${portion}::integer ${onlyCount ? sql`` : sql`for update`}`.execute(transaction);
      for (const row of rows) if (await eraseRow(transaction, erasing, table, row, onlyCount)) changed += 1;
      return rows;
    };
    const before = changed;
    const rows = await inTransaction(
      db,
      async (transaction) => {
        changed = before;
        return await read(transaction);
      },
      { retries: 20 },
    );
    const last = rows.at(-1);
    if (last === undefined || rows.length < portion || key.length === 0) return changed;
    after = key.map((_one, index) => last[`key${index}`] ?? '');
  }
}

/** Rows whose texts have a needle somewhere, or a sealed value. */
function candidates({ needles }: Replacing, looked: readonly string[], sealed: readonly string[]) {
  const variants = needles.flatMap(escapesOf);
  // A JSON text may escape what a needle has: then all rows with an escape are looked at.
  return [
    ...looked.map(
      (column) =>
        sql`${sql.ref(column)}::text like any (${[...variants.map((one) => `%${one.replace(/[\\%_]/g, '\\$&')}%`), '%\\\\u%']}::text[])`,
    ),
    ...sealed.map((column) => sql`${sql.ref(column)} is not null`),
  ];
}

async function eraseRow(
  transaction: DatabaseTransaction,
  erasing: ErasingTexts,
  { name }: TenantTable,
  row: Row,
  onlyCount: boolean,
): Promise<boolean> {
  const { tenant } = erasing;
  const isIn = (text: string | null | undefined) => text != null && replaceInJson(text, erasing) !== text;
  const isHere = sql`tenant = ${tenant} and ctid = ${row.place}::tid`;
  if (columnsWith(name, 'row').some((column) => isIn(row[column])) || isIn(openedOf(erasing, name, row))) {
    if (!onlyCount) await sql`delete from ${sql.table(name)} where ${isHere}`.execute(transaction);
    return true;
  }
  const sets = [
    ...columnsWith(name, 'text').flatMap((column) =>
      isIn(row[column]) ? [{ column, value: replaceInJson(row[column] ?? '', erasing) }] : [],
    ),
    ...columnsWith(name, 'clear').flatMap((column) => (isIn(row[column]) ? [{ column, value: null }] : [])),
  ];
  if (sets.length === 0) return false;
  if (!onlyCount) {
    const assigned = sets.map(
      ({ column, value }) => sql`${sql.ref(column)} = ${value}${sql.raw(castOf(name, column))}`,
    );
    await sql`update ${sql.table(name)} set ${sql.join(assigned)} where ${isHere}`.execute(transaction);
  }
  return true;
}

/** What a sealed change says. */
function openedOf({ sealer, tenant }: ErasingTexts, table: string, row: Row): string | undefined {
  if (table !== 'change_rejected' || row.sealed === null || row.sealed === undefined) return undefined;
  return findKept(sealer, tenant, row.key0 ?? '', Buffer.from(row.sealed, 'base64'))?.line;
}

const jsonColumns = /^(?:fields|full_fields|details|restriction|call)$/;

function castOf(table: string, column: string): string {
  if (!jsonColumns.test(column)) return '';
  return table === 'access_event' ? '::json' : '::jsonb';
}

/** What goes whatever it holds: exports, stored results, hashes of batches under way. Returns how many rows of each table. */
export async function eraseWhole(
  { db, tenant, document, replacement }: ErasingTexts,
  onlyCount = false,
): Promise<Record<string, number>> {
  const exports = sql`job where tenant = ${tenant} and type = 'EXPORT'`;
  const chunks = sql`job_chunk where tenant = ${tenant} and job in (select id from ${exports})`;
  const results = sql`completion_request where tenant = ${tenant} and state <> 'running'`;
  const batches = sql`delivery_batch where tenant = ${tenant} and hashes <> '{}'`;
  const statements = onlyCount
    ? {
        job_chunk: sql`select from ${chunks}`,
        job: sql`select from ${exports}`,
        completion_request: sql`select from ${results}`,
        delivery_batch: sql`select from ${batches}`,
      }
    : {
        job_chunk: sql`delete from ${chunks} returning 1`,
        job: sql`delete from ${exports} returning 1`,
        completion_request: sql`delete from ${results} returning 1`,
        delivery_batch: sql`update delivery_batch set hashes = '{}' where tenant = ${tenant} and hashes <> '{}' returning 1`,
      };
  if (document !== undefined && !onlyCount) {
    const hashOf = (id: string) => uuidOf(JSON.stringify([document.entity, id]));
    // Its changes that wait still come one after the other.
    await sql`update delivery_waiting set document = ${hashOf(replacement)}::uuid
      where tenant = ${tenant} and document = ${hashOf(document.entityId)}::uuid`.execute(db);
  }
  const counts: Record<string, number> = {};
  for (const [name, statement] of Object.entries(statements)) {
    const rows = await inTransaction(
      db,
      async (transaction) => {
        if (!onlyCount) await refuseHeld(transaction, tenant);
        return (await statement.execute(transaction)).rows.length;
      },
      { retries: 20 },
    );
    if (rows > 0) counts[name] = rows;
  }
  return counts;
}
