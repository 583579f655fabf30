import { sql } from 'kysely';
import type { DatabaseTransaction } from '../../postgres/database.ts';

/** Whether the tenant is there, and which of these entity types are its own. */
export async function readTenantFacts(
  transaction: DatabaseTransaction,
  tenant: string,
  entities: readonly string[],
): Promise<{ exists: boolean; ownTypes: ReadonlySet<string> }> {
  const { rows } = await sql<{ exists: boolean; own: string[] }>`
    select exists (select from tenant t where t.tenant = ${tenant}) as exists,
           array(select c.id from custom_entity c where c.tenant = ${tenant} and c.id = any (${entities}::text[])) as own`.execute(
    transaction,
  );
  const [row] = rows;
  return { exists: row?.exists ?? false, ownTypes: new Set(row?.own) };
}
