import { describe, expect, test } from 'vitest';
import { chooseTimeZone } from '../src/components/times.ts';
import { divided, positionsAfterMove, queryOfView } from '../src/views/saved-views.ts';

chooseTimeZone('utc');
const now = Date.parse('2026-11-23T16:00:00.500Z');
const since = (time: string) => `entity:product occurredAt:>="${time}"`;

describe('the time of a query becomes the range of a view', () => {
  test.each([
    ['none: the last 30 days', 'entity:product', 'P30D'],
    ['the last 7 days, chosen a moment ago', since('2026-11-16T16:00:00Z'), 'P7D'],
    ['the last 7 days, chosen half an hour ago', since('2026-11-16T15:30:00Z'), 'P7D'],
    ['today', since('2026-11-23T00:00:00Z'), 'today'],
    ['yesterday', 'entity:product occurredAt:(>="2026-11-22T00:00:00Z" AND <"2026-11-23T00:00:00Z")', 'yesterday'],
    ['all time', since('1970-01-01T00:00:00Z'), 'all'],
    ['a moment', since('2026-11-16T14:00:00Z'), '2026-11-16T14:00:00Z/..'],
    [
      'two moments',
      'entity:product occurredAt:(>="2026-06-01T00:00:00Z" AND <"2026-07-01T00:00:00Z")',
      '2026-06-01T00:00:00Z/2026-07-01T00:00:00Z',
    ],
  ])('%s', (_case, q, range) => {
    expect(divided(q, now)).toEqual({ q: 'entity:product', range });
  });

  test.each([
    ['an end without a beginning', 'entity:product occurredAt:<"2026-06-01T00:00:00Z"', 'P30D'],
    ['another comparison', 'entity:product occurredAt:>"2026-06-01T00:00:00Z"', 'all'],
    ['two terms', 'occurredAt:>="2026-06-01T00:00:00Z" occurredAt:<"2026-07-01T00:00:00Z"', 'all'],
  ])('%s stays in the query, and the view asks the same', (_case, q, range) => {
    const view = divided(q, now);
    expect(view).toEqual({ q, range });
    expect(queryOfView(view, now)).toBe(q);
  });
});

describe('a view is, at a moment, the query', () => {
  test.each([
    ['P30D', 'entity:product'],
    ['P7D', since('2026-11-16T16:00:00Z')],
    ['P2D', since('2026-11-21T16:00:00Z')],
    ['today', since('2026-11-23T00:00:00Z')],
    ['all', since('1970-01-01T00:00:00Z')],
    ['2026-11-16T14:00:00Z/..', since('2026-11-16T14:00:00Z')],
    [
      '2026-06-01T00:00:00Z/2026-07-01T00:00:00Z',
      'entity:product occurredAt:(>="2026-06-01T00:00:00Z" AND <"2026-07-01T00:00:00Z")',
    ],
  ])('with the range %s', (range, q) => {
    expect(queryOfView({ q: 'entity:product', range }, now)).toBe(q);
  });

  test('with the last 30 days, though its own time begins earlier', () => {
    const own = 'occurredAt:>"2026-01-01T00:00:00Z"';
    expect(queryOfView({ q: own, range: 'P30D' }, now)).toBe(`${own} occurredAt:>="2026-10-24T16:00:00Z"`);
  });
});

describe('a view that moves', () => {
  const views = ['a', 'b', 'c', 'd'].map((id, index) => ({ id, position: index + 1 }));
  const after = (from: number, to: number, of = views) => {
    const moved = positionsAfterMove(of, from, to);
    return of.map((view) => moved.find(({ id }) => id === view.id) ?? view).toSorted((x, y) => x.position - y.position);
  };

  test('is between its neighbours, before all, or after all, and no other is written', () => {
    for (let from = 0; from < views.length; from += 1) {
      for (let to = 0; to < views.length; to += 1) {
        const expected = views.toSpliced(from, 1).toSpliced(to, 0, ...views.slice(from, from + 1));
        expect(after(from, to).map(({ id }) => id)).toEqual(expected.map(({ id }) => id));
        expect(positionsAfterMove(views, from, to)).toHaveLength(from === to ? 0 : 1);
      }
    }
  });

  test('always finds its place, however often views move between two others, or where places are equal', () => {
    let all = views;
    for (let round = 0; round < 200; round += 1) {
      const expected = [all[0], all[2], all[1], all[3]].map((view) => view?.id);
      all = after(2, 1, all);
      expect(all.map(({ id }) => id)).toEqual(expected);
    }
    const equal = views.map(({ id }) => ({ id, position: 1 }));
    expect(after(3, 1, equal).map(({ id }) => id)).toEqual(['a', 'd', 'b', 'c']);
  });
});
