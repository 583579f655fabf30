import { CompiledQuery } from 'kysely';
import type { Database, DatabaseTransaction } from '../../db/database.ts';
import { inTransaction } from '../../db/transaction.ts';
import type { StopSignal } from '../../stop-signal.ts';

/** So many entries, more or less, are folded in one transaction: what the database keeps of them in memory is bounded. */
const entriesOfPortion = 500_000;

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
export async function foldPortion(db: Database, tenant: string, portion: number): Promise<number> {
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

export interface FoldTenantsOptions {
  /** Ends it after the portion that is being folded. */
  signal: StopSignal;
  /** Told how many milliseconds the last round took, when there is no more to do at once. */
  rest: (taken: number) => Promise<void>;
  onError: (error: unknown) => void;
  /** Entries. */
  portion?: number;
}

/**
 * Folds what all tenants have, a portion of each in turn, so that one with much to fold keeps nobody else waiting for
 * long. A tenant whose turn fails is left to the next round.
 */
export async function foldTenants(db: Database, options: FoldTenantsOptions): Promise<void> {
  const { signal, rest, onError, portion = entriesOfPortion } = options;
  let more: boolean;
  let begun: number;
  do {
    begun = performance.now();
    more = false;
    for (const tenant of await tenantsToFold(db)) {
      if (signal.aborted) return;
      try {
        if ((await foldPortion(db, tenant, portion)) >= portion) more = true;
      } catch (error) {
        onError(error);
      }
    }
  } while (more);
  await rest(performance.now() - begun);
}

/**
 * The tenants with entries that are not folded yet. The index is asked for the first of them, and from each for the next:
 * every process looks each second, and pays for these alone, however many tenants there are and whatever one has left.
 */
export async function tenantsToFold(db: Database | DatabaseTransaction): Promise<string[]> {
  const { rows } = await db.executeQuery<{ tenant: string }>(
    CompiledQuery.raw(
      `with recursive pending (tenant) as (
         (select d.tenant from change_delta d order by d.tenant limit 1)
         union all
         select (select d.tenant from change_delta d where d.tenant > p.tenant order by d.tenant limit 1)
           from pending p
           where p.tenant is not null
       )
       select tenant from pending where tenant is not null`,
      [],
    ),
  );
  return rows.map((row) => row.tenant);
}
