import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { barsOfChanges } from '../src/charts/bars.ts';
import { boundsOfDay, momentOf, momentText, startOfDay, timeZone, zoneName } from '../src/components/times.ts';
import { hasTime, withTime } from '../src/query-text/edit-query.ts';

// The clocks of Berlin went forward on 2026-03-29 and back on 2026-10-25.
const before = process.env.TZ;
const hour = 3_600_000;

beforeAll(() => {
  process.env.TZ = 'Europe/Berlin';
});

// What a test of another file has chosen may be remembered.
beforeEach(() => {
  timeZone.value = 'local';
});

afterAll(() => {
  timeZone.value = 'local';
  if (before === undefined) delete process.env.TZ;
  else process.env.TZ = before;
});

test('today and yesterday begin at midnight by the clock that the reader has chosen', () => {
  const now = Date.parse('2026-10-25T23:30:00Z');
  expect(boundsOfDay('today', now)).toEqual({ from: '2026-10-26T00:00:00+01:00' });
  expect(boundsOfDay('yesterday', now)).toEqual({
    from: '2026-10-25T00:00:00+02:00',
    before: '2026-10-26T00:00:00+01:00',
  });
  expect(zoneName()).toBe('Europe/Berlin');
  timeZone.value = 'utc';
  expect(boundsOfDay('today', now)).toEqual({ from: '2026-10-25T00:00:00Z' });
  expect(boundsOfDay('yesterday', now)).toEqual({ from: '2026-10-24T00:00:00Z', before: '2026-10-25T00:00:00Z' });
  expect(zoneName()).toBe('UTC');
});

test('days of 23 and 25 hours are one day', () => {
  for (const [day, hours] of [
    ['2026-03-29', 23],
    ['2026-10-25', 25],
    ['2026-10-26', 24],
  ] as const) {
    const start = startOfDay(momentOf(day, '12:00'));
    expect((startOfDay(start, 1) - start) / hour, day).toBe(hours);
  }
});

test('a time with hours is read and written by the chosen clock', () => {
  expect(momentText(momentOf('2026-07-01', '14:30'))).toBe('2026-07-01T14:30:00+02:00');
  expect(momentText(momentOf('2026-07-01', ''))).toBe('2026-07-01T00:00:00+02:00');
  timeZone.value = 'utc';
  expect(momentText(momentOf('2026-07-01', '14:30'))).toBe('2026-07-01T14:30:00Z');
  expect(momentText(Date.parse('2026-07-01T14:30:00.250Z'))).toBe('2026-07-01T14:30:00.250Z');
  expect(momentOf('', '14:30')).toBeNaN();
});

test('a query is known to look at a time, and at no other', () => {
  const day = boundsOfDay('yesterday', Date.parse('2026-11-23T12:00:00Z'));
  const q = withTime('type:update occurredAt:<"2026-01-01T00:00:00Z" actor:Jane', day);
  expect(q).toBe('type:update actor:Jane occurredAt:(>="2026-11-22T00:00:00+01:00" AND <"2026-11-23T00:00:00+01:00")');
  expect([hasTime(q, day), hasTime(q, {}), hasTime('type:update', {}), hasTime(withTime(q, {}), {})]).toEqual([
    true,
    false,
    true,
    true,
  ]);
});

test('the last bar of days ends at the midnight behind it', () => {
  const counts = { count: 1, create: 1, update: 0, delete: 0 };
  const at = '2026-10-24T22:00:00.000Z';
  const bars = barsOfChanges({ interval: { unit: 'day', count: 1 }, buckets: [{ at, ...counts }] });
  expect(bars).toMatchObject({ starts: [Date.parse(at)], end: Date.parse(at) + 25 * hour, detail: 'day' });
  const hours = barsOfChanges({ interval: { unit: 'hour', count: 2 }, buckets: [{ at, ...counts }] });
  expect(hours).toMatchObject({ end: Date.parse(at) + 2 * hour, detail: 'minute' });
});
