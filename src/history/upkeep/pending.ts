import { sql } from 'kysely';
import type { Database } from '../../postgres/database.ts';

export interface PendingChanges {
  readonly tenant: string;
  readonly changes: number;
  /** Identifies the oldest row of them. */
  readonly oldest: number;
}

/** Reads the changes of all tenants that are not folded yet. Its cost depends on their number alone. */
export async function readPendingChanges(db: Database): Promise<PendingChanges[]> {
  const { rows } = await sql<PendingChanges>`
    select tenant, sum(cardinality(ats))::bigint as changes, min(delta) as oldest from change_delta group by tenant`.execute(
    db,
  );
  return rows;
}
