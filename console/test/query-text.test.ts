import { JsonNumber } from '@annals/client/json';
import { expect, test } from 'vitest';
import { scanQuery } from '../../src/query/scan.ts';
import { writtenValue } from '../../src/query/written.ts';
import { fileNameOf } from '../src/components/buttons.tsx';
import { hasWords, wordPattern } from '../src/find/found.ts';
import { queryOfDocumentField, queryOfField, queryOfStep, queryOfValue } from '../src/history/document-queries.ts';
import {
  chosenValues,
  hasFromBound,
  nameOfPath,
  togglePath,
  toggleValue,
  topTerms,
  valuesOf,
  withoutTerm,
  withTime,
  withValues,
  writtenItems,
  writtenPath,
  writtenScalar,
} from '../src/query-text/edit-query.ts';

const termsOf = (q: string) => topTerms(q).map(({ field, valueStart, end }) => [field, q.slice(valueStart, end)]);

test('a file is named after what is in it, and no shell takes the name for more', () => {
  const at = '2026-03-04T10:11:12.345Z';
  const nameOf = (entity: string, entityId: string) => fileNameOf([entity, entityId, at], 'proof');
  const time = '2026-03-04T10-11-12.345Z.proof';
  expect(nameOf('order', 'ORD-1')).toBe(`order-ORD-1-${time}`);
  expect(nameOf('--key', '$(rm -rf ~)/../"x" \u202e')).toBe(`key-rm-rf-..-x-${time}`);
  expect(nameOf('../étage', '日本')).toBe(`étage-日本-${time}`);
  expect(nameOf('', '')).toBe(time);
  expect(nameOf('a'.repeat(1_000), '😀'.repeat(10))).toBe(`${'a'.repeat(60)}-${time}`);
});

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

test.each([
  ['actorId:exists', 'actorId', 'u-17', 'actorId:(exists, u-17)'],
  ['actorId:(exists, u-17)', 'actorId', 'u-17', 'actorId:exists'],
  ['onBehalfOf:(Acme, missing)', 'onBehalfOf', 'missing', 'onBehalfOf:(Acme, missing, "missing")'],
  ['correlationId:("missing", missing)', 'correlationId', 'missing', 'correlationId:missing'],
  ['context."user-agent":missing', 'context."user-agent"', 'curl/8', 'context."user-agent":(missing, curl/8)'],
  ['actor:missing', 'actor', 'Ada', 'actor:("missing", Ada)'],
])('in %s a click on %s %s leaves conditions as they are', (q, field, value, expected) => {
  expect(toggleValue(q, field, value)).toBe(expected);
});

test('conditions are no values', () => {
  expect(chosenValues('actorId:exists', 'actorId')).toEqual([]);
  expect(chosenValues('onBehalfOfId:(c-1, missing, "exists")', 'onBehalfOfId')).toEqual(['c-1', 'exists']);
  expect(chosenValues('actor:(exists, missing)', 'actor')).toEqual(['exists', 'missing']);
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

const quantity = { entity: 'order', entityId: '7', path: 'items.0.quantity' };

test('the name of a path has a star for each place in an array', () => {
  expect(nameOfPath('items.0.lines.12')).toBe('items.*.lines.*');
  expect(nameOfPath('0.1')).toBe('*.*');
  // No places: a leading zero, a part of a key, a dot that belongs to the key.
  for (const path of ['a.01', 'x2.y', 'a\\.0', '']) expect(nameOfPath(path), path).toBe(path);
});

test('a path is written so that it means itself, and a star any place', () => {
  expect(writtenPath('price.amount')).toBe('price.amount');
  expect(writtenPath('unit price: net')).toBe('"unit price: net"');
  expect(writtenPath('a*b')).toBe('"a*b"');
  expect(writtenPath('items.*.quantity')).toBe('items.*.quantity');
  expect(writtenPath('items.*.unit price: net')).toBe('~"^items\\\\.[0-9]+\\\\.unit price: net$"');
});

test('a scalar is written as the value that it is, and what no query can ask for is not offered', () => {
  const written: [Parameters<typeof writtenScalar>[0], string | undefined][] = [
    ['PAID', 'PAID'],
    ['Doe, Jane', '"Doe, Jane"'],
    ['5', '"5"'],
    ['null', '"null"'],
    ['exists', '"exists"'],
    ['', '""'],
    [null, 'null'],
    [true, 'true'],
    [new JsonNumber('1.10'), '1.10'],
    ['********', undefined],
    ['x'.repeat(401), undefined],
    ['\0', undefined],
    ['\ud800', undefined],
    [[], undefined],
    [new Map(), undefined],
  ];
  for (const [value, text] of written) expect(writtenScalar(value), JSON.stringify(value)).toBe(text);
});

test('a field leads to its changes everywhere, in its document, to its value and to where it became lower', () => {
  expect(queryOfField(quantity)).toBe('entity:order path:items.*.quantity');
  expect(queryOfDocumentField(quantity)).toBe(
    'entity:order entityId:7 path:items.0.quantity occurredAt:>="1970-01-01T00:00:00Z"',
  );
  expect(queryOfValue(quantity, new JsonNumber('2'))).toBe(
    'entity:order entityId:7 compoundLogicalQuery:((change:elemMatch(path:items.0.quantity after:2)) OR ' +
      '(change:elemMatch(path:items.0.quantity before:2))) occurredAt:>="1970-01-01T00:00:00Z"',
  );
  expect(queryOfValue(quantity, [])).toBeUndefined();
  expect(queryOfStep(quantity, 'lower')).toBe('entity:order change:elemMatch(path:items.*.quantity is:lower)');
});

test('a click on a path adds it to the list or takes it away; a pattern is alone', () => {
  const both = togglePath(togglePath('type:update', 'stock'), 'items.*.quantity');
  expect(both).toBe('type:update path:(stock, items.*.quantity)');
  expect(writtenItems(both, 'path')).toEqual(['stock', 'items.*.quantity']);
  expect(togglePath(both, 'stock')).toBe('type:update path:items.*.quantity');
  expect(togglePath('path:items.*.quantity', 'items.*.quantity')).toBe('');
  expect(togglePath('path:stock', '~"^a$"')).toBe('path:~"^a$"');
  expect(togglePath('path:~"^a$" type:update', 'stock')).toBe('path:stock type:update');
});

test('each written word begins a word of the name, in any order and case', () => {
  for (const text of ['price', 'AMOUNT', 'am pri', 'price.amount', ''])
    expect(hasWords('price.amount', text), text).toBe(true);
  for (const text of ['rice', 'price x', 'amounts']) expect(hasWords('price.amount', text), text).toBe(false);
});

test('the pattern of a text matches where the text begins a word, and nothing in it is an operator', () => {
  // The service's (?i) is the flag of JavaScript.
  const matches = (text: string, name: string) => new RegExp(wordPattern(text).replace('(?i)', ''), 'iu').test(name);
  expect(matches('eche', 'Noor Echeberri')).toBe(true);
  expect(matches('noor e', 'Noor Echeberri')).toBe(true);
  expect(matches('jel', 'Zoë-Jelínková')).toBe(true);
  expect(matches('erri', 'Noor Echeberri')).toBe(false);
  expect(matches('r', 'Zoër')).toBe(false);
  expect(matches('a.b(c', 'a.b(c)')).toBe(true);
  expect(matches('a.b', 'axb')).toBe(false);
});
