import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Occurrences } from '../../src/recording/occurrences.ts';

test('keys are counted exactly, however few of them fit into memory', () => {
  fc.assert(
    fc.property(fc.array(fc.nat({ max: 20 }), { maxLength: 200 }), fc.integer({ min: 1, max: 30 }), (keys, maximum) => {
      const occurrences = new Occurrences(maximum);
      const seen = new Map<number, number>();
      try {
        for (const key of keys) {
          const before = seen.get(key) ?? 0;
          expect(occurrences.next(Buffer.from([key, 0, 0xff]))).toBe(before);
          seen.set(key, before + 1);
        }
      } finally {
        occurrences.close();
      }
    }),
    { numRuns: 100 },
  );
});
