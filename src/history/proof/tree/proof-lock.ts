import { sql } from 'kysely';
import type { DatabaseTransaction } from '../../../postgres/database.ts';

// What seals a tenant and what erases of it exclude each other, and so do two processes that seal it. The lock ends with the
// transaction. In a cluster all ask the coordinator for it.

/** Waits until nobody else works on the proof of the tenant. */
export async function lockProof(transaction: DatabaseTransaction, tenant: string): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended(${`proof ${tenant}`}, 0))`.execute(transaction);
}

/** Whether nobody else works on the proof of the tenant; then nobody else does until the transaction ends. */
export async function tryLockProof(transaction: DatabaseTransaction, tenant: string): Promise<boolean> {
  const { rows } = await sql<{ taken: boolean }>`
    select pg_try_advisory_xact_lock(hashtextextended(${`proof ${tenant}`}, 0)) as taken`.execute(transaction);
  return rows[0]?.taken === true;
}
