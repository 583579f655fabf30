import { createHmac, createPrivateKey, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';

/** Symmetric with a shared secret, or asymmetric with a key pair. */
export type Signing = 'hmac' | 'ed25519';

/** A key of a webhook (Standard Webhooks 1.0.0, "Signature scheme"). */
export interface SigningKey {
  readonly signing: Signing;
  /** `whsec_` and 32 bytes, or `whsk_` and the seed of 32 bytes, in base64. Annals stores it sealed. */
  readonly secret: string;
}

/** The receiver's key: the secret of `hmac`, the public key of `ed25519` (`whpk_` and 32 bytes in base64). */
export type ReceiverKey = { readonly secret: string } | { readonly publicKey: string };

const hmacPrefix = 'whsec_';
const privatePrefix = 'whsk_';
const publicPrefix = 'whpk_';
const keyBytes = 32;
// The DER prefix of an Ed25519 key (RFC 8410).
const privateHeader = Buffer.from('302e020100300506032b657004220420', 'hex');
const publicHeaderBytes = 12;

export function makeSigningKey(signing: Signing): { key: SigningKey; receiver: ReceiverKey } {
  if (signing === 'hmac') {
    const secret = hmacPrefix + randomBytes(keyBytes).toString('base64');
    return { key: { signing, secret }, receiver: { secret } };
  }
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const seed = privateKey.export({ format: 'der', type: 'pkcs8' }).subarray(privateHeader.length);
  const point = publicKey.export({ format: 'der', type: 'spki' }).subarray(publicHeaderBytes);
  return {
    key: { signing, secret: privatePrefix + seed.toString('base64') },
    receiver: { publicKey: publicPrefix + point.toString('base64') },
  };
}

export interface SignedMessage {
  readonly id: string;
  /** Seconds since 1970. */
  readonly timestamp: number;
  readonly body: string;
}

/** The header `webhook-signature`: a signature for each key, the newest first. */
export function signaturesOf({ id, timestamp, body }: SignedMessage, keys: readonly SigningKey[]): string {
  const content = Buffer.from(`${id}.${timestamp}.${body}`);
  return keys.map((key) => signatureOf(content, key)).join(' ');
}

function signatureOf(content: Buffer, { signing, secret }: SigningKey): string {
  if (signing === 'ed25519') return `v1a,${sign(null, content, privateKeyOf(secret)).toString('base64')}`;
  return `v1,${createHmac('sha256', bytesOf(secret, hmacPrefix)).update(content).digest('base64')}`;
}

function privateKeyOf(secret: string): KeyObject {
  const key = Buffer.concat([privateHeader, bytesOf(secret, privatePrefix)]);
  return createPrivateKey({ key, format: 'der', type: 'pkcs8' });
}

function bytesOf(secret: string, prefix: string): Buffer {
  const bytes = secret.startsWith(prefix) ? Buffer.from(secret.slice(prefix.length), 'base64') : Buffer.alloc(0);
  if (bytes.length !== keyBytes) throw new Error('not a key of a webhook');
  return bytes;
}
