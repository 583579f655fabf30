import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createSealer } from '../../src/core/sealing.ts';

const [first, second] = [randomBytes(32), randomBytes(32)];
const sealer = createSealer([first]);

function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

test('what was sealed opens for its purpose, and for no other', () => {
  fc.assert(
    fc.property(fc.uint8Array(), fc.string(), fc.string(), (plaintext, purpose, other) => {
      const sealed = sealer.seal(plaintext, purpose);
      expect(sealer.open(sealed, purpose)).toEqual(Buffer.from(plaintext));
      if (other !== purpose) expect(sealer.open(sealed, other)).toBeUndefined();
    }),
  );
});

test('any changed, missing or added byte closes it', () => {
  const sealed = sealer.seal(bytes('the plaintext'), 'purpose');
  for (let index = 0; index < sealed.length; index += 1) {
    const altered = Uint8Array.from(sealed);
    altered[index] = (altered[index] ?? 0) ^ 1;
    expect(sealer.open(altered, 'purpose'), `byte ${index}`).toBeUndefined();
    expect(sealer.open(sealed.subarray(0, index), 'purpose')).toBeUndefined();
  }
  expect(sealer.open(Buffer.concat([sealed, Uint8Array.of(0)]), 'purpose')).toBeUndefined();
});

test('the same text is sealed differently each time, and does not show', () => {
  const sealed = Array.from({ length: 100 }, () => Buffer.from(sealer.seal(bytes('the plaintext'), 'p')));
  expect(new Set(sealed.map((each) => each.toString('hex'))).size).toBe(100);
  for (const each of sealed) expect(each.includes('plain')).toBe(false);
});

test('what is sealed alike is the same each time, for one purpose and one key alone, and opens as all does', () => {
  const alike = sealer.sealAlike(bytes('a'), 'p');
  expect(sealer.sealAlike(bytes('a'), 'p')).toEqual(alike);
  expect(sealer.open(alike, 'p')).toEqual(Buffer.from('a'));
  expect(sealer.open(alike, 'q')).toBeUndefined();
  // What decides on the key and the nonce differs wherever anything does.
  const others = [
    sealer.sealAlike(bytes('b'), 'p'),
    sealer.sealAlike(bytes('a'), 'q'),
    createSealer([second]).sealAlike(bytes('a'), 'p'),
  ];
  for (const sealed of others) expect(sealed.subarray(5, 33)).not.toEqual(alike.subarray(5, 33));
});

test('the first key seals, all open; a key that is gone opens nothing', () => {
  const old = createSealer([second]).seal(bytes('old'), 'p');
  const rotated = createSealer([first, second]);
  expect(rotated.open(old, 'p')).toEqual(Buffer.from('old'));
  const fresh = rotated.seal(bytes('new'), 'p');
  expect(sealer.open(fresh, 'p')).toEqual(Buffer.from('new'));
  expect(createSealer([second]).open(fresh, 'p')).toBeUndefined();
});

test('keys have 32 bytes, and there is at least one', () => {
  expect(() => createSealer([])).toThrow('At least one secret key');
  expect(() => createSealer([first, randomBytes(16)])).toThrow('32 bytes');
});
