import { createCipheriv, createDecipheriv, createHash, createHmac, randomBytes } from 'node:crypto';

/** Replaces secrets and masked values in answers, change entries and log lines. */
export const mask = '********';

/**
 * Authenticated encryption of values that the database or a client stores. A sealed value is bound to a purpose and
 * opens for that purpose only, so it cannot be moved to another place.
 */
export interface Sealer {
  seal(plaintext: Uint8Array, boundTo: string): Uint8Array;
  /** Deterministic: the same plaintext, purpose and key have the same result. */
  sealAlike(plaintext: Uint8Array, boundTo: string): Uint8Array;
  /** Undefined if none of the keys sealed it, if it has another purpose, or if it was altered. */
  open(sealed: Uint8Array, boundTo: string): Uint8Array | undefined;
  /** Whether its header names the first key. */
  isCurrent(sealed: Uint8Array): boolean;
}

// version, key id, salt, nonce, ciphertext, tag
const version = 1;
const keyIdEnd = 5;
const saltEnd = keyIdEnd + 16;
const nonceEnd = saltEnd + 12;
const tagLength = 16;

/** Keys of 32 bytes each. The first one seals and all open, so that ANNALS_SECRET_KEY can rotate. */
export function createSealer(keys: readonly Uint8Array[]): Sealer {
  for (const key of keys) {
    if (key.length !== 32) throw new RangeError('A secret key has 32 bytes.');
  }
  const identified = keys.map((key) => ({ key, id: keyIdOf(key) }));
  const [first] = identified;
  if (first === undefined) throw new RangeError('At least one secret key is needed.');

  const sealWith = (saltAndNonce: Uint8Array, plaintext: Uint8Array, boundTo: string) => {
    const header = Buffer.concat([Uint8Array.of(version), first.id, saltAndNonce]);
    const cipher = createCipheriv('aes-256-gcm', messageKey(first.key, header), header.subarray(saltEnd, nonceEnd));
    cipher.setAAD(associatedData(header, boundTo));
    return Buffer.concat([header, cipher.update(plaintext), cipher.final(), cipher.getAuthTag()]);
  };

  return {
    seal: (plaintext, boundTo) => sealWith(randomBytes(nonceEnd - keyIdEnd), plaintext, boundTo),

    // Salt and nonce are a hash of what is sealed, so two values never share them.
    sealAlike: (plaintext, boundTo) => sealWith(hashOfValue(first.key, plaintext, boundTo), plaintext, boundTo),

    isCurrent(sealed) {
      return sealed[0] === version && first.id.equals(sealed.subarray(1, keyIdEnd));
    },

    open(sealed, boundTo) {
      if (sealed.length < nonceEnd + tagLength || sealed[0] !== version) return undefined;
      const header = Buffer.from(sealed.subarray(0, nonceEnd));
      const keyId = header.subarray(1, keyIdEnd);
      for (const { key, id } of identified) {
        const opened = id.equals(keyId) ? openWith(key, header, sealed, boundTo) : undefined;
        if (opened !== undefined) return opened;
      }
      return undefined;
    },
  };
}

function openWith(key: Uint8Array, header: Buffer, sealed: Uint8Array, boundTo: string): Uint8Array | undefined {
  const decipher = createDecipheriv('aes-256-gcm', messageKey(key, header), header.subarray(saltEnd, nonceEnd), {
    authTagLength: tagLength,
  });
  decipher.setAAD(associatedData(header, boundTo));
  decipher.setAuthTag(sealed.subarray(sealed.length - tagLength));
  try {
    return Buffer.concat([decipher.update(sealed.subarray(nonceEnd, sealed.length - tagLength)), decipher.final()]);
  } catch {
    return undefined;
  }
}

/** Derives a key for each message. The 96-bit nonces of GCM can then be random, however many messages there are. */
function messageKey(key: Uint8Array, header: Buffer): Buffer {
  return createHmac('sha256', key).update('annals message key').update(header.subarray(keyIdEnd, saltEnd)).digest();
}

function hashOfValue(key: Uint8Array, plaintext: Uint8Array, boundTo: string): Buffer {
  const purpose = createHash('sha256').update(boundTo).digest();
  const hash = createHmac('sha256', key).update('annals value').update(purpose).update(plaintext).digest();
  return hash.subarray(0, nonceEnd - keyIdEnd);
}

function keyIdOf(key: Uint8Array): Buffer {
  return createHmac('sha256', key).update('annals key id').digest().subarray(0, 4);
}

function associatedData(header: Buffer, boundTo: string): Buffer {
  return Buffer.concat([header, Buffer.from(boundTo, 'utf8')]);
}
