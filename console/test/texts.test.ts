import { finish } from '@annals/client/json';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { barsOfChanges } from '../src/charts/bars.ts';
import { splitHidden } from '../src/components/text.tsx';
import { lineOf, lineStarts } from '../src/components/text-lines.ts';
import {
  boundsOfDay,
  durationOf,
  durationWords,
  isoOf,
  momentOf,
  momentText,
  noDuration,
  startOfDay,
  timeZone,
  zoneName,
} from '../src/components/times.ts';
import { hasTime, withTime } from '../src/query-text/edit-query.ts';

const shown = (text: string, options?: { lines: boolean }) =>
  splitHidden(text, options)
    .map((part) => (part.hidden ? `[${part.sign}]` : part.text))
    .join('');

test('characters that turn the text around, or are invisible, are shown as their code', () => {
  expect(shown('user\u202etxt.exe')).toBe('user[U+202E]txt.exe');
  expect(shown('a\u200bb\u2066c\u2069')).toBe('a[U+200B]b[U+2066]c[U+2069]');
  expect(shown('\u0000\u001b[31m')).toBe('[U+0000][U+001B][31m');
  expect(shown('\ud800')).toBe('[U+D800]');
  expect(shown('tag\u{e0041}')).toBe('tag[U+E0041]');
});

test('line ends and tabs are signs in a name, and themselves in a long text', () => {
  expect(shown('a\nb\tc')).toBe('a[↵]b[⇥]c');
  expect(shown('a\nb\tc\r', { lines: true })).toBe('a\nb\tc[␍]');
});

test('letters of any script and joined pictures stay as they are', () => {
  for (const text of ['Zoë Ångström', 'שלום', '日本語', '👩‍🚀 flew', '']) expect(shown(text)).toBe(text);
  expect(shown('a\u200db')).toBe('a[U+200D]b');
});

const linesOf = (text: string, maxLength: number) => {
  const starts = finish(lineStarts(text, maxLength));
  return starts.map((_, index) => lineOf(text, starts, index));
};

test('a line that is longer than allowed continues on the next one, and one of exactly that length does not', () => {
  expect(linesOf('abc\n\nabcd\nabcdefgh\n', 4)).toEqual(['abc', '', 'abcd', 'abcd', 'efgh', '']);
  expect(linesOf('', 4)).toEqual(['']);
});

test('a character of two units stays whole', () => {
  expect(linesOf('abc😀de', 4)).toEqual(['abc', '😀de']);
});

test('a duration is a number and the largest unit that tells it whole, and is sent as ISO 8601', () => {
  const stored = ['P1D', 'P2W', 'PT90M', 'PT3600S', 'P1DT12H', 'PT1M30S', 'P14D'];
  expect(stored.map((iso) => Object.values(durationOf(iso)).join(' '))).toEqual([
    '1 days',
    '2 weeks',
    '90 minutes',
    '1 hours',
    '36 hours',
    '90 seconds',
    '14 days',
  ]);
  expect(stored.map((iso) => isoOf(durationOf(iso)))).toEqual([
    'P1D',
    'P2W',
    'PT90M',
    'PT1H',
    'PT36H',
    'PT90S',
    'P14D',
  ]);
  expect(isoOf({ count: ' 7 ', unit: 'hours' })).toBe('PT7H');
  expect(isoOf(noDuration)).toBeUndefined();
  expect(['P1D', 'PT90M'].map(durationWords)).toEqual(['1 day', '90 minutes']);
});

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
