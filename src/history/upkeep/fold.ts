import { sql } from 'kysely';
import type { StopSignal } from '../../core/stop-signal.ts';
import type { Database } from '../../postgres/database.ts';
import type { FindTenants, TenantWork } from '../../postgres/tenants/tenants-with.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import { givePositions } from '../../recording/positions.ts';
import { type DeltaRange, nameDocumentsOfDeltas } from '../documents/name-documents.ts';

/** Approximate entries that one transaction folds, which limits the memory of the database. */
const entriesOfFold = 500_000;
/** Approximate entries whose names a fold reads at once, which limits the memory of the service. */
const namesAtOnce = 20_000;

/**
 * Moves appended entries into the tallies, portion by portion, and adds their documents to the directory. Returns the
 * number of entries; 0 while another process folds the tenant. Totals are exact before, during and after a fold, which
 * keeps them cheap.
 */
export async function foldHistory(db: Database, tenant: string, portion = entriesOfFold): Promise<number> {
  for (let folded = 0; ; ) {
    const entries = await foldPortion(db, tenant, portion);
    folded += entries;
    if (entries < portion) return folded;
  }
}

/**
 * Folds `portion` entries or slightly more, and reads their names `names` at a time. A smaller result means that none
 * are left. Gives positions first: entries without one are not folded.
 */
export async function foldPortion(db: Database, tenant: string, portion: number, names = namesAtOnce): Promise<number> {
  await givePositions(db, tenant);
  return await inTransaction(
    db,
    async (transaction) => {
      const { rows: portions } = await sql<DeltaRange>`
        select first, last from change_fold_portions(${tenant}, ${portion}, ${names})`.execute(transaction);
      if (portions.length === 0) return 0;
      for (const deltas of portions) await nameDocumentsOfDeltas(transaction, tenant, deltas);
      const { rows } = await sql<{ folded: number | null }>`
        select change_fold(${tenant}, ${portion}) as folded`.execute(transaction);
      return rows[0]?.folded ?? 0;
    },
    { isolation: 'repeatable read', retries: 3 },
  );
}

interface FoldTenantsOptions {
  signal: StopSignal;
  /** Called when no work is left, with the milliseconds of the last round. */
  rest: (taken: number) => Promise<void>;
  onError: (error: unknown) => void;
  /** Called after each portion with its number of entries. */
  onFolded?: ((entries: number) => void) | undefined;
  portion?: number;
  findTenants: FindTenants;
}

/** Folds one portion of each tenant in turn, so that a busy one does not delay others. Failures are retried later. */
export async function foldTenants(db: Database, options: FoldTenantsOptions): Promise<void> {
  const { signal, rest, onError, onFolded, portion = entriesOfFold, findTenants } = options;
  let more: boolean;
  let begun: number;
  do {
    begun = performance.now();
    more = false;
    for (const tenant of await findTenants(unfolded)) {
      if (signal.aborted) return;
      try {
        const folded = await foldPortion(db, tenant, portion);
        if (folded > 0) onFolded?.(folded);
        if (folded >= portion) more = true;
      } catch (error) {
        onError(error);
      }
    }
  } while (more);
  await rest(performance.now() - begun);
}

export const unfolded: TenantWork = { table: 'change_delta', condition: 'true' };
