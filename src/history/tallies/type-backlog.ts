import { CompiledQuery } from 'kysely';
import type { Database } from '../../postgres/database.ts';
import type { FindTenants, TenantWork } from '../../postgres/tenants/tenants-with.ts';
import { inTransaction } from '../../postgres/transaction.ts';

/** Approximate number of entries that one transaction reads. Folds of the tenant wait for it. */
const entriesOfPortion = 100_000;

/**
 * Counts some entries by type that an earlier version of Annals folded. Returns true when all of them are counted. Does
 * nothing and returns false if another process is folding the tenant.
 */
export async function countBacklogPortion(db: Database, tenant: string, portion = entriesOfPortion): Promise<boolean> {
  return await inTransaction(
    db,
    async (transaction) => {
      const { rows } = await transaction.executeQuery<{ complete: boolean | null }>(
        CompiledQuery.raw('select change_fold_types($1, $2) as complete', [tenant, portion]),
      );
      return rows[0]?.complete === true;
    },
    { isolation: 'repeatable read', retries: 3 },
  );
}

export interface CountBacklogsOptions {
  signal: AbortSignal;
  /** Called with the milliseconds that a portion took. */
  rest: (taken: number) => Promise<void>;
  onError: (error: unknown) => void;
  findTenants: FindTenants;
}

/** Entries that an earlier version has not counted by type. */
export const uncounted: TenantWork = { table: 'change_type_backlog', condition: 'true' };

/**
 * Counts the entries of all tenants by type where an earlier version has not, one portion of each tenant in turn. Until a
 * tenant's entries are all counted, its histograms add up the tallies of its kinds. If the turn of a tenant fails, the
 * next run tries it again.
 */
export async function countBacklogs(db: Database, options: CountBacklogsOptions): Promise<void> {
  const { signal, rest, onError, findTenants } = options;
  let open = await findTenants(uncounted);
  while (open.length > 0) {
    const left: string[] = [];
    for (const tenant of open) {
      if (signal.aborted) return;
      const begun = performance.now();
      try {
        if (!(await countBacklogPortion(db, tenant))) left.push(tenant);
      } catch (error) {
        onError(error);
      }
      await rest(performance.now() - begun);
    }
    open = left;
  }
}
