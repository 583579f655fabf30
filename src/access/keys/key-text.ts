import { hash, randomBytes, timingSafeEqual } from 'node:crypto';
import { crc32 } from 'node:zlib';

/** Letters and digits alone, so that a double click selects all of a key. */
const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const idLength = 16;
/** 62^43 are more than 2^256. */
const secretLength = 43;
const checksumLength = 6;

/** For scanners of secrets: what every key looks like. The last 6 characters are a checksum of what stands before them. */
export const keyPattern = /^annals_([0-9A-Za-z]{16})_([0-9A-Za-z]{43})([0-9A-Za-z]{6})$/;

export interface KeyText {
  readonly id: string;
  readonly secret: string;
}

export function newKey(): KeyText {
  return { id: randomText(idLength), secret: randomText(secretLength) };
}

/**
 * A key as its owner has it.
 *
 * @example
 * writeKey({ id: '0123456789abcdef', secret: … }); // annals_0123456789abcdef_… with a checksum at its end
 */
export function writeKey({ id, secret }: KeyText): string {
  const text = `annals_${id}_${secret}`;
  return `${text}${checksumOf(text)}`;
}

/** Undefined for a text that is no key: a wrong checksum costs no query. */
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

/** CRC-32 to the base 62. */
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
    // 248 is the greatest multiple of 62 below 256: every letter is as likely.
    for (const byte of randomBytes(length)) if (byte < 248 && text.length < length) text += alphabet.charAt(byte % 62);
  }
  return text;
}
