// All SQL of keys in one file: creating, listing, revoking and reading share columns and views.
import { type ColumnType, type Generated, sql } from 'kysely';
import { AnnalsError } from '../../core/errors.ts';
import type { ShownActors, WrittenRestriction } from '../../core/written-restriction.ts';
import type { Credentials, Restriction } from '../../http/credentials.ts';
import { isScope, mayReadHistory, type Scope } from '../../http/scopes.ts';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';
import { tenantExists } from '../../postgres/tenants/tenants.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import { providerNames } from '../../providers/port.ts';
import { noteAccess } from '../accesses/store.ts';
import { checkClientName } from '../oauth/client-identity.ts';
import { hashOfSecret, type KeyText, newKey, writeKey } from './key-text.ts';

interface AccessKeyTable {
  tenant: string;
  key_id: string;
  name: string;
  secret_hash: Uint8Array;
  scopes: string[];
  models: string[] | null;
  rate: number | null;
  /** JSON text when written. */
  restriction: ColumnType<readonly WrittenRestriction[] | null, string | null, never>;
  created_at: Generated<Date>;
  expires_at: Date | null;
  revoked_at: Generated<Date | null>;
  used_at: Generated<Date | null>;
  /** The client of a person's session. */
  made_by: string | null;
  issuer: string | null;
  subject: string | null;
}

declare module '../../postgres/tables.ts' {
  interface Tables {
    access_key: AccessKeyTable;
  }
}

/** The scopes that a key can have: those of `/mcp` and `/openai`. */
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
  /** Default: its id. */
  readonly name?: string | undefined;
  readonly restriction?: Restriction | undefined;
  /** Milliseconds; default: no expiry. */
  readonly lifetime?: number | undefined;
  /** Undefined: created by an operator. */
  readonly madeBy?: KeyMaker | undefined;
}

/** A person, identified by their session's client. The key has its scopes and restriction, and ends with it. */
interface KeyMaker {
  readonly clientId: string;
  readonly person: NonNullable<Credentials['person']>;
}

export interface ShownKey {
  id: string;
  tenant: string;
  name: string;
  scope: string;
  models?: readonly string[];
  rate?: number;
  query?: string;
  hide?: readonly string[];
  actors?: ShownActors | undefined;
  /** Of a person's key: the issuer and subject at the OpenID provider. */
  issuer?: string;
  subject?: string;
  /** ISO 8601, UTC, as every time here. */
  createdAt: string;
  expiresAt: string | null;
  revokedAt: string | null;
  /** Rounded to the minute. */
  usedAt: string | null;
}

/**
 * Creates a key and returns its text, which is never shown again. Throws validation_violation for a scope that no route
 * accepts a key for, an invalid name or an unknown model, and resource_not_found for a missing tenant.
 */
export async function createKey(db: Database, description: KeyDescription): Promise<ShownKey & { key: string }> {
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
): Promise<ShownKey & { key: string }> {
  const { tenant, scopes, models, madeBy } = description;
  const invalid = scopes.find((scope) => !keyScopes.some((allowed) => allowed === scope));
  if (scopes.length === 0 || invalid !== undefined) throw noSuchScope(invalid);
  if (models !== undefined) checkModels(models, scopes);
  const key = newKey();
  await insertKey(transaction, key, description);
  const [row] = await shownKeys(transaction, tenant).where('k.key_id', '=', key.id).execute();
  if (row === undefined) throw new Error('The inserted key cannot be read.');
  const details = { scope: row.scopes.join(' ') };
  await noteAccess(transaction, { tenant, kind: 'key_made', clientId: key.id, person: madeBy?.person, details });
  return { key: writeKey(key), ...shown(row) };
}

async function insertKey(
  transaction: DatabaseTransaction,
  key: KeyText,
  { tenant, scopes, models, rate, name, restriction, lifetime, madeBy }: KeyDescription,
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
      restriction: restriction === undefined ? null : JSON.stringify(restriction.written),
      expires_at:
        lifetime === undefined ? null : sql<Date>`statement_timestamp() + ${lifetime} * interval '1 millisecond'`,
      made_by: madeBy?.clientId ?? null,
      issuer: madeBy?.person.issuer ?? null,
      subject: madeBy?.person.subject ?? null,
    })
    .execute();
}

/** The keys of a tenant with their restrictions: for a person's key, the current one of its client. */
function shownKeys(db: Database, tenant: string) {
  return db
    .selectFrom('access_key as k')
    .leftJoin('oauth_client as c', (join) =>
      join.onRef('c.tenant', '=', 'k.tenant').onRef('c.client_id', '=', 'k.made_by'),
    )
    .selectAll('k')
    .select(['c.client_id', 'c.restriction as person_restriction'])
    .select(['c.scopes as person_scopes', 'c.revoked_at as person_revoked_at'])
    .select(sql<Date | null>`coalesce(c.confirmed_at, c.created_at)`.as('confirmed_at'))
    .where('k.tenant', '=', tenant);
}

type KeyRow = Awaited<ReturnType<ReturnType<typeof shownKeys>['execute']>>[number];

/** All keys of a tenant, oldest first. */
export async function listKeys(db: Database, tenant: string): Promise<ShownKey[]> {
  const rows = await shownKeys(db, tenant).orderBy('k.created_at').orderBy('k.key_id').execute();
  return rows.map(shown);
}

/** The valid keys of a person in a tenant, newest first. */
export async function listKeysOf(db: Database, tenant: string, person: KeyMaker['person']): Promise<ShownKey[]> {
  const rows = await shownKeys(db, tenant)
    .where(({ and }) => and({ 'k.issuer': person.issuer, 'k.subject': person.subject }))
    .where(isGood)
    .where('c.revoked_at', 'is', null)
    .where('c.client_id', 'is not', null)
    .orderBy('k.created_at', 'desc')
    .orderBy('k.key_id')
    .execute();
  return rows.map(shown);
}

const isGood = sql<boolean>`k.revoked_at is null and (k.expires_at is null or k.expires_at > statement_timestamp())`;

/** The latest expiry of the valid keys created by this client; undefined without a valid key. */
export async function lastKeyOf(db: Database, tenant: string, clientId: string): Promise<Date | undefined> {
  const { last } = await db
    .selectFrom('access_key as k')
    .select(({ fn }) => fn.max('k.expires_at').as('last'))
    .where(({ and }) => and({ 'k.tenant': tenant, 'k.made_by': clientId }))
    .where(isGood)
    .executeTakeFirstOrThrow();
  return last ?? undefined;
}

/** Takes effect within 5 seconds in every process. Idempotent; false for an unknown key. */
export async function revokeKey(db: Database, tenant: string, id: string): Promise<boolean> {
  return await inTransaction(db, async (transaction) => {
    const revoked = await revokeKeys(transaction, tenant, { keyId: id });
    return revoked || (await listKeys(transaction, tenant)).some((key) => key.id === id);
  });
}

/** Revokes this person's keys with this id from this client. False if none was valid. `why`: not at their request. */
export async function revokeKeys(
  transaction: DatabaseTransaction,
  tenant: string,
  {
    keyId,
    person,
    clientId,
    why,
  }: { keyId?: string; person?: KeyMaker['person'] | undefined; clientId?: string; why?: string },
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
    await noteAccess(transaction, { tenant, kind: 'key_revoked', clientId: id, person, details });
  return revoked.length > 0;
}

export interface KeyRecord {
  readonly name: string;
  /** The client of the person who created it. */
  readonly makerId?: string;
  readonly secretHash: Uint8Array;
  readonly scopes: readonly Scope[];
  readonly models: readonly string[] | undefined;
  readonly rate: number | undefined;
  readonly restriction: readonly WrittenRestriction[] | null;
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
}

/** Milliseconds, as long as a session: after that, keys of a person who cannot be confirmed are refused. */
export const maxUnconfirmed = 8 * 60 * 60_000;

/** Undefined for an unknown or revoked key, and where the person's client was revoked. */
export async function findKey(db: Database, tenant: string, id: string): Promise<KeyRecord | undefined> {
  const row = await shownKeys(db, tenant)
    .where('k.key_id', '=', id)
    .where('k.revoked_at', 'is', null)
    .executeTakeFirst();
  if (row === undefined) return undefined;
  const expiresAt = row.expires_at?.getTime() ?? Number.POSITIVE_INFINITY;
  const { name, secret_hash: secretHash } = row;
  const key = {
    name,
    secretHash,
    scopes: row.scopes.filter(isScope),
    models: row.models ?? undefined,
    rate: row.rate ?? undefined,
  };
  if (row.made_by === null) return { ...key, restriction: row.restriction, expiresAt };
  if (row.person_scopes === null || row.confirmed_at === null || row.person_revoked_at !== null) return undefined;
  const permitted = keyScopesOf(row.person_scopes.filter(isScope));
  return {
    ...key,
    makerId: row.made_by,
    scopes: key.scopes.filter((scope) => permitted.includes(scope)),
    restriction: row.person_restriction,
    expiresAt: Math.min(expiresAt, row.confirmed_at.getTime() + maxUnconfirmed),
  };
}

/** The scopes that a key can have if its maker has these. */
export function keyScopesOf(granted: readonly Scope[]): readonly Scope[] {
  // Managing the history includes reading it.
  return keyScopes.filter(
    (scope) => granted.includes(scope) || (scope === 'changelog.changelog_read' && mayReadHistory(granted)),
  );
}

export async function noteUse(db: Database, tenant: string, id: string): Promise<void> {
  await db
    .updateTable('access_key')
    .set({ used_at: sql<Date>`statement_timestamp()` })
    .where(({ and }) => and({ tenant, key_id: id }))
    .execute();
}

function shown(row: KeyRow): ShownKey {
  const [part] = row.restriction ?? row.person_restriction ?? [];
  const { issuer, subject } = row;
  return {
    id: row.key_id,
    tenant: row.tenant,
    name: row.name,
    scope: row.scopes.join(' '),
    ...(row.models !== null && { models: row.models }),
    ...(row.rate !== null && { rate: row.rate }),
    ...part,
    ...(issuer !== null && subject !== null && { issuer, subject }),
    createdAt: row.created_at.toISOString(),
    expiresAt: row.expires_at?.toISOString() ?? null,
    revokedAt: row.revoked_at?.toISOString() ?? null,
    usedAt: row.used_at?.toISOString() ?? null,
  };
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
function checkModels(models: readonly string[], scopes: readonly string[]): void {
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
