import { type ColumnType, type Generated, sql } from 'kysely';
import { AnnalsError } from '../../core/errors.ts';
import type { WrittenRestriction } from '../../core/written-restriction.ts';
import type { Restriction } from '../../http/restriction.ts';
import { isScope, type Scope } from '../../http/scopes.ts';
import type { Database } from '../../postgres/database.ts';
import { tenantExists } from '../../postgres/tenants/tenants.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import { noteAccess } from '../accesses/store.ts';
import { checkClientName } from '../oauth/client-identity.ts';
import { hashOfSecret, type KeyText, newKey, writeKey } from './key-text.ts';

interface AccessKeyTable {
  tenant: string;
  key_id: string;
  name: string;
  secret_hash: Uint8Array;
  scopes: string[];
  /** JSON text when written. */
  restriction: ColumnType<readonly WrittenRestriction[] | null, string | null, never>;
  created_at: Generated<Date>;
  expires_at: Date | null;
  revoked_at: Generated<Date | null>;
  used_at: Generated<Date | null>;
}

declare module '../../postgres/tables.ts' {
  interface Tables {
    access_key: AccessKeyTable;
  }
}

/** What a key can be made with: `/mcp` takes keys. */
export const keyScopes: readonly Scope[] = ['changelog.changelog_read'];

export interface KeyDescription {
  readonly tenant: string;
  readonly scopes: readonly string[];
  /** Left out: its id. */
  readonly name?: string | undefined;
  readonly restriction?: Restriction | undefined;
  /** Milliseconds; left out: it does not expire. */
  readonly lifetime?: number | undefined;
}

export interface ShownKey {
  id: string;
  tenant: string;
  name: string;
  scope: string;
  query?: string;
  hide?: readonly string[];
  /** ISO 8601, UTC, as all times. */
  createdAt: string;
  expiresAt: string | null;
  revokedAt: string | null;
  /** To the minute. */
  usedAt: string | null;
}

/**
 * Makes a key, whose text is shown this once. Throws validation_violation for a scope that no route takes a key for or a name that may
 * not be, and resource_not_found where there is no such tenant.
 */
export async function createKey(db: Database, description: KeyDescription): Promise<ShownKey & { key: string }> {
  const { tenant, scopes, name } = description;
  const other = scopes.find((scope) => !keyScopes.some((one) => one === scope));
  if (scopes.length === 0 || other !== undefined) throw noSuchScope(other);
  if (name !== undefined) checkClientName(name);
  if (!(await tenantExists(db, tenant))) {
    throw new AnnalsError(
      'resource_not_found',
      `There is no tenant ${tenant}; create it with: annals tenant create ${tenant}`,
    );
  }
  const key = newKey();
  const row = await inTransaction(db, async (transaction) => {
    const inserted = await insertKey(transaction, key, description);
    await noteAccess(transaction, {
      tenant,
      kind: 'key_made',
      clientId: key.id,
      details: { scope: inserted.scopes.join(' ') },
    });
    return inserted;
  });
  return { key: writeKey(key), ...shown(row) };
}

async function insertKey(
  transaction: Database,
  key: KeyText,
  { tenant, scopes, name, restriction, lifetime }: KeyDescription,
) {
  return await transaction
    .insertInto('access_key')
    .values({
      tenant,
      key_id: key.id,
      name: name ?? key.id,
      secret_hash: hashOfSecret(key.secret),
      scopes: [...new Set(scopes)],
      restriction: restriction === undefined ? null : JSON.stringify(restriction.written),
      expires_at:
        lifetime === undefined ? null : sql<Date>`statement_timestamp() + ${lifetime} * interval '1 millisecond'`,
    })
    .returningAll()
    .executeTakeFirstOrThrow();
}

/** All keys of a tenant, the oldest first. */
export async function listKeys(db: Database, tenant: string): Promise<ShownKey[]> {
  const rows = await db
    .selectFrom('access_key')
    .selectAll()
    .where('tenant', '=', tenant)
    .orderBy('created_at')
    .orderBy('key_id')
    .execute();
  return rows.map(shown);
}

/** It ends within 5 seconds in every process. False where there is no such key; again is no error. */
export async function revokeKey(db: Database, tenant: string, id: string): Promise<boolean> {
  return await inTransaction(db, async (transaction) => {
    const { numUpdatedRows } = await transaction
      .updateTable('access_key')
      .set(({ fn }) => ({ revoked_at: fn<Date>('now', []) }))
      .where('tenant', '=', tenant)
      .where('key_id', '=', id)
      .where('revoked_at', 'is', null)
      .executeTakeFirstOrThrow();
    if (numUpdatedRows === 0n) return (await listKeys(transaction, tenant)).some((key) => key.id === id);
    await noteAccess(transaction, { tenant, kind: 'key_revoked', clientId: id });
    return true;
  });
}

export interface KeyRecord {
  readonly name: string;
  readonly secretHash: Uint8Array;
  readonly scopes: readonly Scope[];
  readonly restriction: readonly WrittenRestriction[] | null;
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
}

/** Undefined where there is none, and where it was revoked. */
export async function findKey(db: Database, tenant: string, id: string): Promise<KeyRecord | undefined> {
  const row = await db
    .selectFrom('access_key')
    .select(['name', 'secret_hash', 'scopes', 'restriction', 'expires_at'])
    .where('tenant', '=', tenant)
    .where('key_id', '=', id)
    .where('revoked_at', 'is', null)
    .executeTakeFirst();
  if (row === undefined) return undefined;
  return {
    name: row.name,
    secretHash: row.secret_hash,
    scopes: row.scopes.filter(isScope),
    restriction: row.restriction,
    expiresAt: row.expires_at?.getTime() ?? Number.POSITIVE_INFINITY,
  };
}

export async function noteUse(db: Database, tenant: string, id: string): Promise<void> {
  await db
    .updateTable('access_key')
    .set({ used_at: sql<Date>`statement_timestamp()` })
    .where('tenant', '=', tenant)
    .where('key_id', '=', id)
    .execute();
}

function shown(row: {
  tenant: string;
  key_id: string;
  name: string;
  scopes: string[];
  restriction: readonly WrittenRestriction[] | null;
  created_at: Date;
  expires_at: Date | null;
  revoked_at: Date | null;
  used_at: Date | null;
}): ShownKey {
  const [part] = row.restriction ?? [];
  return {
    id: row.key_id,
    tenant: row.tenant,
    name: row.name,
    scope: row.scopes.join(' '),
    ...part,
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
