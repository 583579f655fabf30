import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Occurrences } from '../../src/recording/occurrences.ts';
import { trials } from '../support/oracle/trials.ts';

/** Few different words, so that keys differ in one word alone and stand in each other's places. */
function keyOf(number: number): Buffer {
  const key = Buffer.alloc(16, 0x80);
  key.writeInt32BE(Math.floor(number / 5) - 1, 0);
  key.writeInt32BE(number % 5, 12);
  return key;
}

test('keys are counted exactly, however few of them fit into memory', () => {
  fc.assert(
    fc.property(
      fc.array(fc.nat({ max: 120 }), { maxLength: 300, size: 'max' }),
      fc.integer({ min: 1, max: 200 }),
      (keys, maximum) => {
        const occurrences = new Occurrences(maximum);
        const seen = new Map<number, number>();
        try {
          for (const key of keys) {
            const before = seen.get(key) ?? 0;
            expect(occurrences.next(keyOf(key))).toBe(before);
            seen.set(key, before + 1);
          }
        } finally {
          occurrences.close();
        }
      },
    ),
    { numRuns: trials(50) },
  );
});
