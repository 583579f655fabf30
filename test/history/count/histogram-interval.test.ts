import { expect, test } from 'vitest';
import { boundariesOf, calendarOf, intervalFor, utcCalendar } from '../../../src/history/search/histogram.ts';

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
  expect(intervalFor({ from: midnight, end: midnight + length }, buckets, utcCalendar)).toEqual(interval);
});

test('a window that begins within a bucket needs one more bucket', () => {
  expect(intervalFor({ from: midnight + 1, end: midnight + 1 + day }, 24, utcCalendar)).toEqual({
    unit: 'hour',
    count: 2,
  });
});

test('where 364-day buckets are too many, the interval is the smallest multiple of 364 days that fits', () => {
  const end = Date.UTC(9999, 11, 31);
  for (const buckets of [1, 7, 500]) {
    const interval = intervalFor({ from: 0, end }, buckets, utcCalendar);
    expect(interval.count % 364).toBe(0);
    expect(boundariesOf({ from: 0, end }, interval, utcCalendar).length - 1).toBeLessThanOrEqual(buckets);
    const shorter = (interval.count - 364) * day;
    expect(Math.ceil(end / shorter)).toBeGreaterThan(buckets);
  }
});

test('boundaries are multiples of the interval since 1970 and cover exactly the window', () => {
  const begins = boundariesOf(
    { from: midnight + 1, end: midnight + 3 * day + 1 },
    { unit: 'day', count: 2 },
    utcCalendar,
  );
  expect(begins.map((begin) => begin % (2 * day))).toEqual(begins.map(() => 0));
  expect(begins[0]).toBeLessThanOrEqual(midnight + 1);
  expect(begins[1]).toBeGreaterThan(midnight + 1);
  expect(begins.at(-1)).toBeGreaterThanOrEqual(midnight + 3 * day + 1);
  expect(begins.at(-2)).toBeLessThan(midnight + 3 * day + 1);
});

test('days begin at local midnight, including those of 23 and 25 hours', () => {
  const daysOf = (timeZone: string, from: string, end: string) => {
    const calendar = calendarOf(timeZone) ?? utcCalendar;
    const range = { from: Date.parse(from), end: Date.parse(end) };
    const moments = boundariesOf(range, { unit: 'day', count: 1 }, calendar);
    return moments.map((moment) => new Date(moment).toISOString().slice(0, 16));
  };
  expect(daysOf('Europe/Berlin', '2026-03-28T12:00Z', '2026-03-30T12:00Z')).toEqual([
    '2026-03-27T23:00',
    '2026-03-28T23:00',
    '2026-03-29T22:00',
    '2026-03-30T22:00',
  ]);
  expect(daysOf('America/New_York', '2026-10-31T23:00Z', '2026-11-02T05:00Z')).toEqual([
    '2026-10-31T04:00',
    '2026-11-01T04:00',
    '2026-11-02T05:00',
  ]);
  // A day without a midnight begins at its first moment, and a skipped day has no bucket.
  expect(daysOf('America/Sao_Paulo', '2018-11-03T12:00Z', '2018-11-04T12:00Z')).toEqual([
    '2018-11-03T03:00',
    '2018-11-04T03:00',
    '2018-11-05T02:00',
  ]);
  expect(daysOf('Pacific/Apia', '2011-12-29T12:00Z', '2011-12-31T12:00Z')).toEqual([
    '2011-12-29T10:00',
    '2011-12-30T10:00',
    '2011-12-31T10:00',
    '2012-01-01T10:00',
  ]);
});

test.each([
  ['Europe/Berlin', true],
  ['asia/kathmandu', true],
  ['Etc/GMT+5', true],
  ['UTC', true],
  ['+02:00', false],
  ['Mars/Olympus', false],
  ['', false],
  ['Europe/Berlin ', false],
])('%j is a time zone: %s', (text, isOne) => {
  expect(calendarOf(text) !== undefined).toBe(isOne);
});
