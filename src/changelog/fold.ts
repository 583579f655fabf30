import { CompiledQuery } from 'kysely';
import type { Database } from '../db/database.ts';
import { inTransaction } from '../db/transaction.ts';

/**
 * Moves what recorders have appended into the tallies and answers how many entries that were. Totals are exact
 * before and after; folding keeps them cheap. Does nothing where another process is folding the tenant.
 */
export async function foldHistory(db: Database, tenant: string): Promise<number> {
  return await inTransaction(
    db,
    async (transaction) => {
      const { rows } = await transaction.executeQuery<{ folded: number | null }>(
        CompiledQuery.raw('select change_fold($1) as folded', [tenant]),
      );
      return rows[0]?.folded ?? 0;
    },
    { isolation: 'repeatable read', retries: 3 },
  );
}

/** The tenants with entries that are not folded yet. */
export async function tenantsToFold(db: Database): Promise<string[]> {
  const { rows } = await db.executeQuery<{ tenant: string }>(
    CompiledQuery.raw(
      'select t.tenant from tenant t where exists (select from change_delta d where d.tenant = t.tenant)',
      [],
    ),
  );
  return rows.map((row) => row.tenant);
}
