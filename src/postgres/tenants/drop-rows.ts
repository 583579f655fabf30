import { sql } from 'kysely';
import type { Database } from '../database.ts';
import { inTransaction } from '../transaction.ts';
import { findHold } from './held-tenant.ts';
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
