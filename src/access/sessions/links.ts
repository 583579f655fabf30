import './session-store.ts';
import { sql } from 'kysely';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';
import { tenantsWith } from '../../postgres/tenants/tenants-with.ts';
import { hashSecret, newSecret, writeSecret } from './sealed-cookie.ts';

/** Milliseconds (contract 13). */
export const linkLifetime = 60_000;

/**
 * Makes a link into the console for a client without a secret, and returns what stands behind the `#` of its address. The
 * caller makes the client in the same transaction.
 *
 * @example
 * const fragment = await createLink(transaction, { tenant, clientId, lifetime: linkLifetime }); // link=acme.3q2-7w…
 */
export async function createLink(
  transaction: DatabaseTransaction,
  { tenant, clientId, lifetime }: { tenant: string; clientId: string; lifetime: number },
): Promise<string> {
  const secret = newSecret(tenant);
  await insertLink(transaction, { tenant, secretHash: hashSecret(secret), clientId }, lifetime);
  return `link=${writeSecret(secret)}`;
}

/** The link is good for that many milliseconds. */
async function insertLink(
  transaction: DatabaseTransaction,
  { tenant, secretHash, clientId }: { tenant: string; secretHash: Uint8Array; clientId: string },
  lifetime: number,
): Promise<void> {
  const expiresAt = sql<Date>`statement_timestamp() + ${lifetime} * interval '1 millisecond'`;
  await transaction
    .insertInto('console_link')
    .values({ tenant, secret_hash: secretHash, client_id: clientId, expires_at: expiresAt })
    .execute();
}

/** Deletes a link that has not expired, and returns its client. Of several callers one alone gets it. */
export async function takeLink(
  transaction: DatabaseTransaction,
  tenant: string,
  secretHash: Uint8Array,
): Promise<string | undefined> {
  const row = await transaction
    .deleteFrom('console_link')
    .where(({ and }) => and({ tenant, secret_hash: secretHash }))
    .where('expires_at', '>', sql<Date>`statement_timestamp()`)
    .returning('client_id')
    .executeTakeFirst();
  return row?.client_id;
}

/** The tenants that have expired links. */
export async function tenantsWithExpiredLinks(db: Database): Promise<string[]> {
  return await tenantsWith(db, { table: 'console_link', condition: 'expires_at <= statement_timestamp()' });
}

/** Returns the ids of their clients. */
export async function deleteExpiredLinks(transaction: DatabaseTransaction, tenant: string): Promise<string[]> {
  const rows = await transaction
    .deleteFrom('console_link')
    .where('tenant', '=', tenant)
    .where('expires_at', '<=', sql<Date>`statement_timestamp()`)
    .returning('client_id')
    .execute();
  return rows.map(({ client_id: clientId }) => clientId);
}
