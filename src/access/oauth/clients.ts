import { type RawBuilder, sql } from 'kysely';
import { AnnalsError } from '../../core/errors.ts';
import type { WrittenRestriction } from '../../core/written-restriction.ts';
import type { Caller, Credentials, Restriction } from '../../http/credentials.ts';
import { isScope, restrictableScopes, type Scope, scopes } from '../../http/scopes.ts';
import type { DocumentRows } from '../../pagination/paginator.ts';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';
import { tenantExists } from '../../postgres/tenants/tenants.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import { noteAccess, noteRefusal } from '../accesses/store.ts';
import {
  checkClientName,
  hashClientSecret,
  newClientId,
  newClientSecret,
  secretMatches,
  tenantOfClientId,
} from './client-identity.ts';
import { endOfMakers, makersOfClient, restrictionWithin, scopesWithin, shownMembers } from './makers.ts';
import './tables.ts';

export interface ClientDescription {
  tenant: string;
  /** Space-separated. */
  scope: string;
  /** Default: the client id. */
  name?: string | undefined;
  /** Limits what it sees of the change history. Default: everything that its scopes permit. */
  restriction?: Restriction | undefined;
  /** Left out: an operator, a link or a sign-in makes it. */
  madeBy?: ClientMaker | undefined;
  /** Default: no expiry. */
  expiry?: Expiry | undefined;
}

/** Milliseconds from now on, or a time. */
export type Expiry = number | Date;

export function expiryColumn(expiry: Expiry | undefined): Date | RawBuilder<Date> | null {
  if (typeof expiry === 'number') return sql<Date>`statement_timestamp() + ${expiry} * interval '1 millisecond'`;
  return expiry ?? null;
}

/** The client that makes another one, which has at most its rights and ends with it. */
export interface ClientMaker {
  readonly clientId: string;
  /** The clients that made that client, the outermost first. */
  readonly makers: readonly string[];
  readonly person?: Credentials['person'];
}

/** A restriction as shown, in the members of the command line. */
type ShownRestriction = Partial<WrittenRestriction>;

export interface NewClient extends ShownRestriction {
  clientId: string;
  /** Never shown again; stored only as a hash. */
  clientSecret: string;
  tenant: string;
  scope: string;
  name: string;
}

export interface ClientRecord {
  tenant: string;
  clientId: string;
  name: string;
  /** Null: no secret. */
  secretHash: Uint8Array | null;
  /** Those that its makers have, too. */
  scopes: Scope[];
  /** Whether it was revoked, has expired, or ended with a maker. */
  revoked: boolean;
  /** Of its makers, then its own. */
  restriction: readonly WrittenRestriction[] | null;
  /** How often its secret was replaced. */
  rotations: number;
  makers: readonly string[];
}

/** Throws validation_violation for an invalid name or scope, resource_not_found for a missing tenant. */
export async function createClient(db: Database, client: ClientDescription): Promise<NewClient> {
  return await inTransaction(db, (transaction) => makeClient(transaction, client));
}

/** As `createClient`, in a transaction. `by`: who makes it over HTTP. */
export async function makeClient(
  transaction: DatabaseTransaction,
  client: ClientDescription,
  by?: ActingClient,
): Promise<NewClient> {
  const clientSecret = newClientSecret();
  const { clientId, ...created } = await insertClient(transaction, client, hashClientSecret(clientSecret));
  const { tenant, scope } = created;
  await noteAccess(transaction, { tenant, kind: 'client_made', clientId, ...by, details: { ...by?.details, scope } });
  return { clientId, clientSecret, ...created };
}

/** Who administers a credential over HTTP, for the accesses. */
export interface ActingClient {
  readonly person: Credentials['person'];
  readonly caller: Caller;
  /** The name and the id of the client. */
  readonly details: { readonly by: string; readonly byClient: string };
}

/** Creates a client without a secret, which can get no token; otherwise as `createClient`. */
export async function createClientWithoutSecret(
  db: Database,
  client: ClientDescription,
): Promise<Omit<NewClient, 'clientSecret'>> {
  return await insertClient(db, client, null);
}

async function insertClient(
  db: Database,
  { tenant, scope, name, restriction, madeBy, expiry }: ClientDescription,
  secretHash: Buffer | null,
) {
  const granted = parseScopes(scope);
  if (restriction !== undefined) refuseWiderScopes(granted);
  if (name !== undefined) checkClientName(name);
  const clientId = newClientId(tenant);
  const actor = name ?? clientId;
  if (!(await tenantExists(db, tenant))) {
    throw new AnnalsError(
      'resource_not_found',
      `There is no tenant ${tenant}; create it with: annals tenant create ${tenant}`,
    );
  }
  await db
    .insertInto('oauth_client')
    .values({
      tenant,
      client_id: clientId,
      name: actor,
      secret_hash: secretHash,
      scopes: granted,
      restriction: storedRestriction(restriction?.written),
      makers: madeBy === undefined ? null : [...madeBy.makers, madeBy.clientId],
      issuer: madeBy?.person?.issuer ?? null,
      subject: madeBy?.person?.subject ?? null,
      expires_at: expiryColumn(expiry),
    })
    .execute();
  return { clientId, tenant, scope: granted.join(' '), name: actor, ...shownRestriction(restriction?.written) };
}

/** The clients of a tenant as documents. `all`: those of links and people, too, which have no secret. */
export function clientRows(tenant: string, { all = false } = {}): DocumentRows {
  const from = sql`(
    select c.tenant, c.client_id as id, c.created_at, c.makers, c.issuer, c.subject, d.document::text as document, d.document::jsonb as fields
      from oauth_client c cross join lateral (select json_strip_nulls(json_build_object(
        'id', c.client_id, ${shownMembers('c', makersOfClient(tenant))})) as document) d
      where c.tenant = ${tenant} and (${all} or c.secret_hash is not null)) client`;
  return { from, where: sql`tenant = ${tenant}` };
}

export async function findDocument(
  db: Database,
  { from, where }: DocumentRows,
  id: string,
): Promise<string | undefined> {
  const { rows } = await sql<{ document: string }>`
    select document from ${from} where ${where} and id = ${id}`.execute(db);
  return rows[0]?.document;
}

/** All clients of the tenant, oldest first, without their secrets, in the members of the command line. */
export async function listClients(db: Database, tenant: string): Promise<ListedClient[]> {
  const listed = await listCredentials(db, tenant, clientRows(tenant, { all: true }));
  return listed.map(({ id: clientId, ...client }) => ({ clientId, ...client }));
}

/** The documents as the command line shows them: with nulls, and a restriction of one part within the document. */
export async function listCredentials(
  db: Database,
  tenant: string,
  { from, where }: DocumentRows,
): Promise<ListedCredential[]> {
  const { rows } = await sql<{ document: string }>`
    select document from ${from} where ${where} order by created_at, id`.execute(db);
  return rows.map(({ document }) => {
    const { id, name, scopes: granted, restriction = [], ...others } = JSON.parse(document) as ShownCredential;
    const shown = restriction.length > 1 ? { restriction } : shownRestriction(restriction);
    const none = { expiresAt: null, revokedAt: null, usedAt: null };
    return { id, tenant, scope: granted.join(' '), name, ...shown, ...none, ...others };
  });
}

/** A client or a key as its document shows it. */
interface ShownCredential {
  readonly id: string;
  readonly name: string;
  readonly scopes: readonly string[];
  readonly restriction?: readonly WrittenRestriction[];
  /** ISO 8601, UTC, as every time here. */
  readonly createdAt: string;
}

/** A client or a key in the members of the command line. */
export interface ListedCredential extends ShownRestriction {
  id: string;
  tenant: string;
  scope: string;
  name: string;
  createdAt: string;
  expiresAt: string | null;
  revokedAt: string | null;
  /** Rounded to the minute. */
  usedAt: string | null;
  /** Of keys. */
  models?: readonly string[];
  rate?: number;
  user?: string;
}

type ListedClient = Omit<ListedCredential, 'id'> & { clientId: string };

/** Its tokens stop within 5 seconds in every process. Idempotent; false for an unknown client. */
export async function revokeClient(db: Database, clientId: string): Promise<boolean> {
  const tenant = tenantOfClientId(clientId);
  if (tenant === undefined) return false;
  return await inTransaction(db, async (transaction) => {
    if (await revokeClientOf(transaction, tenant, clientId)) return true;
    return (await findClient(transaction, tenant, clientId)) !== undefined;
  });
}

/** False if it does not exist or was revoked. */
export async function revokeClientOf(
  transaction: DatabaseTransaction,
  tenant: string,
  clientId: string,
  by?: ActingClient,
): Promise<boolean> {
  const { numUpdatedRows } = await transaction
    .updateTable('oauth_client')
    .set(({ fn }) => ({ revoked_at: fn<Date>('now', []) }))
    .where(({ and }) => and({ tenant, client_id: clientId }))
    .where('revoked_at', 'is', null)
    .executeTakeFirstOrThrow();
  if (numUpdatedRows === 0n) return false;
  await noteAccess(transaction, { tenant, kind: 'client_revoked', clientId, ...by });
  return true;
}

export async function noteUseOfClient(db: Database, tenant: string, clientId: string, address: string): Promise<void> {
  await db
    .updateTable('oauth_client')
    .set({ used_at: sql<Date>`statement_timestamp()`, used_address: address })
    .where(({ and }) => and({ tenant, client_id: clientId }))
    .execute();
}

/** Deletes a client without a secret, after its sessions and links. */
export async function deleteClientWithoutSecret(db: Database, tenant: string, clientId: string): Promise<void> {
  await db
    .deleteFrom('oauth_client')
    .where(({ and }) => and({ tenant, client_id: clientId }))
    .where('secret_hash', 'is', null)
    .execute();
}

/** Confirms and updates the rights of a person's client. */
export async function setClientRights(
  db: Database,
  tenant: string,
  clientId: string,
  { scopes: granted, restriction }: { scopes: readonly Scope[]; restriction?: Restriction | undefined },
): Promise<void> {
  await db
    .updateTable('oauth_client')
    .set({
      scopes: [...granted],
      restriction: storedRestriction(restriction?.written),
      confirmed_at: sql<Date>`statement_timestamp()`,
    })
    .where(({ and }) => and({ tenant, client_id: clientId }))
    .execute();
}

function storedRestriction(written: readonly WrittenRestriction[] | undefined): string | null {
  return written === undefined ? null : JSON.stringify(written);
}

/** Revokes all clients of the tenant, as `revokeClient` does. */
export async function revokeClients(db: Database, tenant: string): Promise<void> {
  await db
    .updateTable('oauth_client')
    .set(({ fn }) => ({ revoked_at: fn<Date>('now', []) }))
    .where('tenant', '=', tenant)
    .where('revoked_at', 'is', null)
    .execute();
}

interface ClientRow extends Omit<ClientRecord, 'tenant' | 'clientId' | 'scopes' | 'revoked'> {
  scopes: string[];
  ended: boolean;
}

export async function findClient(db: Database, tenant: string, clientId: string): Promise<ClientRecord | undefined> {
  const made = makersOfClient(tenant);
  const {
    rows: [row],
  } = await sql<ClientRow>`
    select c.name, c.secret_hash as "secretHash",
        coalesce(c.rotations, 0) as rotations, ${made.makers} as makers,
        ${scopesWithin(sql`c.scopes`, made)} as scopes,
        ${restrictionWithin(sql`c.restriction`, made)} as restriction,
        c.revoked_at is not null
          or coalesce(least(c.expires_at, ${endOfMakers(made)}) <= statement_timestamp(), false) as ended
      from oauth_client c where c.tenant = ${tenant} and c.client_id = ${clientId}`.execute(db);
  if (row === undefined) return undefined;
  const { ended, ...client } = row;
  return { ...client, tenant, clientId, scopes: row.scopes.filter(isScope), revoked: ended };
}

/** As `findClient`; its secret cannot be replaced until the transaction ends. */
export async function lockClient(
  transaction: DatabaseTransaction,
  tenant: string,
  clientId: string,
): Promise<ClientRecord | undefined> {
  await sql`
    select from oauth_client where tenant = ${tenant} and client_id = ${clientId} for key share`.execute(transaction);
  return await findClient(transaction, tenant, clientId);
}

/** The client with the id and secret; undefined if unknown or revoked. Notes a refusal with the address. */
export async function findClientBySecret(
  db: Database,
  clientId: string,
  clientSecret: string,
  address: string | undefined,
): Promise<ClientRecord | undefined> {
  const tenant = tenantOfClientId(clientId);
  const client = tenant === undefined ? undefined : await findClient(db, tenant, clientId);
  if (client === undefined) return undefined;
  if (!client.revoked && secretMatches(clientSecret, client.secretHash)) return client;
  await noteRefusal(db, { tenant: client.tenant, clientId, why: client.revoked ? 'revoked' : 'secret', address });
  return undefined;
}

/** For a restriction of one part. */
function shownRestriction([own]: readonly WrittenRestriction[] = []): ShownRestriction {
  if (own === undefined) return {};
  const { query, hide, actors } = own;
  return { query, hide, ...(actors !== undefined && { actors }) };
}

/** A client with a restriction gets no scope that reveals more of the tenant. */
export function refuseWiderScopes(granted: readonly Scope[], field = 'scope'): void {
  const wider = granted.find((scope) => !restrictableScopes.includes(scope));
  if (wider === undefined) return;
  throw new AnnalsError(
    'validation_violation',
    `With a query, hidden paths or actors a client or a key cannot have ${wider}. It can have: ${restrictableScopes.join(', ')}.`,
    { details: [{ field, message: `cannot have ${wider} with a query, hidden paths or actors` }] },
  );
}

function parseScopes(text: string): Scope[] {
  const names = [...new Set(text.split(' ').filter((name) => name !== ''))];
  const unknown = names.find((name) => !isScope(name));
  if (names.length === 0 || unknown !== undefined) {
    const fault = unknown === undefined ? 'A client has at least one scope' : `There is no scope ${unknown}`;
    const message = unknown === undefined ? 'must name at least one scope' : `has the unknown scope ${unknown}`;
    throw new AnnalsError('validation_violation', `${fault}. The scopes are: ${scopes.join(', ')}.`, {
      details: [{ field: 'scope', message }],
    });
  }
  return names.filter(isScope);
}
