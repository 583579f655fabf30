import { randomBytes } from 'node:crypto';
import { type Generated, sql } from 'kysely';
import type { Caller } from '../../http/credentials.ts';
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
  seen_at: Generated<Date | null>;
  address: Generated<string | null>;
  program: Generated<string | null>;
  sid: Generated<string | null>;
  sealed_test: Generated<Uint8Array | null>;
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

interface NewSession {
  tenant: string;
  secretHash: Uint8Array;
  clientId: string;
  scopes: readonly string[];
  /** Whether the client was created for this session, and ends with it. */
  byLink: boolean;
  person?: SessionOfPerson | undefined;
  caller: Caller;
  /** Whether no cookie leads to it. */
  forKeys?: boolean;
}

/** The data of a person who signed in with a company's account. */
export interface SessionOfPerson {
  issuer: string;
  subject: string;
  /** Sealed; null if the sign-in cannot be renewed. */
  renewal: Uint8Array | null;
  /** The last ID token, sealed; null if the provider issued none. */
  idToken: Uint8Array | null;
  /** The session at the provider; null if the ID token names none. */
  sid: string | null;
  /** Every tenant that admits the person. */
  tenants: readonly string[];
}

export interface StoredSession {
  tenant: string;
  secretHash: Uint8Array;
  clientId: string;
  byLink: boolean;
  scopes: string[];
  expiresAt: Date;
  expired: boolean;
  /** Of a person: the tenants that admit them, and their id at the OpenID provider. */
  tenants: string[] | null;
  issuer: string | null;
  subject: string | null;
  /** Whether the sign-in can be renewed. */
  renews: boolean;
  /** Whether its last use was noted so long ago that the next one is noted. */
  unseen: boolean;
}

/** Seconds between updates of a session's last use. */
const seenEvery = 60;

const isUnseen = sql.raw(`(seen_at is null or seen_at <= statement_timestamp() - interval '${seenEvery} seconds')`);

/** Returns the time of its expiry, after so many milliseconds. */
export async function insertSession(
  transaction: DatabaseTransaction,
  { tenant, secretHash, clientId, scopes, byLink, person, caller, forKeys = false }: NewSession,
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
      seen_at: sql<Date>`statement_timestamp()`,
      address: caller.address,
      program: caller.program ?? null,
      for_keys: forKeys,
      ...(person && columnsOf(person)),
    })
    .returning('expires_at')
    .executeTakeFirstOrThrow();
  return expiresAt;
}

function columnsOf({ issuer, subject, renewal, idToken, sid, tenants }: SessionOfPerson) {
  const checkedAt = renewal === null ? null : sql<Date>`statement_timestamp()`;
  return {
    issuer,
    subject,
    sealed_renewal: renewal,
    sealed_id_token: idToken,
    sid,
    tenants: [...tenants],
    checked_at: checkedAt,
  };
}

/** Deletes all but the newest sessions of the client. */
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
    select tenant, secret_hash as "secretHash", client_id as "clientId", by_link as "byLink", scopes, tenants, issuer,
        subject, sealed_renewal is not null as renews, expires_at as "expiresAt",
        expires_at <= statement_timestamp() as expired, ${isUnseen} as unseen
      from console_session where tenant = ${tenant} and secret_hash = any(${secretHashes}::bytea[])`.execute(db);
  return rows;
}

/** Notes a use, unless another process has just done so. */
export async function noteSeen(
  db: Database,
  tenant: string,
  secretHash: Uint8Array,
  { address, program }: Caller,
): Promise<void> {
  await sql`
    update console_session set seen_at = statement_timestamp(), address = ${address}, program = ${program ?? null}
      where tenant = ${tenant} and secret_hash = ${secretHash} and ${isUnseen}`.execute(db);
}

export interface EndedSession {
  clientId: string;
  byLink: boolean;
  /** Of a person: their id at the OpenID provider. */
  issuer: string | null;
  subject: string | null;
  idToken: Uint8Array | null;
  /** Whether it had ended already and remained for its keys. */
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

/** Locks a session against its end, until the transaction ends. Undefined if it does not exist. */
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
 * Locks the session of a person's client against its end, until the transaction ends, and returns its hash. Undefined
 * if it has ended. The hash differs if the person has signed out since and the keys remain.
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

/** What an OpenID provider has ended: a session of its own, all sessions of a person, or those of both. */
export interface ProviderLogout {
  readonly issuer: string;
  readonly subject?: string | undefined;
  readonly sid?: string | undefined;
}

/** The tenants that have such sessions. */
export async function tenantsOfPerson(db: Database, { issuer, subject, sid }: ProviderLogout): Promise<string[]> {
  const { rows } = await sql<{ tenant: string }>`
    select tenant from tenants_of_person(${issuer}, ${subject ?? null}, ${sid ?? null})
      order by tenant collate "C"`.execute(db);
  return rows.map(({ tenant }) => tenant);
}

/**
 * Locks the sessions of a person against their end, until the transaction ends; with a `sid` those of that session of
 * the provider.
 */
export async function lockSessionsOf(
  transaction: DatabaseTransaction,
  tenant: string,
  { issuer, subject, sid }: ProviderLogout,
): Promise<Uint8Array[]> {
  const rows = await transaction
    .selectFrom('console_session')
    .select('secret_hash')
    .where(({ and }) =>
      and({ tenant, issuer, ...(subject !== undefined && { subject }), ...(sid !== undefined && { sid }) }),
    )
    .orderBy('secret_hash')
    .forUpdate()
    .execute();
  return rows.map((row) => row.secret_hash);
}

/** Ends the sessions that began with the secret of a client, but for one with this id. Returns the ids of those. */
export async function endSessionsOfSecret(
  transaction: DatabaseTransaction,
  { tenant, clientId, except }: { tenant: string; clientId: string; except: string | undefined },
): Promise<string[]> {
  const id = sql`encode(substr(secret_hash, 1, 8), 'hex')`;
  const { rows } = await sql<{ id: string }>`
    delete from console_session
      where tenant = ${tenant} and client_id = ${clientId} and not by_link and ${id} is distinct from ${except ?? null}
      returning ${id} as id`.execute(transaction);
  return rows.map((row) => row.id);
}

/** All but the newest active sessions of a person in a tenant. */
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

/** Invalidates the cookie of a session, which remains until then, so that the rights of its keys are still checked. */
export async function keepForKeys(
  transaction: DatabaseTransaction,
  tenant: string,
  secretHash: Uint8Array,
  { until, forgetsSid }: { until: Date; forgetsSid: boolean },
): Promise<void> {
  await transaction
    .updateTable('console_session')
    .set({
      secret_hash: randomBytes(32),
      expires_at: until,
      for_keys: true,
      sealed_id_token: null,
      address: null,
      program: null,
      sealed_test: null,
      ...(forgetsSid && { sid: null }),
    })
    .where(({ and }) => and({ tenant, secret_hash: secretHash }))
    .execute();
}

/** Expired sessions of people. */
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

/** The tenants with expired sessions. */
export async function tenantsWithExpiredSessions(db: Database): Promise<string[]> {
  return await tenantsWith(db, { table: 'console_session', condition: 'expires_at <= statement_timestamp()' });
}

/** Returns the ids of clients to delete with their sessions. */
export async function deleteExpiredSessions(transaction: DatabaseTransaction, tenant: string): Promise<string[]> {
  const rows = await transaction
    .deleteFrom('console_session')
    .where('tenant', '=', tenant)
    .where('expires_at', '<=', sql<Date>`statement_timestamp()`)
    .returning(['client_id', 'by_link'])
    .execute();
  return rows.filter(({ by_link: byLink }) => byLink).map(({ client_id: clientId }) => clientId);
}
