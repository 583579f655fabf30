import { sql } from 'kysely';
import type { Database } from '../../postgres/database.ts';

/** The number of waiting mails of all tenants, and the seconds since the oldest was queued: 0 without any. */
export async function readWaiting(db: Database): Promise<{ count: number; oldest: number }> {
  const { rows } = await sql<{ count: number; oldest: number }>`
    select count(*) as count,
           coalesce(extract(epoch from clock_timestamp() - min(queued_at)), 0)::double precision as oldest
      from mail where sent_at is null`.execute(db);
  return rows[0] ?? { count: 0, oldest: 0 };
}
