import { type JsonValue, parseJson, stringifyJson } from '@annals/client/json';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { changelogDialect } from '../../../src/history/search/plan/dialect.ts';
import { parseQuery } from '../../../src/query/parse.ts';
import { trials } from '../../../test/support/oracle/trials.ts';
import { queryOfSearch, type SearchContext } from '../src/search/query-of-search.ts';
import { type Search, searchOf } from '../src/search/search.ts';
import { startOfDay } from '../src/texts/clock.ts';
import { languageOf } from '../src/texts/language.ts';
import { fieldsOfChange } from '../src/view/fields-of-change.ts';

const context: SearchContext = {
  begun: Date.UTC(2026, 9, 1),
  today: '2026-10-01',
  zone: 'Europe/Berlin',
  meanings: () => ({ entities: [], paths: [], values: [] }),
  showsActors: true,
};
const queryOf = (search: Partial<Search>, more: Partial<SearchContext> = {}) =>
  String(queryOfSearch({ ...searchOf('all'), ...search }, { ...context, ...more }));

const fragment = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 8 }),
  fc.constantFrom(
    '"',
    '\\',
    '(',
    ')',
    ',',
    '*',
    '~',
    ' AND ',
    ' OR ',
    'actor:',
    'x" OR actor:*',
    '\u0000',
    '\u202e',
    '>',
    '1.50',
  ),
);
const typed = fc.array(fragment, { maxLength: 12 }).map((parts) => parts.join('').slice(0, 100));

/** The service takes no change with NUL. */
const recorded = typed.map((text) => text.replaceAll('\u0000', ''));

test('whatever people type, choose or are shown as words is a query that the service takes, within its limits', () => {
  fc.assert(
    fc.property(typed, recorded, recorded, fc.array(recorded, { maxLength: 20 }), (words, actor, entity, known) => {
      const meanings = () => ({ entities: known.slice(0, 2), paths: known, values: known.slice(0, 3) });
      const q = queryOf({ words, actor, entity, range: '30d' }, { meanings });
      parseQuery(q, changelogDialect);
    }),
    { numRuns: trials(100) },
  );
});

test('of long words of the host as many are looked for as a query has room for', () => {
  const namesOf = (count: number, length: number) =>
    Array.from({ length: count }, (_none, place) => `${place}${'x'.repeat(length)}`);
  const foundOf = (length: number) => {
    const names = namesOf(8, length);
    const q = queryOf({ words: 'paid' }, { meanings: () => ({ entities: [], paths: [], values: names }) });
    parseQuery(q, changelogDialect);
    return names.filter((name) => q.includes(name)).length;
  };
  expect(foundOf(200)).toBe(8);
  expect(foundOf(400)).toBe(4);
  expect(foundOf(5_000)).toBe(0);
});

test('five words of people are below the limits of a query, however long they are', () => {
  const words = ['"', '\\', '*', 'ß', '😀'].map((sign) => sign.repeat(19)).join(' ');
  const q = queryOf({ words, type: 'update', actor: '"'.repeat(100), entity: '\\'.repeat(100) });
  expect([...q].length).toBeLessThan(4_096);
  parseQuery(q, changelogDialect);
});

test('a person and a kind stand in the query as quoted values', () => {
  expect(queryOf({ actor: 'x" OR actor:"y', type: 'create' })).toBe(
    'occurredAt:>="1970-01-01T00:00:00Z" type:"create" actor:"x\\" OR actor:\\"y"',
  );
});

test('days begin and end where they do in the time zone, also where a clock is put forward at midnight', () => {
  expect(queryOf({ range: 'days', from: '2026-10-25', to: '2026-10-25' })).toBe(
    'occurredAt:>="2026-10-24T22:00:00.000Z" occurredAt:<"2026-10-25T23:00:00.000Z"',
  );
  expect(queryOf({ range: '7d' })).toBe('occurredAt:>="2026-09-24T22:00:00.000Z"');
  expect(new Date(startOfDay('2018-11-04', 'America/Sao_Paulo')).toISOString()).toBe('2018-11-04T03:00:00.000Z');
  expect(startOfDay('', 'UTC')).toBeNaN();
});

test('fields are named by the words of the host, the most exact ones first, and others are made readable', () => {
  const { field, entity, value } = languageOf('en', 'UTC', {
    fields: {
      'items.*.price': 'Price {n}',
      'order:status': 'State',
      status: 'Status',
      address: 'Address',
      constructor: 'C',
    },
    values: { status: { PAID: 'paid' } },
  });
  expect(field('order', 'items.3.price')).toBe('Price 4');
  expect(field('order', 'status')).toBe('State');
  expect(field('quote', 'status')).toBe('Status');
  expect(field('order', 'address.zipCode')).toBe('Address › Zip code');
  expect(field('order', 'size\\.cm')).toBe('Size.cm');
  expect(field('order', 'items.0')).toBe('Items › 1');
  expect(field('order', '__proto__.toString')).toBe('Proto › To string');
  expect(entity('WARRANTY_CLAIM')).toBe('Warranty claim');
  expect(value('order', 'status', 'PAID')).toBe('paid');
  expect(value('order', 'status', 'toString')).toBeUndefined();
});

test('a language or a time zone that nobody knows is left out', () => {
  const { counted, dayTitle } = languageOf('not a tag!', 'Nowhere/Land', undefined);
  expect(counted('changes', 1_234)).toBe('1,234 changes');
  expect(dayTitle(Date.UTC(2026, 9, 1), Date.UTC(2026, 9, 2))).toBe('Yesterday');
});

test('objects that were recorded as a whole are shown by their values, where these differ, and lists of objects as lists', () => {
  const paths = new Map([
    ['items', { before: parseJson('[{"id":1,"n":1.10},{"id":2}]'), after: parseJson('[{"id":1,"n":1.20}]') }],
    ['tags', { before: parseJson('[1.10,2]'), after: parseJson('[1.20,2]') }],
    ['size', { after: parseJson('{"w":1,"tags":[],"in":[{"a":1}]}') }],
    ['note', { before: 'a', after: null }],
    ['card', { before: '********', after: '********' }],
  ]);
  const fields = fieldsOfChange({ paths }).map(({ path, before, after }) => [path, ...[before, after].map(textOf)]);
  expect(fields).toEqual([
    ['items', '[{"id":1,"n":1.10},{"id":2}]', '[{"id":1,"n":1.20}]'],
    ['tags.0', '1.10', '1.20'],
    ['size.w', undefined, '1'],
    ['size.tags', undefined, '[]'],
    ['size.in', undefined, '[{"a":1}]'],
    ['note', '"a"', 'null'],
    ['card', '"********"', '"********"'],
  ]);
});

function textOf(value: JsonValue | undefined): string | undefined {
  return value === undefined ? undefined : stringifyJson(value);
}
