import { sql } from 'kysely';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import './tables.ts';

export interface StoredSigningKey {
  kid: string;
  sealedKey: Uint8Array;
  createdAt: Date;
  /** The end of its use for signing. */
  retiredAt: Date;
}

// Arbitrary, but the same in all versions of Annals.
const signingKeyLock = 7_229_148_367;

/** Serializes the creation of keys: the processes that waited find the new key. */
export async function withSigningKeyLock<Result>(
  db: Database,
  work: (transaction: DatabaseTransaction) => Promise<Result>,
): Promise<Result> {
  return await inTransaction(db, async (transaction) => {
    await sql`select pg_advisory_xact_lock(${signingKeyLock}::bigint)`.execute(transaction);
    return await work(transaction);
  });
}

/** The keys that retire after that time, newest first. */
export async function readSigningKeys(db: Database, retiredAfter: Date): Promise<StoredSigningKey[]> {
  const rows = await db
    .selectFrom('oauth_signing_key')
    .selectAll()
    .where('retired_at', '>', retiredAfter)
    .orderBy('created_at', 'desc')
    .orderBy('kid')
    .execute();
  return rows.map((row) => ({
    kid: row.kid,
    sealedKey: row.sealed_key,
    createdAt: row.created_at,
    retiredAt: row.retired_at,
  }));
}

export async function insertSigningKey(db: Database, key: StoredSigningKey): Promise<void> {
  await db
    .insertInto('oauth_signing_key')
    .values({ kid: key.kid, sealed_key: key.sealedKey, created_at: key.createdAt, retired_at: key.retiredAt })
    .execute();
}

export async function deleteSigningKeys(db: Database, retiredBefore: Date): Promise<void> {
  await db.deleteFrom('oauth_signing_key').where('retired_at', '<=', retiredBefore).execute();
}
