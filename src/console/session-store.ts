import { sql } from 'kysely';
import type { Database, DatabaseTransaction } from '../postgres/database.ts';
import { tenantsWith } from '../postgres/tenants/tenants-with.ts';
import './tables.ts';

export interface NewSession {
  tenant: string;
  secretHash: Uint8Array;
  clientId: string;
  scopes: readonly string[];
  /** Whether a link made the client. */
  byLink: boolean;
}

export interface StoredSession {
  tenant: string;
  secretHash: Uint8Array;
  clientId: string;
  scopes: string[];
  expiresAt: Date;
  expired: boolean;
}

/** Returns when it expires, after that many milliseconds. */
export async function insertSession(
  transaction: DatabaseTransaction,
  { tenant, secretHash, clientId, scopes, byLink }: NewSession,
  lifetime: number,
): Promise<Date> {
  const { expires_at: expiresAt } = await transaction
    .insertInto('console_session')
    .values({
      tenant,
      secret_hash: secretHash,
      client_id: clientId,
      scopes: [...scopes],
      by_link: byLink,
      expires_at: sql<Date>`statement_timestamp() + ${lifetime} * interval '1 millisecond'`,
    })
    .returning('expires_at')
    .executeTakeFirstOrThrow();
  return expiresAt;
}

/** Deletes the client's sessions but the newest ones. */
export async function dropOldestSessions(
  transaction: DatabaseTransaction,
  { tenant, clientId }: NewSession,
  kept: number,
): Promise<void> {
  await sql`
    delete from console_session
      where tenant = ${tenant} and client_id = ${clientId} and secret_hash in (
        select secret_hash from console_session where tenant = ${tenant} and client_id = ${clientId}
          order by created_at desc, secret_hash offset ${kept}::integer)`.execute(transaction);
}

/** The sessions of the tenant with one of these hashes. */
export async function readSessions(
  db: Database,
  tenant: string,
  secretHashes: readonly Buffer[],
): Promise<StoredSession[]> {
  const { rows } = await sql<StoredSession>`
    select tenant, secret_hash as "secretHash", client_id as "clientId", scopes, expires_at as "expiresAt",
        expires_at <= statement_timestamp() as expired
      from console_session where tenant = ${tenant} and secret_hash = any(${secretHashes}::bytea[])`.execute(db);
  return rows;
}

/** Undefined where there is no such session. */
export async function deleteSession(
  transaction: DatabaseTransaction,
  tenant: string,
  secretHash: Uint8Array,
): Promise<{ clientId: string; byLink: boolean } | undefined> {
  return await transaction
    .deleteFrom('console_session')
    .where('tenant', '=', tenant)
    .where('secret_hash', '=', secretHash)
    .returning(['client_id as clientId', 'by_link as byLink'])
    .executeTakeFirst();
}

/** The tenants that have expired sessions. */
export async function tenantsWithExpiredSessions(db: Database): Promise<string[]> {
  return await tenantsWith(db, { table: 'console_session', condition: 'expires_at <= statement_timestamp()' });
}

/** Returns the ids of the clients that end with their sessions. */
export async function deleteExpiredSessions(transaction: DatabaseTransaction, tenant: string): Promise<string[]> {
  const rows = await transaction
    .deleteFrom('console_session')
    .where('tenant', '=', tenant)
    .where('expires_at', '<=', sql<Date>`statement_timestamp()`)
    .returning(['client_id', 'by_link'])
    .execute();
  return rows.filter(({ by_link: byLink }) => byLink).map(({ client_id: clientId }) => clientId);
}
