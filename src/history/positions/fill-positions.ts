import { CompiledQuery } from 'kysely';
import type { StopSignal } from '../../core/stop-signal.ts';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';
import type { FindTenants, TenantWork } from '../../postgres/tenants/tenants-with.ts';
import { givePositions } from './give-positions.ts';

/** Entries of a portion: five rows of positions. */
const entriesOfPortion = 20_480;

/** Tenants whose older entries may have no positions yet. */
export const unfilledPositions: TenantWork = {
  table: 'change_position_backlog',
  condition: 'filled is distinct from until',
};

export interface FillPositionsOptions {
  signal: StopSignal;
  findTenants: FindTenants;
  /** Called with the milliseconds that a portion took. */
  rest: (taken: number) => Promise<void>;
  onError: (error: unknown) => void;
}

/**
 * Gives positions to the entries that an earlier version recorded, one portion of each tenant in turn. If the turn of a tenant
 * fails, the next run tries it again.
 */
export async function fillPositionsOfTenants(db: Database, options: FillPositionsOptions): Promise<void> {
  const { signal, findTenants, rest, onError } = options;
  let tenants = await findTenants(unfilledPositions);
  while (tenants.length > 0) {
    const open: string[] = [];
    for (const tenant of tenants) {
      if (signal.aborted) return;
      const begun = performance.now();
      try {
        if (await fillPortion(db, tenant)) open.push(tenant);
      } catch (error) {
        onError(error);
      }
      await rest(performance.now() - begun);
    }
    tenants = open;
  }
}

/** Fills one portion, the oldest entries first, in a short transaction. Returns whether some are left. */
export async function fillPortion(db: Database, tenant: string, portion = entriesOfPortion): Promise<boolean> {
  // It counts the entries first.
  await givePositions(db, tenant);
  const { rows } = await db.executeQuery<{ more: boolean }>(
    CompiledQuery.raw('select change_position_fill($1, $2) as more', [tenant, portion]),
  );
  return rows[0]?.more ?? false;
}

/** Whether older entries of the tenant may have no positions yet. Retention waits for them. */
export async function isFilling(transaction: DatabaseTransaction, tenant: string): Promise<boolean> {
  const { rows } = await transaction.executeQuery(
    CompiledQuery.raw('select from change_position_backlog where tenant = $1 and filled is distinct from until', [
      tenant,
    ]),
  );
  return rows.length > 0;
}
