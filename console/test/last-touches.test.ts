import { finish } from '@annals/client/json';
import { expect, test } from 'vitest';
import type { Entry } from '../src/api/history-reads.ts';
import { lastTouches } from '../src/document/last-touches.ts';

function change(number: number, ...paths: string[]) {
  const entry: Entry = {
    at: '2026-01-01T00:00:00.000Z',
    type: 'update',
    entity: 'order',
    entityId: '1',
    name: undefined,
    actor: `actor ${number}`,
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
  const touchOf = finish(
    lastTouches([
      change(4, 'items.0.price'),
      change(3, 'items'),
      change(2, 'a\\.b', 'status'),
      change(1, 'items.0.price', 'status', 'x'),
    ]),
  );
  const numbers = Object.fromEntries(
    ['items.0.price', 'items.1.price', 'items', 'status', 'a\\.b', 'a', 'x', 'y'].map((path) => [
      path,
      touchOf(path)?.number,
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
  expect(finish(lastTouches([change(2, ''), change(1, 'a')]))('a')?.number).toBe(2);
});
