import { sql } from 'kysely';
import type { Database } from '../../db/database.ts';

/** What a tenant's history has, of what its retention keeps. */
export interface HistorySummary {
  readonly entries: number;
  /** Times of the oldest and the newest entry, in milliseconds since 1970; null where there is none. */
  readonly oldest: number | null;
  readonly newest: number | null;
}

/** The exact number is from the tallies, so it costs the same however long the history is. */
export async function summariseHistory(db: Database, tenant: string, now: number): Promise<HistorySummary> {
  const { rows } = await sql<HistorySummary>`
    select entries, oldest, newest from change_summary(${tenant}, ${now}::bigint)`.execute(db);
  return rows[0] ?? { entries: 0, oldest: null, newest: null };
}
