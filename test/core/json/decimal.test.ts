import fc from 'fast-check';
import { expect, test } from 'vitest';
import { isSameDecimal } from '../../../src/core/json/text.ts';
import { canonical } from '../../support/oracle/reference-paths.ts';
import { trials } from '../../support/oracle/trials.ts';

test.each([
  ['1.10', '1.1'],
  ['1.10', '11e-1'],
  ['-0', '0'],
  ['0e99999999999999999999', '-0.000'],
  ['100', '1E+2'],
  ['0.001', '1e-3'],
  ['1e999999999', '10e999999998'],
  ['1e-99999999999999999999', '0.1e-99999999999999999998'],
  ['1e100000000000000000000', '10e99999999999999999999'],
  ['1e0000000000000000000000000000000001', '10'],
])('%s equals %s', (one, other) => {
  expect(isSameDecimal(one, other)).toBe(true);
  expect(isSameDecimal(other, one)).toBe(true);
});

test.each([
  ['9007199254740993', '9007199254740992'],
  ['1', '-1'],
  ['1', '10'],
  ['0.1', '0.10000000000000000001'],
  ['1e999999999', '1e999999998'],
  ['1e99999999999999999999', '1e-99999999999999999999'],
  ['1e100000000000000000000', '1e99999999999999999999'],
])('%s does not equal %s', (one, other) => {
  expect(isSameDecimal(one, other)).toBe(false);
  expect(isSameDecimal(other, one)).toBe(false);
});

test('numbers are equal exactly where their decimal values are', () => {
  const number = fc
    .tuple(
      fc.constantFrom('', '-'),
      fc.constantFrom('0', '1', '10', '12', '120', '100000'),
      fc.constantFrom('', '.0', '.1', '.12', '.120', '.001'),
      fc.constantFrom('', 'e0', 'E1', 'e+2', 'e-1', 'e-02', 'e5'),
    )
    .map((parts) => parts.join(''));
  fc.assert(
    fc.property(number, number, (one, other) => {
      expect(isSameDecimal(one, other)).toBe(canonical({ text: one }) === canonical({ text: other }));
    }),
    { numRuns: trials(1_000) },
  );
});

test('numbers of millions of digits are compared digit by digit', () => {
  const digits = '7'.repeat(2_000_000);
  expect(isSameDecimal(`${digits}0e${digits}`, `${digits}e${digits.slice(0, -1)}8`)).toBe(true);
  expect(isSameDecimal(`${digits}1`, `${digits}2`)).toBe(false);
});
