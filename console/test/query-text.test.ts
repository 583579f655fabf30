import { expect, test } from 'vitest';
import { scanQuery } from '../../src/query/scan.ts';
import { writtenValue } from '../../src/query/written.ts';
import {
  chosenValues,
  hasFromBound,
  toggleValue,
  topTerms,
  valuesOf,
  withoutTerm,
  withTime,
  withValues,
} from '../src/query-text/edit-query.ts';

const termsOf = (q: string) => topTerms(q).map(({ field, valueStart, end }) => [field, q.slice(valueStart, end)]);

test('a bare value runs on over blanks and ends before the next field', () => {
  expect(termsOf('actor:Jane Doe type:update')).toEqual([
    ['actor', 'Jane Doe'],
    ['type', 'update'],
  ]);
  expect(termsOf('actor:type: x')).toEqual([['actor', 'type: x']]);
  expect(termsOf('entity:order  actor:John (Sales) type:(create, delete)')).toEqual([
    ['entity', 'order'],
    ['actor', 'John (Sales)'],
    ['type', '(create, delete)'],
  ]);
});

test('groups, item matches, ranges and patterns are one term each', () => {
  const q =
    'compoundLogicalQuery:((actor:~^J(an|oh)) OR (type:delete)) related:elemMatch(entity:c entityId:"a)b") occurredAt:(>="a" AND <"b")';
  expect(termsOf(q).map(([field]) => field)).toEqual(['compoundLogicalQuery', 'related', 'occurredAt']);
  expect(scanQuery(q).terms.map(({ field, depth }) => `${field} ${depth}`)).toContain('actor 2');
});

test('a text that is still being written is read as far as it goes', () => {
  for (const q of [
    'entity:',
    'entity:"',
    'type:(',
    'actor:~(',
    'related:elemMatch(',
    'occurredAt:>',
    '(((',
    ')))',
    ': :',
    '\\',
  ]) {
    const { tokens } = scanQuery(q);
    for (const [index, { start, end }] of tokens.entries()) {
      expect(end, q).toBeGreaterThan(start);
      expect(start, q).toBeGreaterThanOrEqual(tokens[index - 1]?.end ?? 0);
      expect(end, q).toBeLessThanOrEqual(q.length);
    }
  }
});

test('a click adds a value, takes it away again, and leaves the rest of the query', () => {
  const q = 'occurredAt:>"2026-01-01T00:00:00Z" compoundLogicalQuery:((type:create) OR (type:delete))';
  const once = toggleValue(q, 'actor', 'Jane Doe');
  expect(once).toBe(`${q} actor:Jane Doe`);
  const twice = toggleValue(once, 'actor', 'Doe, Jane');
  expect(twice).toBe(`${q} actor:(Jane Doe, "Doe, Jane")`);
  expect(chosenValues(twice, 'actor')).toEqual(['Jane Doe', 'Doe, Jane']);
  expect(toggleValue(toggleValue(twice, 'actor', 'Jane Doe'), 'actor', 'Doe, Jane')).toBe(q);
  expect(chosenValues(q, 'type')).toEqual([]);
});

test('values in quotes, escapes and lists are read as the texts that they mean', () => {
  const values = (q: string) => valuesOf(q, topTerms(q)[0] ?? { field: '', start: 0, valueStart: 0, end: 0, depth: 0 });
  expect(values('entityId:P\\*1')).toEqual(['P*1']);
  expect(values('entityId:"a\\"b\\\\"')).toEqual(['a"b\\']);
  expect(values('actor:(Doe\\, Jane, "x", y)')).toEqual(['Doe, Jane', 'x', 'y']);
  for (const pattern of ['actor:J*', 'actor:~J', 'occurredAt:>"a"', 'occurredAt:(>"a" AND <"b")', 'actor:']) {
    expect(values(pattern), pattern).toBeUndefined();
  }
});

test('without its entity an entityId goes, too', () => {
  const q = 'entity:order entityId:10001 type:update';
  const [entity] = topTerms(q);
  expect(entity === undefined ? '' : withoutTerm(q, entity)).toBe('type:update');
  expect(withValues(q, 'entity', [])).toBe('type:update');
});

test('a range of time replaces the one before', () => {
  const week = withTime('entity:order', { from: '2026-01-01T00:00:00Z', before: '2026-01-08T00:00:00Z' });
  expect(week).toBe('entity:order occurredAt:(>="2026-01-01T00:00:00Z" AND <"2026-01-08T00:00:00Z")');
  expect(hasFromBound(week)).toBe(true);
  expect(withTime(week, { before: '2026-01-08T00:00:00Z' })).toBe('entity:order occurredAt:<"2026-01-08T00:00:00Z"');
  expect(hasFromBound('compoundLogicalQuery:((occurredAt:>"x") OR (type:update))')).toBe(false);
  expect(withTime(week, {})).toBe('entity:order');
});

test('a value has quotes where it would be read as something else without them', () => {
  for (const plain of ['order', 'Jane Doe', 'P-1', 'Zoë', '10001']) expect(writtenValue(plain)).toBe(plain);
  for (const other of ['', ' a', 'a  b', 'type: x', 'A AND B', 'a*', '(x)', '~a', '"', '>1', 'a,b', '\\']) {
    expect(writtenValue(other).startsWith('"'), other).toBe(true);
  }
});
