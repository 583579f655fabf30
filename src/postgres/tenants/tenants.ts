import { sql } from 'kysely';
import type { Database, DatabaseTransaction } from '../database.ts';

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
