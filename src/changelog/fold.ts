import { CompiledQuery } from 'kysely';
import type { Database } from '../db/database.ts';
import { inTransaction } from '../db/transaction.ts';

/** So many entries, more or less, are folded in one transaction: what the database keeps of them in memory is bounded. */
export const entriesOfPortion = 500_000;

/**
 * Moves what recorders have appended into the tallies, portion by portion, and answers how many entries that were.
 * Totals are exact before, after and meanwhile; folding keeps them cheap. Does nothing where another process is
 * folding the tenant.
 */
export async function foldHistory(db: Database, tenant: string, portion = entriesOfPortion): Promise<number> {
  let folded = 0;
  for (;;) {
    const entries = await foldPortion(db, tenant, portion);
    folded += entries;
    if (entries < portion) return folded;
  }
}

/** The same for one portion: as many entries, or some more; fewer are all there were. */
export async function foldPortion(db: Database, tenant: string, portion = entriesOfPortion): Promise<number> {
  return await inTransaction(
    db,
    async (transaction) => {
      const { rows } = await transaction.executeQuery<{ folded: number | null }>(
        CompiledQuery.raw('select change_fold($1, $2) as folded', [tenant, portion]),
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
