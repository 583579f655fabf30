import { calculateJwkThumbprint, exportJWK, generateKeyPair, importJWK, type JWK } from 'jose';
import type { Sealer } from '../../core/sealing.ts';
import type { SealedColumn } from '../../postgres/reseal.ts';
import type { StoredSigningKey } from './signing-key-store.ts';

/** The algorithm of all tokens. Tokens with another one are refused. */
export const signingAlgorithm = 'ES256';

type Key = Awaited<ReturnType<typeof importJWK>>;

export interface SigningKey {
  kid: string;
  privateKey: Key;
  publicKey: Key;
  /** As published at /.well-known/jwks.json. */
  publicJwk: JWK;
  /** Milliseconds since 1970: the end of its use for signing. */
  retiredAt: number;
}

export async function generateSigningKey(sealer: Sealer, createdAt: Date, retiredAt: Date): Promise<StoredSigningKey> {
  const { privateKey } = await generateKeyPair(signingAlgorithm, { extractable: true });
  const privateJwk = await exportJWK(privateKey);
  const kid = await calculateJwkThumbprint(privateJwk);
  const plaintext = Buffer.from(JSON.stringify(privateJwk), 'utf8');
  return { kid, sealedKey: sealer.seal(plaintext, purposeOf(kid)), createdAt, retiredAt };
}

/**
 * Opens a stored key; undefined if no secret key opens it. Derives the public key from the sealed private key, so
 * that write access to the database is not enough to plant one.
 */
export async function openSigningKey(sealer: Sealer, stored: StoredSigningKey): Promise<SigningKey | undefined> {
  const plaintext = sealer.open(stored.sealedKey, purposeOf(stored.kid));
  if (plaintext === undefined) return undefined;
  const privateJwk: JWK = JSON.parse(Buffer.from(plaintext).toString('utf8'));
  const { kty, crv, x, y } = privateJwk;
  const parameters = { kty, crv, x, y } as JWK;
  return {
    kid: stored.kid,
    privateKey: await importJWK(privateJwk, signingAlgorithm),
    publicKey: await importJWK(parameters, signingAlgorithm),
    publicJwk: { ...parameters, kid: stored.kid, alg: signingAlgorithm, use: 'sig' },
    retiredAt: stored.retiredAt.getTime(),
  };
}

function purposeOf(kid: string): string {
  return `oauth signing key ${kid}`;
}

export const sealedSigningKeys: SealedColumn = {
  table: 'oauth_signing_key',
  column: 'sealed_key',
  keys: ['kid'],
  purposeOf: ({ kid }) => purposeOf(String(kid)),
};
