import './session-store.ts';
import { sql } from 'kysely';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';
import { tenantsWith } from '../../postgres/tenants/tenants-with.ts';
import { hashSecret, newSecret, writeSecret } from './sealed-cookie.ts';

/** Milliseconds (contract 13). */
export const linkLifetime = 60_000;

/**
 * Creates a link to the console for a client without a secret, which the caller creates in the same transaction.
 * Returns the fragment of its address.
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

/** `lifetime` is in milliseconds. */
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

/** Deletes a valid link and returns its client, to one caller only. */
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

/** The tenants with expired links. */
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
