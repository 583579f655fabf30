// All SQL of keys in one file: creating, listing, revoking and reading share columns and views.
import { type ColumnType, type Generated, type RawBuilder, sql } from 'kysely';
import { AnnalsError } from '../../core/errors.ts';
import type { WrittenRestriction } from '../../core/written-restriction.ts';
import { nameRules } from '../../http/chosen-id.ts';
import type { Credentials, Restriction } from '../../http/credentials.ts';
import { isScope, mayReadHistory, type Scope } from '../../http/scopes.ts';
import type { DocumentRows } from '../../pagination/paginator.ts';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';
import { tenantExists } from '../../postgres/tenants/tenants.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import { providerNames } from '../../providers/port.ts';
import { noteAccess } from '../accesses/store.ts';
import { checkClientName } from '../oauth/client-identity.ts';
import {
  type ActingClient,
  type Expiry,
  expiryColumn,
  findDocument,
  type ListedCredential,
  listCredentials,
} from '../oauth/clients.ts';
import { endOfMakers, restrictionWithin, scopesWithin, shownMembers } from '../oauth/makers.ts';
import { hashOfSecret, type KeyText, newKey, writeKey } from './key-text.ts';

interface AccessKeyTable {
  tenant: string;
  key_id: string;
  name: string;
  secret_hash: Uint8Array;
  scopes: string[];
  models: string[] | null;
  rate: number | null;
  end_user: string | null;
  /** JSON text when written. */
  restriction: ColumnType<readonly WrittenRestriction[] | null, string | null, string | null>;
  created_at: Generated<Date>;
  expires_at: Date | null;
  revoked_at: Generated<Date | null>;
  used_at: Generated<Date | null>;
  used_address: Generated<string | null>;
  /** The client that made it: of a person, that of the session. */
  made_by: string | null;
  issuer: string | null;
  subject: string | null;
}

declare module '../../postgres/tables.ts' {
  interface Tables {
    access_key: AccessKeyTable;
  }
}

/** The scopes that a key can have: those of `/mcp`, `/openai` and `/anthropic`. */
export const keyScopes: readonly Scope[] = ['changelog.changelog_read', 'ai.completion_manage'];

/** Requests per second. */
export const maxKeyRate = 999_999;

interface KeyDescription {
  readonly tenant: string;
  readonly scopes: readonly string[];
  /** As `provider/model`; default: all models of the tenant. */
  readonly models?: readonly string[] | undefined;
  /** Requests per second; default: the tenant's limit. */
  readonly rate?: number | undefined;
  /** The end user of all its calls of models; default: whom they name. */
  readonly user?: string | undefined;
  /** Default: its id. */
  readonly name?: string | undefined;
  readonly restriction?: Restriction | undefined;
  /** Default: no expiry. */
  readonly expiry?: Expiry | undefined;
  /** Who acts, where it is not the maker alone. */
  readonly by?: ActingClient | undefined;
  /** Undefined: created by an operator. */
  readonly madeBy?: KeyMaker | undefined;
}

/** The client that makes a key, which has at most its rights and ends with it; of a person, that of the session. */
interface KeyMaker {
  readonly clientId: string;
  readonly person?: Credentials['person'];
}

type Person = NonNullable<Credentials['person']>;

/**
 * Creates a key and returns its text, which is never shown again. Throws validation_violation for a scope that no route
 * accepts a key for, an invalid name or an unknown model, and resource_not_found for a missing tenant.
 */
export async function createKey(
  db: Database,
  description: KeyDescription,
): Promise<ListedCredential & { key: string }> {
  const { tenant, name } = description;
  if (name !== undefined) checkClientName(name);
  if (!(await tenantExists(db, tenant))) {
    throw new AnnalsError(
      'resource_not_found',
      `There is no tenant ${tenant}; create it with: annals tenant create ${tenant}`,
    );
  }
  return await inTransaction(db, (transaction) => makeKey(transaction, description));
}

/** As `createKey`, in a transaction, for an existing tenant and a valid name. */
export async function makeKey(
  transaction: DatabaseTransaction,
  description: KeyDescription,
): Promise<ListedCredential & { key: string }> {
  const { tenant, scopes, models, user, madeBy, by } = description;
  const invalid = scopes.find((scope) => !keyScopes.some((allowed) => allowed === scope));
  if (scopes.length === 0 || invalid !== undefined) throw noSuchScope(invalid);
  if (models !== undefined) checkModels(models, scopes);
  if (user !== undefined) checkUser(user, scopes);
  const key = newKey();
  await insertKey(transaction, key, description);
  const [shown] = await listKeyRows(transaction, tenant, sql`id = ${key.id}`);
  if (shown === undefined) throw new Error('The inserted key cannot be read.');
  const details = { ...by?.details, scope: shown.scope };
  await noteAccess(transaction, {
    tenant,
    kind: 'key_made',
    clientId: key.id,
    person: madeBy?.person,
    ...by,
    details,
  });
  return { key: writeKey(key), ...shown };
}

async function insertKey(
  transaction: DatabaseTransaction,
  key: KeyText,
  { tenant, scopes, models, rate, user, name, restriction, expiry, madeBy }: KeyDescription,
): Promise<void> {
  await transaction
    .insertInto('access_key')
    .values({
      tenant,
      key_id: key.id,
      name: name ?? key.id,
      secret_hash: hashOfSecret(key.secret),
      scopes: [...new Set(scopes)],
      models: models === undefined ? null : [...new Set(models)],
      rate: rate ?? null,
      end_user: user ?? null,
      restriction: restriction === undefined ? null : JSON.stringify(restriction.written),
      expires_at: expiryColumn(expiry),
      made_by: madeBy?.clientId ?? null,
      issuer: madeBy?.person?.issuer ?? null,
      subject: madeBy?.person?.subject ?? null,
    })
    .execute();
}

/** The keys of a tenant with the clients that made them, as `made` and `makers`. */
export const keysWithMakers = sql`access_key k
  left join oauth_client c on c.tenant = k.tenant and c.client_id = k.made_by
  cross join lateral (
    select case when k.made_by is null then '{}' else coalesce(c.makers, '{}') || k.made_by end as makers) made`;
export const makersOfKey = (tenant: string) => ({ tenant, makers: sql`made.makers` });

/** The keys of a tenant as documents. */
export function keyRows(tenant: string): DocumentRows {
  const from = sql`(
    select k.tenant, k.key_id as id, k.created_at, k.issuer, k.subject, made.makers,
        d.document::text as document, d.document::jsonb as fields
      from ${keysWithMakers} cross join lateral (select json_strip_nulls(json_build_object(
        'id', k.key_id, ${shownMembers('k', makersOfKey(tenant))}, 'models', k.models, 'rate', k.rate,
        'user', k.end_user)) as document) d
      where k.tenant = ${tenant}) access_key`;
  return { from, where: sql`tenant = ${tenant}` };
}

async function listKeyRows(db: Database, tenant: string, condition: RawBuilder<unknown>): Promise<ListedCredential[]> {
  const { from, where } = keyRows(tenant);
  return await listCredentials(db, tenant, { from, where: sql`${where} and ${condition}` });
}

/** All keys of a tenant, oldest first. */
export async function listKeys(db: Database, tenant: string): Promise<ListedCredential[]> {
  return await listKeyRows(db, tenant, sql`true`);
}

/** The valid keys of a person in a tenant, newest first. */
export async function listKeysOf(db: Database, tenant: string, person: Person): Promise<ListedCredential[]> {
  const { issuer, subject } = person;
  const isTheirs = sql`issuer = ${issuer} and subject = ${subject} and fields ->> 'state' = 'active'`;
  return (await listKeyRows(db, tenant, isTheirs)).reverse();
}

const isGood = sql`revoked_at is null and (expires_at is null or expires_at > statement_timestamp())`;

/**
 * The latest expiry of the valid keys and clients that the person of this client made, and of the grants for which this
 * client signed in; undefined without any. What others make does not outlive their client.
 */
export async function lastMadeBy(db: Database, tenant: string, clientId: string): Promise<Date | undefined> {
  const { rows } = await sql<{ last: Date | null }>`
    select max(expires_at) as last from (
      select expires_at from access_key
        where tenant = ${tenant} and made_by = ${clientId} and issuer is not null and ${isGood}
      union all select expires_at from oauth_client
        where tenant = ${tenant} and makers is not null and makers[cardinality(makers)] = ${clientId}
          and issuer is not null and ${isGood}
      union all select expires_at from access_grant
        where tenant = ${tenant} and client_id = ${clientId} and of_own_sign_in
          and expires_at > statement_timestamp()) made`.execute(db);
  return rows[0]?.last ?? undefined;
}

/** Takes effect within 5 seconds in every process. Idempotent; false for an unknown key. */
export async function revokeKey(db: Database, tenant: string, id: string): Promise<boolean> {
  return await inTransaction(db, async (transaction) => {
    const revoked = await revokeKeys(transaction, tenant, { keyId: id });
    return revoked || (await findDocument(transaction, keyRows(tenant), id)) !== undefined;
  });
}

/**
 * Revokes this person's keys with this id from this client. False if none was valid. `why`: not at their request. `by`:
 * who does, if not the person.
 */
export async function revokeKeys(
  transaction: DatabaseTransaction,
  tenant: string,
  {
    keyId,
    person,
    clientId,
    why,
    by,
  }: {
    keyId?: string;
    person?: KeyMaker['person'] | undefined;
    clientId?: string;
    why?: string;
    by?: ActingClient | undefined;
  },
): Promise<boolean> {
  let revoking = transaction
    .updateTable('access_key')
    .set(({ fn }) => ({ revoked_at: fn<Date>('now', []) }))
    .where('tenant', '=', tenant)
    .where('revoked_at', 'is', null);
  if (keyId !== undefined) revoking = revoking.where('key_id', '=', keyId);
  if (clientId !== undefined) revoking = revoking.where('made_by', '=', clientId);
  if (person !== undefined)
    revoking = revoking.where('issuer', '=', person.issuer).where('subject', '=', person.subject);
  const revoked = await revoking.returning(['key_id']).execute();
  const details = why === undefined ? {} : { why };
  for (const { key_id: id } of revoked)
    await noteAccess(transaction, { tenant, kind: 'key_revoked', clientId: id, person, details, ...by });
  return revoked.length > 0;
}

/** Revokes the keys and the clients that a person made, by this client of a session of theirs, as `revokeKeys` does. */
export async function revokeMadeBy(
  transaction: DatabaseTransaction,
  tenant: string,
  { clientId, person, why }: { clientId?: string; person?: KeyMaker['person'] | undefined; why: string },
): Promise<void> {
  // What a link's session made ends with its client; what another client made does not end with a session of it.
  if (person === undefined) return;
  await revokeKeys(transaction, tenant, { ...(clientId !== undefined && { clientId }), person, why });
  const bySession = clientId === undefined ? sql`true` : sql`makers[cardinality(makers)] = ${clientId}`;
  const { rows } = await sql<{ id: string }>`
    update oauth_client set revoked_at = now()
      where tenant = ${tenant} and makers is not null and ${bySession} and issuer = ${person.issuer}
        and subject = ${person.subject} and revoked_at is null
      returning client_id as id`.execute(transaction);
  for (const { id } of rows)
    await noteAccess(transaction, { tenant, kind: 'client_revoked', clientId: id, person, details: { why } });
}

export interface KeyRecord {
  readonly name: string;
  /** The client that made it. */
  readonly makerId?: string;
  readonly secretHash: Uint8Array;
  readonly scopes: readonly Scope[];
  readonly models: readonly string[] | undefined;
  readonly rate: number | undefined;
  readonly user: string | undefined;
  readonly restriction: readonly WrittenRestriction[] | null;
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
}

interface KeyRow extends Omit<KeyRecord, 'makerId' | 'models' | 'rate' | 'user' | 'scopes' | 'expiresAt'> {
  readonly makerId: string | null;
  readonly models: string[] | null;
  readonly rate: number | null;
  readonly user: string | null;
  readonly scopes: string[];
  readonly expiresAt: number | null;
}

/** Undefined for an unknown or revoked key, and where a client that made it was revoked. */
export async function findKey(db: Database, tenant: string, id: string): Promise<KeyRecord | undefined> {
  const {
    rows: [row],
  } = await sql<KeyRow>`
    select k.name, k.secret_hash as "secretHash", k.models, k.rate, k.end_user as "user",
        k.made_by as "makerId",
        ${scopesWithin(sql`k.scopes`, makersOfKey(tenant))} as scopes,
        ${restrictionWithin(sql`k.restriction`, makersOfKey(tenant))} as restriction,
        extract(epoch from least(k.expires_at, ${endOfMakers(makersOfKey(tenant))}))::double precision * 1000 as "expiresAt"
      from ${keysWithMakers} where k.tenant = ${tenant} and k.key_id = ${id} and k.revoked_at is null`.execute(db);
  if (row === undefined || row.expiresAt === Number.NEGATIVE_INFINITY) return undefined;
  const { makerId, models, rate, user, expiresAt, ...key } = row;
  return {
    ...key,
    ...(makerId !== null && { makerId }),
    scopes: row.scopes.filter(isScope),
    models: models ?? undefined,
    rate: rate ?? undefined,
    user: user ?? undefined,
    expiresAt: expiresAt ?? Number.POSITIVE_INFINITY,
  };
}

/** The scopes that a key can have if its maker has these. */
export function keyScopesOf(granted: readonly Scope[]): readonly Scope[] {
  // Managing the history includes reading it.
  return keyScopes.filter(
    (scope) => granted.includes(scope) || (scope === 'changelog.changelog_read' && mayReadHistory(granted)),
  );
}

export async function noteUseOfKey(db: Database, tenant: string, id: string, address: string): Promise<void> {
  await db
    .updateTable('access_key')
    .set({ used_at: sql<Date>`statement_timestamp()`, used_address: address })
    .where(({ and }) => and({ tenant, key_id: id }))
    .execute();
}

function noSuchScope(scope: string | undefined): AnnalsError {
  const fault = scope === undefined ? 'A key has at least one scope' : `A key cannot have ${scope}`;
  return new AnnalsError('validation_violation', `${fault}. It can have: ${keyScopes.join(', ')}.`, {
    details: [{ field: 'scope', message: scope === undefined ? 'must name at least one scope' : `cannot be ${scope}` }],
  });
}

/** Models per key. */
export const maxModels = 100;
const namedModel = new RegExp(`^(?:${providerNames.join('|')})/[^\\s,]{1,256}$`);

/** Throws validation_violation where a key with these scopes cannot have these models. */
export function checkModels(models: readonly string[], scopes: readonly string[]): void {
  const message = faultOf(models, scopes);
  if (message === undefined) return;
  throw new AnnalsError('validation_violation', `The models of a key ${message}.`, {
    details: [{ field: 'models', message }],
  });
}

function faultOf(models: readonly string[], scopes: readonly string[]): string | undefined {
  if (!scopes.includes('ai.completion_manage')) return 'need the scope ai.completion_manage';
  if (models.length === 0 || models.length > maxModels) return `must be 1 to ${maxModels}`;
  return models.every((model) => namedModel.test(model))
    ? undefined
    : `must be written as ${providerNames.map((name) => `${name}/…`).join(', ')}`;
}

const userRules = new RegExp(nameRules.pattern, 'u');

/** Throws validation_violation where a key with these scopes cannot have this user. */
export function checkUser(user: string, scopes: readonly string[]): void {
  const message = !scopes.includes('ai.completion_manage')
    ? 'needs the scope ai.completion_manage'
    : user === '*'
      ? 'must not be *: in budgets that means each user'
      : userRules.test(user)
        ? undefined
        : `must ${nameRules['x-must']}`;
  if (message === undefined) return;
  throw new AnnalsError('validation_violation', `The user of a key ${message}.`, {
    details: [{ field: 'user', message }],
  });
}
