import { sql } from 'kysely';
import type { Database } from '../../postgres/database.ts';

/** The number of active sessions of all tenants, without ended ones that remain for their keys. */
export async function countSessions(db: Database): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*) as count from console_session where expires_at > statement_timestamp() and not for_keys`.execute(
    db,
  );
  return rows[0]?.count ?? 0;
}
