import { sql } from 'kysely';
import { OperatorError } from '../../core/operator-error.ts';
import type { DatabaseTransaction } from '../database.ts';

/** Nothing of a tenant on hold is dropped or erased. */
export interface Hold {
  /** Milliseconds since 1970. */
  readonly since: number;
  readonly reason: string;
}

/**
 * The hold of a tenant, if it has one. Until the transaction, which is read committed, has ended, nobody puts one on it: so what is
 * dropped or erased in a transaction that has called this before is done before the answer to `annals hold`.
 */
export async function findHold(transaction: DatabaseTransaction, tenant: string): Promise<Hold | undefined> {
  await sql`select from tenant where tenant = ${tenant} for share`.execute(transaction);
  return await readHold(transaction, tenant);
}

/** The same for the transaction that puts a hold on the tenant or takes it away. It waits for those that drop or erase. */
export async function lockHold(transaction: DatabaseTransaction, tenant: string): Promise<Hold | undefined> {
  await sql`select from tenant where tenant = ${tenant} for no key update`.execute(transaction);
  return await readHold(transaction, tenant);
}

/** Throws an OperatorError if the tenant is on hold. See `findHold`. */
export async function refuseHeld(transaction: DatabaseTransaction, tenant: string): Promise<void> {
  const hold = await findHold(transaction, tenant);
  if (hold === undefined) return;
  const since = new Date(hold.since).toISOString();
  throw new OperatorError(
    `${tenant} is on hold since ${since} (${hold.reason}): nothing of it is deleted. To end that: annals hold --tenant ${tenant} --release`,
  );
}

async function readHold(transaction: DatabaseTransaction, tenant: string): Promise<Hold | undefined> {
  const { rows } = await sql<Hold>`
    select held_since as since, coalesce(held_reason, '') as reason from change_retention
      where tenant = ${tenant} and held_since is not null`.execute(transaction);
  return rows[0];
}
