import { randomBytes } from 'node:crypto';
import { type Generated, sql } from 'kysely';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';
import { tenantsWith } from '../../postgres/tenants/tenants-with.ts';

interface ConsoleSessionTable {
  tenant: string;
  secret_hash: Uint8Array;
  client_id: string;
  scopes: string[];
  by_link: boolean;
  created_at: Generated<Date>;
  expires_at: Date;
  issuer: Generated<string | null>;
  subject: Generated<string | null>;
  sealed_renewal: Generated<Uint8Array | null>;
  tenants: Generated<string[] | null>;
  checked_at: Generated<Date | null>;
  for_keys: Generated<boolean>;
  renewing_until: Generated<Date | null>;
  sealed_id_token: Generated<Uint8Array | null>;
}

interface ConsoleLinkTable {
  tenant: string;
  secret_hash: Uint8Array;
  client_id: string;
  expires_at: Date;
}

declare module '../../postgres/tables.ts' {
  interface Tables {
    console_session: ConsoleSessionTable;
    console_link: ConsoleLinkTable;
  }
}

export interface NewSession {
  tenant: string;
  secretHash: Uint8Array;
  clientId: string;
  scopes: readonly string[];
  /** Whether the client was made for this session, by a link or for a person. It ends with the session. */
  byLink: boolean;
  person?: SessionOfPerson | undefined;
}

/** What a session keeps of a person who signed in with a company's account. */
export interface SessionOfPerson {
  issuer: string;
  subject: string;
  /** Sealed; null where nobody can ask the provider again. */
  renewal: Uint8Array | null;
  /** The ID token, sealed; null where the provider gave none at the last renewal and before. */
  idToken: Uint8Array | null;
  /** Every tenant that lets the person in. */
  tenants: readonly string[];
}

export interface StoredSession {
  tenant: string;
  secretHash: Uint8Array;
  clientId: string;
  scopes: string[];
  expiresAt: Date;
  expired: boolean;
  /** Of a person: the tenants that let them in, and what the OpenID provider knows them by. */
  tenants: string[] | null;
  issuer: string | null;
  subject: string | null;
  /** Whether the provider can be asked again. */
  renews: boolean;
}

/** Returns when it expires, after that many milliseconds. */
export async function insertSession(
  transaction: DatabaseTransaction,
  { tenant, secretHash, clientId, scopes, byLink, person }: NewSession,
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
      ...(person && columnsOf(person)),
    })
    .returning('expires_at')
    .executeTakeFirstOrThrow();
  return expiresAt;
}

function columnsOf({ issuer, subject, renewal, idToken, tenants }: SessionOfPerson) {
  const checkedAt = renewal === null ? null : sql<Date>`statement_timestamp()`;
  return {
    issuer,
    subject,
    sealed_renewal: renewal,
    sealed_id_token: idToken,
    tenants: [...tenants],
    checked_at: checkedAt,
  };
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
    select tenant, secret_hash as "secretHash", client_id as "clientId", scopes, tenants, issuer, subject,
        sealed_renewal is not null as renews, expires_at as "expiresAt",
        expires_at <= statement_timestamp() as expired
      from console_session where tenant = ${tenant} and secret_hash = any(${secretHashes}::bytea[])`.execute(db);
  return rows;
}

export interface EndedSession {
  clientId: string;
  byLink: boolean;
  /** Of a person: what the OpenID provider knows them by. */
  issuer: string | null;
  subject: string | null;
  idToken: Uint8Array | null;
  /** Whether it was over already, and stayed for its keys. */
  forKeys: boolean;
}

const endedColumns = [
  'client_id as clientId',
  'by_link as byLink',
  'issuer',
  'subject',
  'sealed_id_token as idToken',
  'for_keys as forKeys',
] as const;

/** Until the transaction ends, nobody else ends the session. Undefined where there is none. */
export async function lockSession(
  transaction: DatabaseTransaction,
  tenant: string,
  secretHash: Uint8Array,
): Promise<EndedSession | undefined> {
  return await transaction
    .selectFrom('console_session')
    .select(endedColumns)
    .where(({ and }) => and({ tenant, secret_hash: secretHash }))
    .forUpdate()
    .executeTakeFirst();
}

/**
 * The hash of the session of a person's client, which nobody else ends until the transaction does. Undefined where it is over. It has
 * another secret where its person has signed out meanwhile and its keys go on.
 */
export async function lockSessionOfClient(
  transaction: DatabaseTransaction,
  tenant: string,
  clientId: string,
): Promise<Uint8Array | undefined> {
  const row = await transaction
    .selectFrom('console_session')
    .select('secret_hash')
    .where(({ and }) => and({ tenant, client_id: clientId }))
    .forUpdate()
    .executeTakeFirst();
  return row?.secret_hash;
}

/** The sessions of a person, which nobody else ends until the transaction does. */
export async function lockSessionsOf(
  transaction: DatabaseTransaction,
  tenant: string,
  { issuer, subject }: Pick<SessionOfPerson, 'issuer' | 'subject'>,
): Promise<Uint8Array[]> {
  const rows = await transaction
    .selectFrom('console_session')
    .select('secret_hash')
    .where(({ and }) => and({ tenant, issuer, subject }))
    .orderBy('secret_hash')
    .forUpdate()
    .execute();
  return rows.map((row) => row.secret_hash);
}

/** The sessions of a person in a tenant but the newest ones, without those that are over. */
export async function oldestOfPerson(
  transaction: DatabaseTransaction,
  tenant: string,
  { issuer, subject }: Pick<SessionOfPerson, 'issuer' | 'subject'>,
  kept: number,
): Promise<Buffer[]> {
  const { rows } = await sql<{ secretHash: Buffer }>`
    select secret_hash as "secretHash" from console_session
      where tenant = ${tenant} and issuer = ${issuer} and subject = ${subject} and not for_keys
      order by created_at desc, secret_hash offset ${kept}::integer`.execute(transaction);
  return rows.map(({ secretHash }) => secretHash);
}

/** Ends a session for whoever has its cookie. It stays until then, so that the rules are asked for its keys. */
export async function keepForKeys(
  transaction: DatabaseTransaction,
  tenant: string,
  secretHash: Uint8Array,
  until: Date,
): Promise<void> {
  await transaction
    .updateTable('console_session')
    .set({ secret_hash: randomBytes(32), expires_at: until, for_keys: true, sealed_id_token: null })
    .where(({ and }) => and({ tenant, secret_hash: secretHash }))
    .execute();
}

/** Sessions of people that have expired. */
export async function expiredSessionsOfPeople(
  transaction: DatabaseTransaction,
  tenant: string,
): Promise<{ secretHash: Uint8Array; clientId: string }[]> {
  return await transaction
    .selectFrom('console_session')
    .select(['secret_hash as secretHash', 'client_id as clientId'])
    .where('tenant', '=', tenant)
    .where('subject', 'is not', null)
    .where('expires_at', '<=', sql<Date>`statement_timestamp()`)
    .forUpdate()
    .execute();
}

export async function deleteSession(
  transaction: DatabaseTransaction,
  tenant: string,
  secretHash: Uint8Array,
): Promise<void> {
  await transaction
    .deleteFrom('console_session')
    .where(({ and }) => and({ tenant, secret_hash: secretHash }))
    .execute();
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
