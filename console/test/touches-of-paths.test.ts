import { finish } from '@annals/client/json';
import { expect, test } from 'vitest';
import type { Entry } from '../src/api/history-reads.ts';
import { touchesOfPaths } from '../src/document/touches-of-paths.ts';

function change(number: number, paths: readonly string[], actor = `actor ${number}`) {
  const entry: Entry = {
    at: '2026-01-01T00:00:00.000Z',
    type: 'update',
    entity: 'order',
    entityId: '1',
    name: undefined,
    actor,
    schemaVersion: undefined,
    paths: new Map(paths.map((path) => [path, {}])),
    related: [],
    context: undefined,
    ref: String(number),
    cut: new Set(),
  };
  return { number, entry };
}

test('the last change of a path, of what contains it, and of what it contains counts', () => {
  const touchesOf = finish(
    touchesOfPaths([
      change(4, ['items.0.price']),
      change(3, ['items']),
      change(2, ['a\\.b', 'status']),
      change(1, ['items.0.price', 'status', 'x']),
    ]),
  );
  const numbers = Object.fromEntries(
    ['items.0.price', 'items.1.price', 'items', 'status', 'a\\.b', 'a', 'x', 'y'].map((path) => [
      path,
      touchesOf(path)?.last.number,
    ]),
  );
  expect(numbers).toEqual({
    'items.0.price': 4,
    'items.1.price': 3,
    items: 4,
    status: 2,
    'a\\.b': 2,
    a: undefined,
    x: 1,
    y: undefined,
  });
});

test('a change of the whole document touches every path', () => {
  expect(finish(touchesOfPaths([change(2, ['']), change(1, ['a'])]))('a')?.last.number).toBe(2);
});

test('all who ever touched a path are told once, the latest first', () => {
  const touchesOf = finish(
    touchesOfPaths([
      change(5, ['price.amount'], 'Ada'),
      change(4, ['price.currency'], 'Grace'),
      change(3, ['price'], 'Ida'),
      change(2, ['price.amount'], 'Ada'),
      change(1, [''], 'Grace'),
    ]),
  );
  expect(touchesOf('price')?.actors).toEqual(['Ada', 'Grace', 'Ida']);
  expect(touchesOf('price.amount')?.actors).toEqual(['Ada', 'Ida', 'Grace']);
  expect(touchesOf('name')?.actors).toEqual(['Grace']);
});
