import { JsonNumber } from '@annals/client/json';
import { expect, test } from 'vitest';
import { queryOfDocumentField, queryOfField, queryOfStep, queryOfValue } from '../src/history/document-queries.ts';
import { nameOfPath, togglePath, writtenItems, writtenPath, writtenScalar } from '../src/query-text/edit-query.ts';

const field = { entity: 'order', entityId: '7', path: 'items.0.quantity' };

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
  expect(queryOfField(field)).toBe('entity:order path:items.*.quantity');
  expect(queryOfDocumentField(field)).toBe(
    'entity:order entityId:7 path:items.0.quantity occurredAt:>="1970-01-01T00:00:00Z"',
  );
  expect(queryOfValue(field, new JsonNumber('2'))).toBe(
    'entity:order entityId:7 compoundLogicalQuery:((change:elemMatch(path:items.0.quantity after:2)) OR ' +
      '(change:elemMatch(path:items.0.quantity before:2))) occurredAt:>="1970-01-01T00:00:00Z"',
  );
  expect(queryOfValue(field, [])).toBeUndefined();
  expect(queryOfStep(field, 'lower')).toBe('entity:order change:elemMatch(path:items.*.quantity is:lower)');
});

test('a click on a path adds it to the list or takes it away; a pattern stands alone', () => {
  const both = togglePath(togglePath('type:update', 'stock'), 'items.*.quantity');
  expect(both).toBe('type:update path:(stock, items.*.quantity)');
  expect(writtenItems(both, 'path')).toEqual(['stock', 'items.*.quantity']);
  expect(togglePath(both, 'stock')).toBe('type:update path:items.*.quantity');
  expect(togglePath('path:items.*.quantity', 'items.*.quantity')).toBe('');
  expect(togglePath('path:stock', '~"^a$"')).toBe('path:~"^a$"');
  expect(togglePath('path:~"^a$" type:update', 'stock')).toBe('path:stock type:update');
});
