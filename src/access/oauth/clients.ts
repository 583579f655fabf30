import { sql } from 'kysely';
import { AnnalsError } from '../../core/errors.ts';
import type { WrittenRestriction } from '../../core/written-restriction.ts';
import type { Restriction } from '../../http/credentials.ts';
import { isScope, restrictableScopes, type Scope, scopes } from '../../http/scopes.ts';
import type { Database } from '../../postgres/database.ts';
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
import './tables.ts';

export interface ClientDescription {
  tenant: string;
  /** Space-separated. */
  scope: string;
  /** Default: the client id. */
  name?: string | undefined;
  /** Limits what it sees of the change history. Default: everything that its scopes permit. */
  restriction?: Restriction | undefined;
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

interface ListedClient extends ShownRestriction {
  clientId: string;
  tenant: string;
  scope: string;
  name: string;
  /** ISO 8601, UTC. */
  createdAt: string;
  revokedAt: string | null;
}

export interface ClientRecord {
  tenant: string;
  clientId: string;
  name: string;
  /** Null: no secret. */
  secretHash: Uint8Array | null;
  scopes: Scope[];
  revoked: boolean;
  restriction: readonly WrittenRestriction[] | null;
}

/** Throws validation_violation for an invalid name or scope, resource_not_found for a missing tenant. */
export async function createClient(db: Database, client: ClientDescription): Promise<NewClient> {
  const clientSecret = newClientSecret();
  return await inTransaction(db, async (transaction) => {
    const { clientId, ...created } = await insertClient(transaction, client, hashClientSecret(clientSecret));
    const { tenant, scope } = created;
    await noteAccess(transaction, { tenant, kind: 'client_made', clientId, details: { scope } });
    return { clientId, clientSecret, ...created };
  });
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
  { tenant, scope, name, restriction }: ClientDescription,
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
      restriction: storedRestriction(restriction),
    })
    .execute();
  return { clientId, tenant, scope: granted.join(' '), name: actor, ...shownRestriction(restriction?.written) };
}

/** All clients of the tenant, oldest first, without their secrets. */
export async function listClients(db: Database, tenant: string): Promise<ListedClient[]> {
  const rows = await db
    .selectFrom('oauth_client')
    .select(['tenant', 'client_id', 'name', 'scopes', 'restriction', 'created_at', 'revoked_at'])
    .where('tenant', '=', tenant)
    .orderBy('created_at')
    .orderBy('client_id')
    .execute();
  return rows.map((row) => ({
    clientId: row.client_id,
    tenant: row.tenant,
    scope: row.scopes.join(' '),
    name: row.name,
    ...shownRestriction(row.restriction ?? undefined),
    createdAt: row.created_at.toISOString(),
    revokedAt: row.revoked_at?.toISOString() ?? null,
  }));
}

/** Its tokens stop within 5 seconds in every process. Idempotent; false for an unknown client. */
export async function revokeClient(db: Database, clientId: string): Promise<boolean> {
  const tenant = tenantOfClientId(clientId);
  if (tenant === undefined) return false;
  return await inTransaction(db, async (transaction) => {
    const { numUpdatedRows } = await transaction
      .updateTable('oauth_client')
      .set(({ fn }) => ({ revoked_at: fn<Date>('now', []) }))
      .where(({ and }) => and({ tenant, client_id: clientId }))
      .where('revoked_at', 'is', null)
      .executeTakeFirstOrThrow();
    if (numUpdatedRows === 0n) return (await findClient(transaction, tenant, clientId)) !== undefined;
    await noteAccess(transaction, { tenant, kind: 'client_revoked', clientId });
    return true;
  });
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
      restriction: storedRestriction(restriction),
      confirmed_at: sql<Date>`statement_timestamp()`,
    })
    .where(({ and }) => and({ tenant, client_id: clientId }))
    .execute();
}

function storedRestriction(restriction: Restriction | undefined): string | null {
  return restriction === undefined ? null : JSON.stringify(restriction.written);
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

export async function findClient(db: Database, tenant: string, clientId: string): Promise<ClientRecord | undefined> {
  const row = await db
    .selectFrom('oauth_client')
    .select(['name', 'secret_hash', 'scopes', 'restriction', 'revoked_at'])
    .where(({ and }) => and({ tenant, client_id: clientId }))
    .executeTakeFirst();
  if (row === undefined) return undefined;
  return {
    tenant,
    clientId,
    name: row.name,
    secretHash: row.secret_hash,
    scopes: row.scopes.filter(isScope),
    revoked: row.revoked_at !== null,
    restriction: row.restriction,
  };
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

/** A client's restriction has at most one part. */
function shownRestriction([own]: readonly WrittenRestriction[] = []): ShownRestriction {
  if (own === undefined) return {};
  const { query, hide, actors } = own;
  return { query, hide, ...(actors !== undefined && { actors }) };
}

/** A client with a restriction gets no scope that reveals more of the tenant. */
function refuseWiderScopes(granted: readonly Scope[]): void {
  const wider = granted.find((scope) => !restrictableScopes.includes(scope));
  if (wider === undefined) return;
  throw new AnnalsError(
    'validation_violation',
    `A client with a query, hidden paths or actors cannot have ${wider}. It can have: ${restrictableScopes.join(', ')}.`,
    { details: [{ field: 'scope', message: `cannot have ${wider} with a query, hidden paths or actors` }] },
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
