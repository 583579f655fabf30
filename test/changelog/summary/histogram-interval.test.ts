import { expect, test } from 'vitest';
import { boundariesOf, intervalFor, lengthOf } from '../../../src/changelog/summary/histogram-interval.ts';

const day = 86_400_000;
const midnight = Date.UTC(2026, 8, 15);

test.each([
  [60_000, 60, { unit: 'second', count: 1 }],
  [60_001, 60, { unit: 'second', count: 2 }],
  [3_600_000, 60, { unit: 'minute', count: 1 }],
  [day, 24, { unit: 'hour', count: 1 }],
  [day, 23, { unit: 'hour', count: 2 }],
  [day, 1, { unit: 'day', count: 1 }],
  [30 * day, 60, { unit: 'hour', count: 12 }],
  [30 * day + 1, 60, { unit: 'day', count: 1 }],
] as const)('%d ms from midnight on in at most %d buckets', (length, buckets, interval) => {
  expect(intervalFor(midnight, midnight + length, buckets)).toEqual(interval);
});

test('a window that begins within a bucket needs one bucket more', () => {
  expect(intervalFor(midnight + 1, midnight + 1 + day, 24)).toEqual({ unit: 'hour', count: 2 });
});

test('where 364 days make too many buckets, a bucket has several times as many', () => {
  const end = Date.UTC(9999, 11, 31);
  for (const buckets of [1, 7, 500]) {
    const interval = intervalFor(0, end, buckets);
    expect(interval.count % 364).toBe(0);
    expect(boundariesOf(0, end, interval).length - 1).toBeLessThanOrEqual(buckets);
    const shorter = lengthOf({ unit: 'day', count: interval.count - 364 });
    expect(Math.ceil(end / shorter)).toBeGreaterThan(buckets);
  }
});

test('boundaries are multiples since 1970 and cover the time, and no more', () => {
  const begins = boundariesOf(midnight + 1, midnight + 3 * day + 1, { unit: 'day', count: 2 });
  expect(begins.map((begin) => begin % (2 * day))).toEqual(begins.map(() => 0));
  expect(begins[0]).toBeLessThanOrEqual(midnight + 1);
  expect(begins[1]).toBeGreaterThan(midnight + 1);
  expect(begins.at(-1)).toBeGreaterThanOrEqual(midnight + 3 * day + 1);
  expect(begins.at(-2)).toBeLessThan(midnight + 3 * day + 1);
});
