import { sql } from 'kysely';
import type { StopSignal } from '../../core/stop-signal.ts';
import type { Database } from '../../postgres/database.ts';
import type { FindTenants, TenantWork } from '../../postgres/tenants/tenants-with.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import { givePositions } from '../../recording/positions.ts';
import { type DeltaRange, nameDocumentsOfDeltas } from '../documents/name-documents.ts';

/** Approximate number of entries that one transaction folds. It limits what the database keeps of them in memory. */
const entriesOfFold = 500_000;

/** Approximate number of entries whose names a fold reads at once. It limits what Annals keeps of them in memory. */
const namesAtOnce = 20_000;

/**
 * Moves the entries that recorders have appended into the tallies, portion by portion. Returns the number of these
 * entries. Totals are exact before, during and after a fold; folding keeps them cheap. It also names the documents of these
 * entries in the directory. Does nothing if another process is
 * folding the tenant.
 */
export async function foldHistory(db: Database, tenant: string, portion = entriesOfFold): Promise<number> {
  let folded = 0;
  for (;;) {
    const entries = await foldPortion(db, tenant, portion);
    folded += entries;
    if (entries < portion) return folded;
  }
}

/**
 * Folds one portion: `portion` entries or slightly more, and reads their names `names` at a time. A smaller result means that
 * no more entries were left. Before that it gives positions to the entries that have none: those without a position are not folded.
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

export interface FoldTenantsOptions {
  signal: StopSignal;
  /** Called when no work is left for now, with the milliseconds that the last round took. */
  rest: (taken: number) => Promise<void>;
  onError: (error: unknown) => void;
  /** Called after each portion that had entries, with their number. */
  onFolded?: ((entries: number) => void) | undefined;
  portion?: number;
  findTenants: FindTenants;
}

/**
 * Folds the entries of all tenants, one portion of each tenant in turn. So a tenant with many entries does not delay the
 * others for long. If the turn of a tenant fails, the next round tries it again.
 */
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
