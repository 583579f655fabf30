import { sql } from 'kysely';
import type { StopSignal } from '../../core/stop-signal.ts';
import type { Database } from '../../postgres/database.ts';
import type { FindTenants, TenantWork } from '../../postgres/tenants/tenants-with.ts';
import { isLostRace } from '../../postgres/transaction.ts';

/** Approximate number of entries that get positions in one transaction. It limits what the database keeps of them in memory. */
const entriesOfRound = 200_000;

/**
 * Gives positions to all changes of a tenant that are committed and have none, and returns how many it gave them to. Returns 0
 * where another call does so at the moment. A call that finds nothing writes nothing.
 */
export async function givePositions(db: Database, tenant: string, round = entriesOfRound): Promise<number> {
  let given = 0;
  for (;;) {
    const entries = await giveRound(db, tenant, round);
    given += entries;
    if (entries < round) return given;
  }
}

async function giveRound(db: Database, tenant: string, round: number): Promise<number> {
  try {
    const { rows } = await sql<{ given: number | null }>`
      select change_position_give(${tenant}, ${round}) as given`.execute(db);
    return rows[0]?.given ?? 0;
  } catch (error) {
    if (isLostRace(error)) return 0;
    throw error;
  }
}

export interface GivePositionsOptions {
  signal: StopSignal;
  findTenants: FindTenants;
  /** What tenants with changes that have no position have. */
  work: TenantWork;
  onError: (error: unknown) => void;
}

/** Gives positions to the changes of all tenants. If the turn of a tenant fails, the next call tries it again. */
export async function givePositionsOfTenants(
  db: Database,
  { signal, findTenants, work, onError }: GivePositionsOptions,
): Promise<void> {
  for (const tenant of await findTenants(work)) {
    if (signal.aborted) return;
    try {
      await givePositions(db, tenant);
    } catch (error) {
      onError(error);
    }
  }
}
