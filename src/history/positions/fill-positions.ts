import { sql } from 'kysely';
import type { Connection, Database } from '../../postgres/database.ts';
import { type BacklogOptions, type TenantWork, workInTurn } from '../../postgres/tenants/tenants-with.ts';
import { givePositions } from './give-positions.ts';

/** Entries of a portion: five rows of positions. */
const entriesOfPortion = 20_480;

/** Tenants whose older entries may have no positions yet. */
export const unfilledPositions: TenantWork = {
  table: 'change_position_backlog',
  condition: 'filled is distinct from until',
};

/** Gives positions to the entries that an earlier version recorded. */
export async function fillPositionsOfTenants(db: Database, options: BacklogOptions): Promise<void> {
  await workInTurn(unfilledPositions, options, (tenant) => fillPortion(db, tenant));
}

/** Fills one portion, the oldest entries first, in a short transaction. Returns whether some are left. */
export async function fillPortion(db: Database, tenant: string, portion = entriesOfPortion): Promise<boolean> {
  // It counts the entries first.
  await givePositions(db, tenant);
  const { rows } = await sql<{ more: boolean }>`
    select change_position_fill(${tenant}, ${portion}) as more`.execute(db);
  return rows[0]?.more ?? false;
}

/** Whether older entries of the tenant may have no positions yet. Retention waits for them. */
export async function isFilling(transaction: Connection, tenant: string): Promise<boolean> {
  const { rows } = await sql`
    select from change_position_backlog
      where tenant = ${tenant} and filled is distinct from until`.execute(transaction);
  return rows.length > 0;
}
