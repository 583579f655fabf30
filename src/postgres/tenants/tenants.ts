import { sql } from 'kysely';
import { OperatorError } from '../../core/errors.ts';
import type { Database, DatabaseTransaction } from '../database.ts';
import { inTransaction } from '../transaction.ts';
import { forEachTenant, type TenantWork, tenantsWith } from './tenants-with.ts';

/** Rows of a statement. */
const portion = 1_000;

/**
 * Deletes the rows of a table that satisfy a condition, of all tenants not on hold, in portions and in the order of
 * ids. The table's primary key is `tenant` and `id`.
 */
export async function dropRows(db: Database, { table, condition }: TenantWork): Promise<void> {
  const [name, isMeant] = [sql.table(table), sql.raw(condition)];
  await forEachTenant(await tenantsWith(db, { table, condition }), async (tenant) => {
    for (let deleted = BigInt(portion); deleted >= portion; ) {
      deleted = await inTransaction(db, async (transaction) => {
        if ((await findHold(transaction, tenant)) !== undefined) return 0n;
        const { numAffectedRows = 0n } = await sql`
          delete from ${name} where tenant = ${tenant} and id in (
            select id from ${name} where tenant = ${tenant} and ${isMeant} order by id limit ${portion}::integer)`.execute(
          transaction,
        );
        return numAffectedRows;
      });
    }
  });
}

/** The rule for a tenant's name (spec A: path parameters), and our limit of 63 characters. */
export const tenantPattern = /^[a-z][a-z0-9]{1,62}$/;

/** Creates a tenant; idempotent. Returns false if the tenant exists (contract 1). */
export async function createTenant(db: Database, tenant: string): Promise<boolean> {
  const result = await db
    .insertInto('tenant')
    .values({ tenant })
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirst();
  return result.numInsertedOrUpdatedRows === 1n;
}

/** Whether the tenant exists. */
export async function tenantExists(db: Database, tenant: string): Promise<boolean> {
  const row = await db.selectFrom('tenant').select('tenant').where('tenant', '=', tenant).executeTakeFirst();
  return row !== undefined;
}

/** Blocks other callers until the end of the transaction, so that what it counts stays true. */
export async function lockTenant(transaction: DatabaseTransaction, tenant: string): Promise<void> {
  await sql`select from tenant where tenant = ${tenant} for no key update`.execute(transaction);
}

/**
 * The rows of a query over tables of all tenants, which is a constant of the program; `%1$s` is the first table. In a
 * cluster it runs on each shard separately, without those of unreachable workers.
 *
 * @example
 * await rowsOfAll<{ mails: number }>(db, 'select count(*) as mails from %1$s', ['mail']);
 */
export async function rowsOfAll<Row>(db: Database, query: string, tables: readonly string[]): Promise<Row[]> {
  const { rows } = await sql<{ found: Row }>`
    select found from rows_of_all(${query}, ${[...tables]}::text[]) as found`.execute(db);
  return rows.map(({ found }) => found);
}

/** A hold, under which nothing of a tenant is dropped or erased. */
export interface Hold {
  /** Milliseconds since 1970. */
  readonly since: number;
  readonly reason: string;
}

/**
 * The hold of a tenant, if it has one. No hold can be set until the end of the (read committed) transaction, so its
 * deletions are done before `annals hold` returns.
 */
export async function findHold(transaction: DatabaseTransaction, tenant: string): Promise<Hold | undefined> {
  await sql`select from tenant where tenant = ${tenant} for share`.execute(transaction);
  return await readHold(transaction, tenant);
}

/** The same for a transaction that sets or releases a hold. Waits for those that drop or erase. */
export async function lockHold(transaction: DatabaseTransaction, tenant: string): Promise<Hold | undefined> {
  await sql`select from tenant where tenant = ${tenant} for no key update`.execute(transaction);
  return await readHold(transaction, tenant);
}

/** Throws an OperatorError if the tenant is on hold. See `findHold`. */
export async function refuseHeld(transaction: DatabaseTransaction, tenant: string): Promise<void> {
  const hold = await findHold(transaction, tenant);
  if (hold === undefined) return;
  const since = new Date(hold.since).toISOString();
  throw new OperatorError(
    `${tenant} is on hold since ${since} (${hold.reason}): nothing of it is deleted. To release it: annals hold --tenant ${tenant} --release`,
  );
}

async function readHold(transaction: DatabaseTransaction, tenant: string): Promise<Hold | undefined> {
  const { rows } = await sql<Hold>`
    select held_since as since, coalesce(held_reason, '') as reason from change_retention
      where tenant = ${tenant} and held_since is not null`.execute(transaction);
  return rows[0];
}
