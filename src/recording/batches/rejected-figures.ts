import { sql } from 'kysely';
import type { Database } from '../../postgres/database.ts';

/** Rejected changes stored for all tenants. */
export async function countRejected(db: Database): Promise<number> {
  const { rows } = await sql<{ count: number }>`select count(*) as count from change_rejected`.execute(db);
  return rows[0]?.count ?? 0;
}
