import { generateKeyPairSync } from 'node:crypto';
import { type SignatureType, type Signer, signatureTypes, verifierOf } from '../../../src/proof/log/note.ts';

/** A new key of a log, or of a witness. */
export function signerOf(name: string, type: SignatureType = signatureTypes.ed25519): Signer {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  return { ...verifierOf(name, type, publicKey), privateKey };
}
