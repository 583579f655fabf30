import fc from 'fast-check';
import { expect, test } from 'vitest';
import { importTime } from '../../src/recording/import-time.ts';

test.each([
  ['1970-01-01T00:00:00Z', 0],
  ['1969-12-31T23:30:00-01:00', 1_800_000],
  ['2024-02-29T12:34:56.789Z', Date.UTC(2024, 1, 29, 12, 34, 56, 789)],
  ['2024-02-29t12:34:56z', Date.UTC(2024, 1, 29, 12, 34, 56)],
  ['2024-01-01T00:00:00.5+05:30', Date.UTC(2023, 11, 31, 18, 30, 0, 500)],
  ['2024-01-01T00:00:00-00:00', Date.UTC(2024, 0, 1)],
  ['2100-12-31T23:59:59.999999Z', Date.UTC(2101, 0, 1) - 1],
])('%s is %d', (text, at) => {
  expect(importTime(text)).toBe(at);
});

test('every moment is read as JavaScript writes it', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: Date.UTC(2101, 0, 1) - 1 }), (at) => {
      expect(importTime(new Date(at).toISOString())).toBe(at);
    }),
  );
});

test('a time of the same day as the one before is read by the same rules', () => {
  const known = '2024-02-28T12:34:56.789Z';
  const isTime = /^2024-02-28T([01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{3}Z$/i;
  for (const place of [...known].keys()) {
    if (place < 'YYYY-MM-DDT'.length) continue;
    for (const character of '0123456789/:.Zzé ') {
      const text = known.slice(0, place) + character + known.slice(place + 1);
      expect(importTime(known)).toBe(Date.parse(known));
      expect(importTime(text), text).toBe(
        isTime.test(text) ? Date.parse(text.toUpperCase()) : 'is no RFC 3339 time with Z or an offset',
      );
    }
  }
});

test('a character that is no digit is found at each place of a time', () => {
  for (const [place, character] of [...'2024-02-28T12:34:56.789Z'].entries()) {
    if (!/\d/.test(character)) continue;
    for (const replacement of '/:é') {
      const text =
        `2024-02-28T12:34:56.789Z`.slice(0, place) + replacement + '2024-02-28T12:34:56.789Z'.slice(place + 1);
      expect(importTime(text)).toBe('is no RFC 3339 time with Z or an offset');
    }
  }
});

test('what is finer than a millisecond is cut, not rounded', () => {
  expect(importTime('2024-01-01T00:00:00.9999999999999999999999Z')).toBe(Date.UTC(2024, 0, 1) + 999);
});

test.each([
  ['1969-12-31T23:59:59.999Z', 'is not from 1970 to 2100'],
  ['1970-01-01T00:00:00+00:01', 'is not from 1970 to 2100'],
  ['2101-01-01T00:00:00Z', 'is not from 1970 to 2100'],
  ['0070-01-01T00:00:00Z', 'is not from 1970 to 2100'],
  ['2023-02-29T00:00:00Z', 'is a date that does not exist'],
  ['2023-13-01T00:00:00Z', 'is a date that does not exist'],
  ['2023-00-10T00:00:00Z', 'is a date that does not exist'],
  ['2023-01-00T00:00:00Z', 'is a date that does not exist'],
])('%s %s', (text, fault) => {
  expect(importTime(text)).toBe(fault);
});

test.each([
  ...['', '2024-01-01', '2024-01-01T00:00:00', '2024-01-01 00:00:00Z', '2024-1-1T00:00:00Z', '2024-01-01T24:00:00Z'],
  ...['2024-01-01T00:60:00Z', '2024-01-01T00:00:60Z', '2024-01-01T00:00:00.Z', '2024-01-01T00:00:00+24:00'],
  ...[
    '2024-01-01T00:00:00+0100',
    '2024-01-01T00:00Z',
    ' 2024-01-01T00:00:00Z',
    '2024-01-01T00:00:00Z\n',
    '1704067200000',
  ],
])('%j is no time', (text) => {
  expect(importTime(text)).toBe('is no RFC 3339 time with Z or an offset');
});
