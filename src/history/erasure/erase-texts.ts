import { sql } from 'kysely';
import type { Sealer } from '../../core/sealing.ts';
import { uuidOf } from '../../core/text-hash.ts';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';
import { tenantTables } from '../../postgres/tenants/delete-tenant.ts';
import { refuseHeld } from '../../postgres/tenants/tenants.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import { tryOpenRejected } from '../../recording/batches/rejected-changes.ts';
import type { Leftover } from './own-entries.ts';
import { columnsWith } from './places.ts';
import { asWords, identifying, isIn, likePatterns, type Replacing, replaceInJson } from './replace-in-text.ts';

export interface ErasingTexts extends Replacing {
  /** What rows are deleted by. */
  readonly rows: Replacing;
  readonly db: Database;
  readonly sealer: Sealer;
  readonly tenant: string;
  /** Undefined for an actor. */
  readonly document: { readonly entity: string; readonly entityId: string } | undefined;
}

/** A row outside the history that names the subject. */
export interface TouchedRow {
  readonly table: string;
  /** The columns of the key, without the tenant. */
  readonly id: readonly string[];
  readonly columns: readonly string[];
  readonly row: 'changed' | 'deleted';
}

type TenantTable = Awaited<ReturnType<typeof tenantTables>>[number];
type Row = Record<string, string | null> & { place: string };

/** Rows of a read. */
const portion = 100;

/**
 * Erases the subject outside the history, table by table in short transactions. Returns the number of changed or
 * deleted rows by table. With `onFound` it changes nothing and reports each row.
 */
export async function eraseTexts(
  erasing: ErasingTexts,
  onFound?: (row: TouchedRow) => void,
): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const table of await tenantTables(erasing.db)) {
    const rows = await eraseInTable(erasing, table, onFound);
    if (rows > 0) counts[table.name] = rows;
  }
  return counts;
}

/** Ids and the like that name the subject and cannot be replaced. */
export async function findKeptIds({ db, tenant, ...replacing }: ErasingTexts): Promise<Leftover[]> {
  const found: Leftover[] = [];
  const names = identifying(replacing);
  const patterns = likePatterns(names.needles);
  for (const { name, key } of await tenantTables(db)) {
    const id = sql`concat_ws('/', ${sql.join(key.map((column) => sql.ref(column.name)))})`;
    for (const column of columnsWith(name, 'stop')) {
      const { rows } = await sql<{ id: string; text: string }>`
        select ${id} as id, ${sql.ref(column)} as text from ${sql.table(name)}
          where tenant = ${tenant} and ${sql.ref(column)} like any (${patterns}::text[])`.execute(db);
      const named = rows.filter(({ text }) => isIn(text, names));
      found.push(...named.map((row) => ({ entity: name, entityId: row.id, where: column })));
    }
  }
  return found;
}

/** Texts with a word that is a name or an id of a person by the id, where none says that it is the person. They stay. */
export async function findMentions(erasing: ErasingTexts): Promise<Leftover[]> {
  if (erasing.anywhere === undefined) return [];
  const { db, tenant } = erasing;
  const found: Leftover[] = [];
  const words = asWords(erasing);
  for (const { name, key } of await tenantTables(db)) {
    const irreplaceable = columnsWith(name, 'stop');
    const looked = [...columnsWith(name, 'text'), ...irreplaceable];
    if (looked.length === 0) continue;
    const columns = looked.map((column) => sql`${sql.ref(column)}::text as ${sql.ref(column)}`);
    const keys = key.map((column, index) => sql`${sql.ref(column.name)}::text as ${sql.ref(`key${index}`)}`);
    // Exports are deleted.
    const kept = name === 'job' ? sql`type <> 'EXPORT'` : sql`true`;
    const { rows } = await sql<Row>`
      select ctid::text as place, ${sql.join([...keys, ...columns])} from ${sql.table(name)}
        where tenant = ${tenant} and ${kept} and (${sql.join(candidates({ rows: words }, looked, []), sql` or `)})`.execute(
      db,
    );
    for (const row of rows) {
      const entityId = key.map((_column, index) => row[`key${index}`] ?? '').join('/');
      const where = looked.filter((column) => {
        const text = row[column] ?? '';
        const isLeft = irreplaceable.includes(column);
        return isIn(isLeft ? text : replaceInJson(text, erasing, isPerson(name, column, row)), words);
      });
      found.push(...where.map((column) => ({ entity: name, entityId, where: column })));
    }
  }
  return found;
}

/** Whether a text as a whole is the name or the id of a person. */
function isPerson(table: string, column: string, row: Row): boolean {
  // Sums are by agents and models, too.
  if (table === 'call_sum') return column === 'name' && /^(?:client|user|key user)$/.test(row.key0 ?? '');
  // Budgets are of clients, agents and models, too.
  if (table === 'budget') return column === 'name' && /[{,]\s*"user":/.test(row.document ?? '');
  return personColumns.has(`${table}.${column}`);
}

const personColumns: ReadonlySet<string> = new Set([
  'access_event.name',
  'access_event.on_behalf_of',
  'access_event.subject',
  'access_key.end_user',
  'access_key.subject',
  'budget_alert.name',
  'call_record.client',
  'call_record.end_user',
  'oauth_client.subject',
]);

async function eraseInTable(
  erasing: ErasingTexts,
  table: TenantTable,
  onFound: ((row: TouchedRow) => void) | undefined,
): Promise<number> {
  const { db, tenant } = erasing;
  const { name, key } = table;
  const looked = (['text', 'clear', 'row'] as const).flatMap((doing) => columnsWith(name, doing));
  const sealed = columnsWith(name, 'sealed');
  if (looked.length + sealed.length === 0) return 0;
  const order = sql.join([...key.map((column) => sql.ref(column.name)), sql`ctid`]);
  const touched: TouchedRow[] = [];
  let after: string[] | undefined;
  for (;;) {
    const read = async (transaction: DatabaseTransaction) => {
      if (onFound === undefined) await refuseHeld(transaction, tenant);
      const behind =
        after === undefined || key.length === 0
          ? sql`true`
          : sql`(${sql.join(key.map((column) => sql.ref(column.name)))}) > (${sql.join(
              after.map((value, index) => sql`${value}::text::${sql.raw(key[index]?.type ?? 'text')}`),
            )})`;
      const columns = [
        ...looked.map((column) => sql`${sql.ref(column)}::text as ${sql.ref(column)}`),
        ...sealed.map((column) => sql`encode(${sql.ref(column)}, 'base64') as ${sql.ref(column)}`),
      ];
      const keys = key.map((column, index) => sql`${sql.ref(column.name)}::text as ${sql.ref(`key${index}`)}`);
      const { rows } = await sql<Row>`
        select ctid::text as place, ${sql.join([...keys, ...columns])} from ${sql.table(name)}
          where tenant = ${tenant} and ${behind} and (${sql.join(candidates(erasing, looked, sealed), sql` or `)})
          order by ${order} limit ${portion}::integer ${onFound === undefined ? sql`for update` : sql``}`.execute(
        transaction,
      );
      for (const row of rows) {
        const found = touchedIn(erasing, table, row);
        if (found === undefined) continue;
        touched.push(found);
        if (onFound === undefined) await eraseRow(transaction, erasing, found, row);
      }
      return rows;
    };
    const before = touched.length;
    const rows = await inTransaction(
      db,
      async (transaction) => {
        touched.length = before;
        return await read(transaction);
      },
      { retries: 20 },
    );
    const last = rows.at(-1);
    if (onFound !== undefined) touched.slice(before).forEach(onFound);
    if (last === undefined || rows.length < portion || key.length === 0) return touched.length;
    after = key.map((_one, index) => last[`key${index}`] ?? '');
  }
}

/** Conditions on rows that may have the subject: a needle in a text, or a sealed value. */
function candidates(
  { rows: { needles } }: Pick<ErasingTexts, 'rows'>,
  looked: readonly string[],
  sealed: readonly string[],
) {
  const patterns = likePatterns(needles);
  return [
    ...looked.map((column) => sql`${sql.ref(column)}::text like any (${patterns}::text[])`),
    ...sealed.map((column) => sql`${sql.ref(column)} is not null`),
  ];
}

/** What an erasure does with a row; undefined without the subject. */
function touchedIn(erasing: ErasingTexts, { name: table, key }: TenantTable, row: Row): TouchedRow | undefined {
  const hasIt = (column: string) => row[column] != null && isIn(row[column], erasing, isPerson(table, column, row));
  const isRowOf = (column: string) => row[column] != null && isIn(row[column], erasing.rows);
  const isInClear = (column: string) => row[column] != null && isIn(row[column], asWords(erasing));
  const sealed = openedOf(erasing, table, row);
  const gone = [
    ...columnsWith(table, 'row').filter(isRowOf),
    ...(sealed !== undefined && isIn(sealed, erasing.rows) ? columnsWith(table, 'sealed') : []),
  ];
  const texts = columnsWith(table, 'text').filter(hasIt);
  const beside = texts.length > 0 ? columnsWith(table, 'with') : [];
  const changed = [...texts, ...columnsWith(table, 'clear').filter(isInClear), ...beside];
  const columns = gone.length > 0 ? gone : changed;
  if (columns.length === 0) return undefined;
  const id = key.map((_column, index) => row[`key${index}`] ?? '');
  return { table, id, columns, row: gone.length > 0 ? 'deleted' : 'changed' };
}

async function eraseRow(
  transaction: DatabaseTransaction,
  erasing: ErasingTexts,
  { table, columns, row: becomes }: TouchedRow,
  row: Row,
): Promise<void> {
  const isHere = sql`tenant = ${erasing.tenant} and ctid = ${row.place}::tid`;
  if (becomes === 'deleted') {
    await sql`delete from ${sql.table(table)} where ${isHere}`.execute(transaction);
    return;
  }
  const isCleared = new Set([...columnsWith(table, 'clear'), ...columnsWith(table, 'with')]);
  const assigned = columns.map((column) => {
    const value = isCleared.has(column)
      ? null
      : replaceInJson(row[column] ?? '', erasing, isPerson(table, column, row));
    return sql`${sql.ref(column)} = ${value}${sql.raw(castOf(table, column))}`;
  });
  await sql`update ${sql.table(table)} set ${sql.join(assigned)} where ${isHere}`.execute(transaction);
}

/** The text of a sealed change. */
function openedOf({ sealer, tenant }: ErasingTexts, table: string, row: Row): string | undefined {
  if (table !== 'change_rejected' || row.sealed === null || row.sealed === undefined) return undefined;
  return tryOpenRejected(sealer, tenant, row.key0 ?? '', Buffer.from(row.sealed, 'base64'))?.line;
}

const jsonColumns = /^(?:fields|full_fields|details|restriction|call)$/;

function castOf(table: string, column: string): string {
  if (!jsonColumns.test(column)) return '';
  return table === 'access_event' ? '::json' : '::jsonb';
}

/** Deletes exports, stored results and hashes of running batches, whatever their content. Returns the rows by table. */
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
    // Waiting changes of the document keep their order.
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
