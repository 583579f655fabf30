import { createHmac, randomBytes } from 'node:crypto';
import { sql } from 'kysely';
import { OperatorError } from '../../core/operator-error.ts';
import type { Sealer } from '../../core/sealing.ts';
import type { Connection } from '../../postgres/database.ts';
import type { SealedColumn } from '../../postgres/reseal.ts';

/** The key of the installation under which what was erased is known again. It never changes. */
export interface ErasureKey {
  /** What stands for the identity of an erased entry, or for a document: 16 bytes, the same each time. */
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

/** The key; undefined where nothing was erased yet. Throws an OperatorError where no secret key opens it. */
export async function findErasureKey(db: Connection, sealer: Sealer): Promise<ErasureKey | undefined> {
  const { rows } = await sql<{ sealed: Uint8Array | null }>`select erasure_key as sealed from installation`.execute(db);
  const sealed = rows[0]?.sealed ?? undefined;
  if (sealed === undefined) return undefined;
  const known = opened.getOrInsertComputed(sealer, () => new Map());
  return known.getOrInsertComputed(Buffer.from(sealed).toString('base64'), () => openKey(sealer, sealed));
}

/** The key, made by the first call. */
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
