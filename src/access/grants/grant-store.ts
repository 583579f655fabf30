import { type Generated, type RawBuilder, sql } from 'kysely';
import type { WrittenRestriction } from '../../core/written-restriction.ts';
import { isScope, type Scope } from '../../http/scopes.ts';
import type { DocumentRows } from '../../pagination/paginator.ts';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';
import { forEachTenant, tenantsWith } from '../../postgres/tenants/tenants-with.ts';
import { noteAccess } from '../accesses/store.ts';
import { endOfMakers, restrictionWithin, scopesWithin } from '../oauth/makers.ts';
import type { GrantEnding, GrantHolder, Person, WhichGrants } from '../sessions/ports.ts';

interface AccessGrantTable {
  tenant: string;
  grant_id: string;
  name: string;
  program_hash: Uint8Array;
  program_url: string | null;
  redirect_uri: string;
  challenge: string;
  session_hash: Uint8Array;
  client_id: string;
  of_own_sign_in: boolean;
  issuer: string | null;
  subject: string | null;
  sealed_key: Uint8Array;
  created_at: Generated<Date>;
  expires_at: Date;
  redeemed_at: Generated<Date | null>;
  generation: Generated<number>;
  rotated_at: Generated<Date | null>;
  used_at: Generated<Date | null>;
  used_address: Generated<string | null>;
}

declare module '../../postgres/tables.ts' {
  interface Tables {
    access_grant: AccessGrantTable;
  }
}

/** Milliseconds. */
export const codeLifetime = 60_000;
export const grantLifetime = 30 * 86_400_000;
/** Milliseconds for which a replaced refresh token still gives its successor, to windows that share it. */
export const successorTime = 60_000;
/** Maximum grants of a person or a client in a tenant; a new one ends the oldest. */
export const maxGrants = 50;

export interface NewGrant {
  readonly tenant: string;
  readonly id: string;
  readonly name: string;
  readonly programHash: Uint8Array;
  readonly programUrl: string | undefined;
  readonly redirectUri: string;
  readonly challenge: string;
  readonly sessionHash: Uint8Array;
  readonly clientId: string;
  readonly ofOwnSignIn: boolean;
  readonly person: Person | undefined;
  readonly sealedKey: Uint8Array;
}

const inMilliseconds = (milliseconds: number) =>
  sql<Date>`statement_timestamp() + ${milliseconds} * interval '1 millisecond'`;

/** Inserts a grant whose code must be redeemed within a minute. */
export async function insertGrant(transaction: DatabaseTransaction, grant: NewGrant): Promise<void> {
  await transaction
    .insertInto('access_grant')
    .values({
      tenant: grant.tenant,
      grant_id: grant.id,
      name: grant.name,
      program_hash: grant.programHash,
      program_url: grant.programUrl ?? null,
      redirect_uri: grant.redirectUri,
      challenge: grant.challenge,
      session_hash: grant.sessionHash,
      client_id: grant.clientId,
      of_own_sign_in: grant.ofOwnSignIn,
      issuer: grant.person?.issuer ?? null,
      subject: grant.person?.subject ?? null,
      sealed_key: grant.sealedKey,
      expires_at: inMilliseconds(codeLifetime),
    })
    .execute();
}

/** The grants with the session and the client of each. An ended session has no grants. */
const grants = sql`access_grant g
  join console_session s on s.tenant = g.tenant and s.secret_hash = g.session_hash
  join oauth_client c on c.tenant = g.tenant and c.client_id = g.client_id`;
const madeOf = (tenant: string) => ({ tenant, makers: sql`(coalesce(c.makers, '{}') || g.client_id)` });

/** When the grant ends, unless it is ended. */
const endOf = (tenant: string) => sql`least(g.expires_at, s.expires_at, ${endOfMakers(madeOf(tenant))})`;
const isActive = (tenant: string) => sql`${endOf(tenant)} > statement_timestamp()`;

/** What a request by a grant must know. */
export interface GrantRecord {
  readonly name: string;
  /** The name of the person or the client. */
  readonly onBehalfOf: string;
  readonly person: Person | undefined;
  readonly sealedKey: Uint8Array;
  readonly scopes: readonly Scope[];
  readonly restriction: readonly WrittenRestriction[] | null;
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
}

interface GrantRow extends Omit<GrantRecord, 'scopes' | 'person'> {
  readonly scopes: string[];
  readonly issuer: string | null;
  readonly subject: string | null;
}

/** Undefined for an unknown or ended grant. */
export async function findGrant(db: Database, tenant: string, id: string): Promise<GrantRecord | undefined> {
  const made = madeOf(tenant);
  const { rows } = await sql<GrantRow>`
    select g.name, c.name as "onBehalfOf", g.issuer, g.subject, g.sealed_key as "sealedKey",
        ${scopesWithin(sql`array['changelog.changelog_read']`, made)} as scopes,
        ${restrictionWithin(sql`null::jsonb`, made)} as restriction,
        extract(epoch from ${endOf(tenant)})::double precision * 1000 as "expiresAt"
      from ${grants} where g.tenant = ${tenant} and g.grant_id = ${id} and ${isActive(tenant)}`.execute(db);
  const [row] = rows;
  if (row === undefined) return undefined;
  const { issuer, subject, scopes, ...grant } = row;
  return { ...grant, scopes: scopes.filter(isScope), person: personOf({ issuer, subject }) };
}

function personOf({ issuer, subject }: Pick<GrantRow, 'issuer' | 'subject'>): Person | undefined {
  return issuer === null || subject === null ? undefined : { issuer, subject };
}

/** A grant whose row is locked until the transaction ends. */
export interface LockedGrant {
  readonly name: string;
  readonly programHash: Uint8Array;
  readonly redirectUri: string;
  readonly challenge: string;
  readonly sealedKey: Uint8Array;
  /** A time with its microseconds, which `noteRedeemed` takes. */
  readonly lastsUntil: string;
  readonly isRedeemed: boolean;
  readonly generation: number;
  /** Whether the earlier refresh token still gives its successor. */
  readonly sharesSuccessor: boolean;
}

export async function lockGrant(
  transaction: DatabaseTransaction,
  tenant: string,
  id: string,
): Promise<LockedGrant | undefined> {
  // The row alone: another session's or client's change need not wait.
  await sql`select from access_grant where tenant = ${tenant} and grant_id = ${id} for update`.execute(transaction);
  const { rows } = await sql<LockedGrant>`
    select g.name, g.program_hash as "programHash", g.redirect_uri as "redirectUri", g.challenge,
        g.sealed_key as "sealedKey", g.redeemed_at is not null as "isRedeemed", g.generation,
        (g.created_at + ${grantLifetime} * interval '1 millisecond')::text as "lastsUntil",
        coalesce(g.rotated_at > statement_timestamp() - ${successorTime} * interval '1 millisecond', false)
          as "sharesSuccessor"
      from ${grants} where g.tenant = ${tenant} and g.grant_id = ${id} and ${isActive(tenant)}`.execute(transaction);
  return rows[0];
}

/**
 * Marks the code as redeemed. From now on the grant lasts, until a time that is given as a value: a cluster takes no
 * interval added to a column in an update.
 */
export async function noteRedeemed(
  transaction: DatabaseTransaction,
  tenant: string,
  id: string,
  lastsUntil: string,
): Promise<void> {
  await transaction
    .updateTable('access_grant')
    .set({
      redeemed_at: sql<Date>`statement_timestamp()`,
      expires_at: sql<Date>`${lastsUntil}::timestamptz`,
    })
    .where(({ and }) => and({ tenant, grant_id: id }))
    .execute();
}

/** Replaces the refresh token. */
export async function noteRotated(transaction: DatabaseTransaction, tenant: string, id: string): Promise<void> {
  await transaction
    .updateTable('access_grant')
    .set({ generation: sql<number>`generation + 1`, rotated_at: sql<Date>`statement_timestamp()` })
    .where(({ and }) => and({ tenant, grant_id: id }))
    .execute();
}

const isOf = (holder: GrantHolder) =>
  'clientId' in holder
    ? sql`g.client_id = ${holder.clientId} and g.subject is null`
    : sql`g.issuer = ${holder.issuer} and g.subject = ${holder.subject}`;

/** A grant that has ended, and the session of a sign-in of its own, which has no more purpose. */
interface EndedGrant {
  readonly id: string;
  readonly ownSession: Uint8Array | undefined;
}

/** Ends grants, within 5 seconds in every process. */
export async function endGrants(
  transaction: DatabaseTransaction,
  tenant: string,
  which: WhichGrants,
  { why, by, caller }: GrantEnding,
): Promise<EndedGrant[]> {
  const { rows } = await sql<{ id: string; own: boolean; sessionHash: Buffer } & GrantRow>`
    select g.grant_id as id, g.of_own_sign_in as own, g.session_hash as "sessionHash", g.issuer, g.subject
      from access_grant g where g.tenant = ${tenant} and ${conditionOf(tenant, which)}
      order by g.grant_id for update`.execute(transaction);
  const byWhom = by && { by: by.name, ...(by.clientId !== undefined && { byClient: by.clientId }) };
  const details = { ...(why !== undefined && { why }), ...byWhom };
  for (const row of rows) {
    const { id } = row;
    const event = { tenant, kind: 'grant_ended', clientId: id, person: personOf(row), details, caller } as const;
    await noteAccess(transaction, event);
    await transaction
      .deleteFrom('access_grant')
      .where(({ and }) => and({ tenant, grant_id: id }))
      .execute();
  }
  return rows.map(({ id, own, sessionHash }) => ({ id, ownSession: own ? sessionHash : undefined }));
}

function conditionOf(tenant: string, which: WhichGrants): RawBuilder<unknown> {
  if ('sessionHash' in which) return sql`g.session_hash = ${which.sessionHash}`;
  if ('id' in which) return sql`g.grant_id = ${which.id} and ${which.of === undefined ? sql`true` : isOf(which.of)}`;
  return sql`g.grant_id in (select g.grant_id from access_grant g where g.tenant = ${tenant} and ${isOf(which.of)}
    order by g.created_at desc, g.grant_id offset ${which.kept}::integer)`;
}

export async function noteUseOfGrant(db: Database, tenant: string, id: string, address: string): Promise<void> {
  await db
    .updateTable('access_grant')
    .set({ used_at: sql<Date>`statement_timestamp()`, used_address: address })
    .where(({ and }) => and({ tenant, grant_id: id }))
    .execute();
}

const time = (at: RawBuilder<unknown>) => sql`to_char(${at} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;

/** The active grants of a tenant as documents. Members without a value are not shown. */
export function grantRows(tenant: string): DocumentRows {
  const from = sql`(
    select g.tenant, g.grant_id as id, g.issuer, g.subject, g.client_id, g.created_at,
        d.document::text as document, d.document::jsonb as fields
      from ${grants} cross join lateral (select json_strip_nulls(json_build_object(
        'id', g.grant_id, 'name', g.name, 'program', g.program_url, 'redirectUri', g.redirect_uri,
        'client', g.client_id, 'onBehalfOf', c.name, 'issuer', g.issuer, 'subject', g.subject,
        'endsWithSession', not g.of_own_sign_in,
        'createdAt', ${time(sql`g.created_at`)}, 'expiresAt', ${time(sql`least(g.expires_at, s.expires_at)`)},
        'usedAt', ${time(sql`g.used_at`)}, 'usedAddress', g.used_address)) as document) d
      where g.tenant = ${tenant} and g.redeemed_at is not null and ${isActive(tenant)}) access_grant`;
  return { from, where: sql`tenant = ${tenant}` };
}

/** The active grants, newest first; with a holder their own. */
export async function listGrants(db: Database, tenant: string, holder?: GrantHolder): Promise<object[]> {
  const { from, where } = grantRows(tenant);
  const isTheirs = holder === undefined ? sql`true` : sql`${isOf(holder)}`;
  const { rows } = await sql<{ fields: object }>`
    select document::json as fields from (select * from ${from}) g where ${where} and ${isTheirs}
      order by created_at desc, id`.execute(db);
  return rows.map(({ fields }) => fields);
}

/** An active grant as JSON text. */
export async function readListedGrant(db: Database, tenant: string, id: string): Promise<string | undefined> {
  const { from, where } = grantRows(tenant);
  const { rows } = await sql<{ document: string }>`
    select document from ${from} where ${where} and id = ${id}`.execute(db);
  return rows[0]?.document;
}

const isExpired = 'expires_at <= statement_timestamp()';

/** Deletes expired grants of all tenants. They have been refused since they expired. */
export async function dropExpiredGrants(db: Database): Promise<void> {
  await forEachTenant(await tenantsWith(db, { table: 'access_grant', condition: isExpired }), async (tenant) => {
    await sql`delete from access_grant where tenant = ${tenant} and ${sql.raw(isExpired)}`.execute(db);
  });
}
