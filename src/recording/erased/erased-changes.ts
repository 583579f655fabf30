import { sql } from 'kysely';
import type { Sealer } from '../../core/sealing.ts';
import { int8Array, uuidArray } from '../../postgres/binary-arrays.ts';
import type { Connection, DatabaseTransaction } from '../../postgres/database.ts';
import { type ErasureKey, findErasureKey } from './erasure-key.ts';

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
export class ErasedMeanwhile extends Error {
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
