import { sql } from 'kysely';
import { OperatorError } from '../../core/errors.ts';
import type { Database, DatabaseTransaction } from '../database.ts';
import { inTransaction } from '../transaction.ts';
import { forEachTenant, type TenantWork, tenantsWith } from './tenants-with.ts';

/** Rows that one statement deletes. */
const portion = 1_000;

/**
 * Deletes the rows of a table for which a condition is true, of all tenants, in portions and in the order of their ids. The table's
 * primary key is `tenant` and `id`. Nothing of a tenant on hold is deleted.
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

/** Nobody else who locks the tenant goes on until the transaction ends: what is counted meanwhile stays true. */
export async function lockTenant(transaction: DatabaseTransaction, tenant: string): Promise<void> {
  await sql`select from tenant where tenant = ${tenant} for no key update`.execute(transaction);
}

/**
 * The rows of a query over tables of all tenants, which is a constant text of the program. `%1$s` in it stands for the first table. In a cluster
 * these are the rows of each shard by itself, and those of a worker that is away are missing.
 *
 * @example
 * await rowsOfAll<{ mails: number }>(db, 'select count(*) as mails from %1$s', ['mail']);
 */
export async function rowsOfAll<Row>(db: Database, query: string, tables: readonly string[]): Promise<Row[]> {
  const { rows } = await sql<{ found: Row }>`
    select found from rows_of_all(${query}, ${[...tables]}::text[]) as found`.execute(db);
  return rows.map(({ found }) => found);
}

/** Nothing of a tenant on hold is dropped or erased. */
export interface Hold {
  /** Milliseconds since 1970. */
  readonly since: number;
  readonly reason: string;
}

/**
 * The hold of a tenant, if it has one. Until the transaction, which is read committed, has ended, nobody puts one on it: so what is
 * dropped or erased in a transaction that has called this before is done before the answer to `annals hold`.
 */
export async function findHold(transaction: DatabaseTransaction, tenant: string): Promise<Hold | undefined> {
  await sql`select from tenant where tenant = ${tenant} for share`.execute(transaction);
  return await readHold(transaction, tenant);
}

/** The same for the transaction that puts a hold on the tenant or takes it away. It waits for those that drop or erase. */
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
    `${tenant} is on hold since ${since} (${hold.reason}): nothing of it is deleted. To end that: annals hold --tenant ${tenant} --release`,
  );
}

async function readHold(transaction: DatabaseTransaction, tenant: string): Promise<Hold | undefined> {
  const { rows } = await sql<Hold>`
    select held_since as since, coalesce(held_reason, '') as reason from change_retention
      where tenant = ${tenant} and held_since is not null`.execute(transaction);
  return rows[0];
}
