import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import { hasCode } from '../../core/errors.ts';
import type { Database, DatabaseTransaction } from '../database.ts';
import { inTransaction } from '../transaction.ts';
import { refuseHeld } from './tenants.ts';

interface DeleteTenantOptions {
  /** Called after each portion with the number of rows deleted so far. */
  onProgress?: ((rows: number) => void) | undefined;
  /** Rows of a portion; other values for tests. */
  portion?: number;
}

const defaultPortion = 1_000;
// Milliseconds that earlier transactions have to end. A request has 30 seconds.
const maxWait = 60_000;
const checkEvery = 100;
const foreignKeyViolation = '23503';

/**
 * Deletes a tenant with all its data, in short transactions with pauses, while the service runs. Idempotent: resumes an
 * interrupted call. Returns the number of deleted rows; 0 if there was nothing. Revoke its clients first, or they
 * continue to write. Rejects with an OperatorError if the tenant is on hold, also if the hold comes during the
 * deletion.
 */
export async function deleteTenant(db: Database, tenant: string, options: DeleteTenantOptions = {}): Promise<number> {
  const { onProgress, portion = defaultPortion } = options;
  const tables = await tenantTables(db);
  const owned = tables.filter(({ name }) => name !== 'tenant');
  let rows = 0;

  /** Goes through all tables once and returns the number of rows deleted. */
  async function pass(): Promise<number> {
    const before = rows;
    for (const table of owned) {
      for await (const deleted of portionsOf(db, table, tenant, portion)) {
        rows += deleted;
        onProgress?.(rows);
      }
    }
    return rows - before;
  }

  // Rows of its last requests are left to another pass, or to the last transaction.
  while ((await pass()) >= portion);
  rows += await deleteRest(db, tables, tenant);
  // Earlier transactions can still write rows that refer to no other one.
  await olderTransactionsEnded(db);
  await pass();
  return rows;
}

/** Deletes the rows of a table and yields the number of each portion. Rests after each for as long as it took. */
async function* portionsOf(
  db: Database,
  { name, key }: TenantTable,
  tenant: string,
  size: number,
): AsyncGenerator<number, void> {
  const table = sql.table(name);
  const columns = sql.join(key.map((column) => sql.ref(column.name)));
  let after: string[] | undefined;
  for (;;) {
    const begun = performance.now();
    // Without further columns in the key, there is one row.
    const last =
      key.length === 0
        ? sql`null::text[]`
        : sql`array[${sql.join(key.map((column) => sql`${sql.ref(column.name)}::text`))}]`;
    const values = after?.map((value, index) => sql`${value}::text::${sql.raw(key[index]?.type ?? 'text')}`);
    // Begins after the last portion, so that deleted rows are not scanned again.
    const behind = values === undefined ? sql`` : sql`and (${columns}) > (${sql.join(values)})`;
    const order = key.length === 0 ? sql`` : sql`order by ${columns}`;
    const statement = sql<{ deleted: number; last: string[] | null }>`
      with portion as (
        select ctid as place, row_number() over (${order}) as number, ${last} as key
          from ${table} where tenant = ${tenant} ${behind} ${order} limit ${size}::integer
      ), deleted as (
        delete from ${table} where tenant = ${tenant} and ctid = any(array(select place from portion)) returning 1
      )
      select (select count(*) from deleted) as deleted, (select key from portion order by number desc limit 1) as last`;
    let deleted = 0;
    try {
      const work = async (transaction: DatabaseTransaction) => {
        await refuseHeld(transaction, tenant);
        return await statement.execute(transaction);
      };
      const { rows } = await inTransaction(db, work, { retries: 3 });
      deleted = rows[0]?.deleted ?? 0;
      after = rows[0]?.last ?? undefined;
    } catch (error) {
      // A new row refers to one of these: the next pass deletes both.
      if (hasCode(error, foreignKeyViolation)) return;
      throw error;
    }
    if (deleted > 0) yield deleted;
    if (after === undefined) return;
    await sleep(performance.now() - begun);
  }
}

/** Deletes the rest and the tenant itself, under a lock that blocks writers of rows that refer to the tenant. */
async function deleteRest(db: Database, tables: readonly TenantTable[], tenant: string): Promise<number> {
  return await inTransaction(
    db,
    async (transaction) => {
      await sql`select from tenant where tenant = ${tenant} for update`.execute(transaction);
      await refuseHeld(transaction, tenant);
      let rows = 0;
      for (const { name } of tables) {
        const { numAffectedRows = 0n } = await sql`delete from ${sql.table(name)} where tenant = ${tenant}`.execute(
          transaction,
        );
        rows += Number(numAffectedRows);
      }
      return rows;
    },
    { retries: 3 },
  );
}

/** Waits for the end of transactions that began before this call, for a minute at most. */
export async function olderTransactionsEnded(db: Database): Promise<void> {
  const { rows: clock } = await sql<{ now: Date }>`select clock_timestamp() as now`.execute(db);
  const end = performance.now() + maxWait;
  while (performance.now() < end) {
    const { rows } = await sql`
      select from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid() and xact_start < ${clock[0]?.now ?? null} limit 1`.execute(
      db,
    );
    if (rows.length === 0) return;
    await sleep(checkEvery);
  }
}

/** A table whose rows belong to tenants. */
interface TenantTable {
  readonly name: string;
  /** The columns of its primary key without `tenant`, in order, with their SQL types. */
  readonly key: readonly { readonly name: string; readonly type: string }[];
}

interface FoundTable extends TenantTable {
  readonly references: readonly string[];
}

/**
 * Every table with a column `tenant`, from the database's catalogue, so that none can be forgotten. A table precedes
 * those that its rows refer to; `tenant` is the last one.
 */
export async function tenantTables(db: Database): Promise<TenantTable[]> {
  const { rows } = await sql<FoundTable>`
    with found as (
      select c.oid, c.relname as name
        from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant' and not a.attisdropped
        where c.relkind in ('r', 'p') and not c.relispartition and c.relnamespace = current_schema()::regnamespace
    )
    select found.name,
        coalesce((
          select json_agg(json_build_object('name', a.attname, 'type', format_type(a.atttypid, a.atttypmod)) order by k.place)
            from pg_index i
            cross join unnest(i.indkey::int2[]) with ordinality as k (number, place)
            join pg_attribute a on a.attrelid = found.oid and a.attnum = k.number
            where i.indrelid = found.oid and i.indisprimary and a.attname <> 'tenant'), '[]') as key,
        coalesce((
          select json_agg(distinct parent.name)
            from pg_constraint f join found parent on parent.oid = f.confrelid
            where f.contype = 'f' and f.conrelid = found.oid and f.confrelid <> found.oid), '[]') as references
      from found order by found.name`.execute(db);
  const left = [...rows];
  const ordered: TenantTable[] = [];
  while (left.length > 0) {
    const isFree = ({ name }: FoundTable) =>
      left.every((other) => other.name === name || !other.references.includes(name));
    const next = left.findIndex((candidate) => isFree(candidate) && (candidate.name !== 'tenant' || left.length === 1));
    const [table] = left.splice(next, 1);
    if (next === -1 || table === undefined) throw new Error('tables of tenants refer to each other in a circle');
    ordered.push({ name: table.name, key: table.key });
  }
  return ordered;
}
