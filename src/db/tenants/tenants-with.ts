import { sql } from 'kysely';
import type { Database, DatabaseTransaction } from '../database.ts';

/**
 * The tenants that have rows in a table for which an SQL condition is true, by name. In a cluster it leaves out the
 * tenants of a worker that is away, so that work for all tenants goes on for the others. The condition is a constant
 * text of the program: it never contains a value from outside.
 *
 * @example
 * await tenantsWith(db, 'mail', 'sent_at is null and due_at <= statement_timestamp()');
 */
export async function tenantsWith(
  db: Database | DatabaseTransaction,
  table: string,
  condition: string,
): Promise<string[]> {
  const { rows } = await sql<{
    tenant: string;
  }>`select tenant from tenants_with(${table}, ${condition}) tenant`.execute(db);
  return rows.map(({ tenant }) => tenant);
}

/** Does work for each of these tenants. Where it fails for one, it goes on with the others and then throws the first error. */
export async function forEachTenant(
  tenants: readonly string[],
  work: (tenant: string) => Promise<unknown>,
): Promise<void> {
  const errors: unknown[] = [];
  for (const tenant of tenants) {
    try {
      await work(tenant);
    } catch (error) {
      errors.push(error);
    }
  }
  if (errors.length > 0) throw errors[0];
}
