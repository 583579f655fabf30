import { afterEach, expect, test } from 'vitest';
import { daysOf, levelOf, monthsOf } from '../src/actor/active-days.ts';
import { timeZone } from '../src/components/times.ts';

afterEach(() => {
  timeZone.value = 'local';
});

test('the calendar has 53 weeks that begin on a Monday and end today, each day once', () => {
  timeZone.value = 'utc';
  for (const today of ['2026-11-29', '2026-11-30', '2024-02-29', '2027-01-01']) {
    const days = daysOf(Date.parse(`${today}T23:59:59Z`)).map((start) => new Date(start).toISOString());
    expect(new Date(days[0] ?? '').getUTCDay(), today).toBe(1);
    expect(days.at(-1)).toBe(`${today}T00:00:00.000Z`);
    expect(Math.ceil(days.length / 7), today).toBe(53);
    expect(new Set(days.map((day) => day.slice(0, 10))).size).toBe(days.length);
  }
});

test('a month stands above the week in which it begins', () => {
  timeZone.value = 'utc';
  const months = monthsOf(daysOf(Date.parse('2026-11-29T12:00:00Z')));
  expect(months).toHaveLength(12);
  // The calendar begins on Monday, 24 November 2025. New Year is 38 days later.
  expect(months[0]?.week).toBe(1);
  expect(months[1]?.week).toBe(5);
});

test('a day with a change never looks like one without', () => {
  expect([0, 1, 2, 25, 26, 50, 51, 100].map((count) => levelOf(count, 100))).toEqual([0, 1, 1, 1, 2, 2, 3, 4]);
  expect(levelOf(1, 1_000_000)).toBe(1);
});
