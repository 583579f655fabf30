import { createHmac, hash } from 'node:crypto';

export const hashBytes = 32;
const blockBytes = 64;
const wordsOfKey = hashBytes / 4;
/** Longer messages are hashed by a stream. */
const maxMessage = 4096;

// HMAC-SHA-256 (RFC 2104) of keys of 32 bytes: SHA-256(key ^ opad || SHA-256(key ^ ipad || message)). An HMAC object of
// node:crypto takes three times as long as two hashes, and a hash as a text takes a third of one as bytes.
const inner = Buffer.alloc(blockBytes + maxMessage, 0x36);
const outer = Buffer.alloc(blockBytes + hashBytes, 0x5c);
const innerKey = new Int32Array(inner.buffer, inner.byteOffset, wordsOfKey);
const outerKey = new Int32Array(outer.buffer, outer.byteOffset, wordsOfKey);
const key = Buffer.alloc(hashBytes);
const keyWords = new Int32Array(key.buffer, key.byteOffset, wordsOfKey);

/** Writes the SHA-256 of some bytes to a place of a buffer. */
export function writeHash(bytes: Buffer, target: Buffer, at: number): void {
  target.write(hash('sha256', bytes, 'binary'), at, 'binary');
}

/** Writes the HMAC-SHA-256 of a text under the key of 32 bytes at `keyAt` of `keys` into a buffer. */
export function writeHmac(keys: Buffer, keyAt: number, text: string, target: Buffer, at: number): void {
  if (text.length * 3 > maxMessage) {
    createHmac('sha256', keys.subarray(keyAt, keyAt + hashBytes))
      .update(text)
      .digest()
      .copy(target, at);
    return;
  }
  keys.copy(key, 0, keyAt, keyAt + hashBytes);
  for (let word = 0; word < wordsOfKey; word += 1) {
    innerKey[word] = (keyWords[word] ?? 0) ^ 0x36363636;
    outerKey[word] = (keyWords[word] ?? 0) ^ 0x5c5c5c5c;
  }
  const end = blockBytes + inner.write(text, blockBytes, 'utf8');
  writeHash(inner.subarray(0, end), outer, blockBytes);
  writeHash(outer, target, at);
}
