import { randomBytes } from 'node:crypto';
import { sql } from 'kysely';
import type { Database, DatabaseTransaction } from '../postgres/database.ts';
import { tenantsWith } from '../postgres/tenants/tenants-with.ts';
import './tables.ts';

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

function columnsOf({ issuer, subject, renewal, tenants }: SessionOfPerson) {
  const checkedAt = renewal === null ? null : sql<Date>`statement_timestamp()`;
  return { issuer, subject, sealed_renewal: renewal, tenants: [...tenants], checked_at: checkedAt };
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
  /** Whether it was over already, and stayed for its keys. */
  forKeys: boolean;
}

const endedColumns = [
  'client_id as clientId',
  'by_link as byLink',
  'issuer',
  'subject',
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
    .where('tenant', '=', tenant)
    .where('secret_hash', '=', secretHash)
    .forUpdate()
    .executeTakeFirst();
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
    .where('tenant', '=', tenant)
    .where('issuer', '=', issuer)
    .where('subject', '=', subject)
    .orderBy('secret_hash')
    .forUpdate()
    .execute();
  return rows.map((row) => row.secret_hash);
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
    .set({ secret_hash: randomBytes(32), expires_at: until, for_keys: true })
    .where('tenant', '=', tenant)
    .where('secret_hash', '=', secretHash)
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
    .where('tenant', '=', tenant)
    .where('secret_hash', '=', secretHash)
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

/** A session of a person whose provider and rules are to be asked again. */
export interface SessionToCheck {
  secretHash: Buffer;
  clientId: string;
  subject: string;
  renewal: Buffer;
  /** Whether it is over, and stays for its keys. */
  forKeys: boolean;
}

const dueForCheck = (after: number) =>
  sql<boolean>`checked_at <= statement_timestamp() - ${after} * interval '1 millisecond' and expires_at > statement_timestamp()`;

/** The tenants with sessions that were not checked for so many milliseconds. */
export async function tenantsWithUncheckedSessions(db: Database, after: number): Promise<string[]> {
  const seconds = Math.ceil(after / 1_000);
  return await tenantsWith(db, {
    table: 'console_session',
    condition: `checked_at <= statement_timestamp() - interval '${seconds} seconds' and expires_at > statement_timestamp()`,
  });
}

/** When a renewal that was begun now is over, in any process: nobody else uses the refresh token, which is good once, before then. */
const takenUntil = sql<Date>`statement_timestamp() + interval '1 minute'`;

/** Takes the refresh token of such a session, until `giveRenewal` or `updateCheckedSession`. */
export async function takeUncheckedSession(
  db: Database,
  tenant: string,
  after: number,
): Promise<SessionToCheck | undefined> {
  const { rows } = await sql<SessionToCheck>`
    update console_session set checked_at = ${takenUntil}
      where tenant = ${tenant} and secret_hash = (
        select secret_hash from console_session where tenant = ${tenant} and ${dueForCheck(after)}
          order by checked_at limit 1 for update skip locked)
      returning secret_hash as "secretHash", client_id as "clientId", subject, sealed_renewal as renewal,
        for_keys as "forKeys"`.execute(db);
  return rows[0];
}

/** What the provider and the rules say of a session's person today. */
export async function updateCheckedSession(
  transaction: DatabaseTransaction,
  tenant: string,
  secretHash: Uint8Array,
  { scopes, renewal, tenants }: { scopes: readonly string[]; renewal: Uint8Array; tenants: readonly string[] },
): Promise<void> {
  await transaction
    .updateTable('console_session')
    .set({
      scopes: [...scopes],
      sealed_renewal: renewal,
      tenants: [...tenants],
      checked_at: sql<Date>`statement_timestamp()`,
    })
    .where('tenant', '=', tenant)
    .where('secret_hash', '=', secretHash)
    .execute();
}

/** The person of a session, and the refresh token, which is taken as `takeUncheckedSession` takes it. */
export interface TakenRenewal {
  subject: string;
  /** Null where nobody can ask the provider again. */
  renewal: Buffer | null;
}

/** For a change to another tenant. Undefined where the session is not a person's or has expired; taken: somebody else has the token now. */
export async function takeRenewal(
  db: Database,
  tenant: string,
  secretHash: Uint8Array,
): Promise<TakenRenewal | 'taken' | undefined> {
  const { rows } = await sql<TakenRenewal & { free: boolean }>`
    update console_session as s
      set checked_at = case when before.checked_at <= statement_timestamp() then ${takenUntil} else before.checked_at end
      from (
        select checked_at from console_session
          where tenant = ${tenant} and secret_hash = ${secretHash} for update) as before
      where s.tenant = ${tenant} and s.secret_hash = ${secretHash} and s.subject is not null
        and s.expires_at > statement_timestamp()
      returning s.subject, s.sealed_renewal as renewal,
        before.checked_at is null or before.checked_at <= statement_timestamp() as free`.execute(db);
  const [row] = rows;
  return row === undefined || row.free ? row : 'taken';
}

/** Gives the refresh token back, or the one that has replaced it. */
export async function giveRenewal(
  db: Database,
  tenant: string,
  secretHash: Uint8Array,
  renewal: Uint8Array,
): Promise<void> {
  await db
    .updateTable('console_session')
    .set({ sealed_renewal: renewal, checked_at: sql<Date>`statement_timestamp()` })
    .where('tenant', '=', tenant)
    .where('secret_hash', '=', secretHash)
    .execute();
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
