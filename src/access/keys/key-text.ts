import { hash, randomBytes, timingSafeEqual } from 'node:crypto';
import { crc32 } from 'node:zlib';

/** Letters and digits only, so that a double click selects the whole key. */
const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const idLength = 16;
/** 62^43 > 2^256. */
const secretLength = 43;
const checksumLength = 6;

/** The format of keys, for secret scanners. The last 6 characters are a checksum of the preceding ones. */
export const keyPattern = /^annals_([0-9A-Za-z]{16})_([0-9A-Za-z]{43})([0-9A-Za-z]{6})$/;

export interface KeyText {
  readonly id: string;
  readonly secret: string;
}

export function newKey(): KeyText {
  return { id: randomText(idLength), secret: randomText(secretLength) };
}

/**
 * A key as shown to its owner.
 * @example writeKey({ id: '0123456789abcdef', secret: … }); // annals_0123456789abcdef_…, ending with a checksum
 */
export function writeKey({ id, secret }: KeyText): string {
  const text = `annals_${id}_${secret}`;
  return `${text}${checksumOf(text)}`;
}

/** Undefined for a malformed key or a wrong checksum, before any query. */
export function readKey(text: string): KeyText | undefined {
  const [, id = '', secret = '', checksum] = keyPattern.exec(text) ?? [];
  return checksum !== undefined && checksumOf(`annals_${id}_${secret}`) === checksum ? { id, secret } : undefined;
}

/** A secret of more than 250 random bits needs no slow hash. */
export function hashOfSecret(secret: string): Buffer {
  return hash('sha256', secret, 'buffer');
}

export function isSecretOf(secret: string, secretHash: Uint8Array): boolean {
  return timingSafeEqual(hashOfSecret(secret), secretHash);
}

/** CRC-32 in base 62. */
function checksumOf(text: string): string {
  let rest = crc32(text);
  let digits = '';
  for (let place = 0; place < checksumLength; place += 1) {
    digits = alphabet.charAt(rest % alphabet.length) + digits;
    rest = Math.floor(rest / alphabet.length);
  }
  return digits;
}

function randomText(length: number): string {
  let text = '';
  while (text.length < length) {
    // 248 is the largest multiple of 62 below 256, which keeps the letters uniformly distributed.
    for (const byte of randomBytes(length)) if (byte < 248 && text.length < length) text += alphabet.charAt(byte % 62);
  }
  return text;
}
