import { createHmac, randomBytes } from 'node:crypto';
import { sql } from 'kysely';
import { OperatorError } from '../core/errors.ts';
import type { Sealer } from '../core/sealing.ts';
import { int8Array, uuidArray } from '../postgres/binary-arrays.ts';
import type { Connection, DatabaseTransaction } from '../postgres/database.ts';
import type { SealedColumn } from '../postgres/reseal.ts';

/** The identity of a change within its tenant. */
interface SentChange {
  readonly at: number;
  readonly identity: Uint8Array;
}

/** Tenants known to this process to have erasures: their changes are first checked against the erased ones. */
const tenantsWithErasures = new Set<string>();

/**
 * An erased change was recorded again, since this process did not know of the erasure. The transaction must be retried.
 */
class ErasedMeanwhile extends Error {
  override readonly name = 'ErasedMeanwhile';
  /** The code of a serialization failure, so that the transaction is retried. */
  readonly code = '40001';
}

/** For each change, whether it was erased: recorded once, and since rewritten with another identity. */
export async function findErased(
  transaction: DatabaseTransaction,
  sealer: Sealer,
  tenant: string,
  changes: readonly SentChange[],
): Promise<boolean[]> {
  const key = await findErasureKey(transaction, sealer);
  if (key === undefined) return changes.map(() => false);
  const identities = changes.map(({ identity }) => key.hashOf(tenant, 'identity', identity));
  const { rows } = await sql<{ erased: boolean }>`
    select known.entries > 0 as erased
      from unnest(${int8Array(changes.map(({ at }) => at))}::bigint[], ${uuidArray(identities)}::uuid[])
        with ordinality as sent (at, identity, place)
      left join lateral (
        select count(*) as entries from change_entry e
          where e.tenant = ${tenant} and e.at = sent.at and e.identity = sent.identity
      ) as known on true
      order by sent.place`.execute(transaction);
  return rows.map(({ erased }) => erased);
}

/** `findErased`, if this process knows that the tenant has erasures; otherwise undefined. */
export async function findKnownErased(
  transaction: DatabaseTransaction,
  sealer: Sealer,
  tenant: string,
  changes: readonly SentChange[],
): Promise<boolean[] | undefined> {
  return tenantsWithErasures.has(tenant) ? await findErased(transaction, sealer, tenant, changes) : undefined;
}

/** Call it after an insert for a tenant with erasures. Throws ErasedMeanwhile if one of the changes was erased. */
export async function refuseErased(
  transaction: DatabaseTransaction,
  sealer: Sealer,
  tenant: string,
  recorded: readonly SentChange[],
): Promise<void> {
  tenantsWithErasures.add(tenant);
  const erased = await findErased(transaction, sealer, tenant, recorded);
  if (erased.includes(true)) throw new ErasedMeanwhile('a change that was erased was recorded again');
}

/** For each document, whether it was erased. What its source still has must not be recorded again. */
export async function findErasedDocuments(
  db: Connection,
  sealer: Sealer,
  tenant: string,
  documents: readonly { readonly entity: string; readonly entityId: string }[],
): Promise<boolean[]> {
  const key = await findErasureKey(db, sealer);
  if (key === undefined) return documents.map(() => false);
  const hashes = documents.map(({ entity, entityId }) => hashOfDocument(key, tenant, entity, entityId));
  const { rows } = await sql<{ erased: boolean }>`
    select known.documents > 0 as erased
      from unnest(${uuidArray(hashes)}::uuid[]) with ordinality as sent (document, place)
      left join lateral (
        select count(*) as documents from change_erased_document d
          where d.tenant = ${tenant} and d.document = sent.document
      ) as known on true
      order by sent.place`.execute(db);
  return rows.map(({ erased }) => erased);
}

/** Records that a document is being erased. */
export async function noteErasedDocument(
  transaction: DatabaseTransaction,
  key: ErasureKey,
  tenant: string,
  { entity, entityId }: { readonly entity: string; readonly entityId: string },
): Promise<void> {
  await sql`
    insert into change_erased_document (tenant, document)
      select ${tenant}, document from unnest(${uuidArray([hashOfDocument(key, tenant, entity, entityId)])}::uuid[]) as document
      on conflict do nothing`.execute(transaction);
}

function hashOfDocument(key: ErasureKey, tenant: string, entity: string, entityId: string): Buffer {
  return key.hashOf(tenant, 'document', JSON.stringify([entity, entityId]));
}

/** The installation's key that recognizes erased changes when they return. It never changes. */
export interface ErasureKey {
  /** A deterministic 16-byte pseudonym of an erased entry's identity, or of a document. */
  hashOf(tenant: string, what: 'identity' | 'document', of: Uint8Array | string): Buffer;
}

const keyBytes = 32;

const hashBytes = 16;

const purpose = 'key of erasures';

export const sealedErasureKey: SealedColumn = {
  table: 'installation',
  column: 'erasure_key',
  keys: ['singleton'],
  purposeOf: () => purpose,
};

const opened = new WeakMap<Sealer, Map<string, ErasureKey>>();

/** The key; undefined if nothing was erased yet. Throws an OperatorError if no secret key opens it. */
async function findErasureKey(db: Connection, sealer: Sealer): Promise<ErasureKey | undefined> {
  const { rows } = await sql<{ sealed: Uint8Array | null }>`select erasure_key as sealed from installation`.execute(db);
  const sealed = rows[0]?.sealed ?? undefined;
  if (sealed === undefined) return undefined;
  const keys = opened.getOrInsertComputed(sealer, () => new Map());
  return keys.getOrInsertComputed(Buffer.from(sealed).toString('base64'), () => openKey(sealer, sealed));
}

/** The key, generated by the first call. */
export async function takeErasureKey(db: Connection, sealer: Sealer): Promise<ErasureKey> {
  const sealed = sealer.seal(randomBytes(keyBytes), purpose);
  await sql`update installation set erasure_key = ${sealed} where erasure_key is null`.execute(db);
  const key = await findErasureKey(db, sealer);
  if (key === undefined) throw new Error('the database has no row of its installation');
  return key;
}

function openKey(sealer: Sealer, sealed: Uint8Array): ErasureKey {
  const key = sealer.open(sealed, purpose);
  if (key === undefined) {
    throw new OperatorError(
      'no key of ANNALS_SECRET_KEY opens the key of erasures; add the key that the database was made with',
    );
  }
  return {
    hashOf: (tenant, what, of) =>
      createHmac('sha256', key).update(`annals erased ${what}\n${tenant}\n`).update(of).digest().subarray(0, hashBytes),
  };
}
