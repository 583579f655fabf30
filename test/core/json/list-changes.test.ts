import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { compareLists } from '../../../src/core/json/list-changes.ts';

type Item = Record<string, unknown>;

const compared = (before: readonly Item[], after: readonly Item[]) =>
  compareLists(
    before.map((item) => new Map(Object.entries(item))),
    after.map((item) => new Map(Object.entries(item))),
    (value) => JSON.stringify(value),
  );

const told = (before: readonly Item[], after: readonly Item[]) =>
  compared(before, after).map(({ kind, isMoved, from = '-', to = '-', changed }) =>
    [`${from}>${to}`, kind, ...(isMoved ? ['moved'] : []), ...changed].join(' '),
  );

test('elements with an id are matched by it: one that is removed moves no other', () => {
  const [a, b, c] = [
    { id: 1, n: 1 },
    { id: 2, n: 1 },
    { id: 3, n: 1 },
  ];
  expect(told([a, b, c], [b, c])).toEqual(['0>- removed', '1>0 same', '2>1 same']);
  expect(told([a, b, c], [a, c, { id: 4, n: 1 }])).toEqual(['0>0 same', '1>- removed', '2>1 same', '->2 added']);
  expect(told([a, b, c], [c, a, b])).toEqual(['2>0 moved moved', '0>1 same', '1>2 same']);
  expect(told([a, b, c], [{ ...c, n: 2 }, a, b])).toEqual(['2>0 changed moved n', '0>1 same', '1>2 same']);
  expect(told([a, b], [a, { id: 2, x: 1 }])).toEqual(['0>0 same', '1>1 changed n x']);
  expect(told([], [a])).toEqual(['->0 added']);
  expect(told([a], [])).toEqual(['0>- removed']);
});

test('any text that tells elements apart is a key where half of them keep it; else they are matched by place', () => {
  const of = (product: string, quantity: number) => ({ product, quantity });
  expect(told([of('cup', 1), of('jug', 2)], [of('jug', 2)])).toEqual(['0>- removed', '1>0 same']);
  expect(told([of('cup', 1)], [of('jug', 1)])).toEqual(['0>0 changed product']);
  // The same one twice is no key, nor is a number that is no id.
  expect(told([of('cup', 1), of('cup', 2)], [of('cup', 2)])).toEqual(['0>0 changed quantity', '1>- removed']);
  expect(told([{ n: 1 }, { n: 2 }], [{ n: 2 }])).toEqual(['0>0 changed n', '1>- removed']);
  // An id without a value, and one that is an object, are none.
  expect(told([{ id: null, n: 1 }], [{ id: null, n: 2 }])).toEqual(['0>0 changed n']);
  expect(told([{ id: 1, n: 1 }, { n: 2 }], [{ n: 2 }])).toEqual(['0>0 changed id n', '1>- removed']);
});

test('numbers are told apart by their text', () => {
  const rows = compareLists([new Map([['n', '1.10']])], [new Map([['n', '1.1']])], (text) => text);
  expect(rows.map(({ kind }) => kind)).toEqual(['changed']);
});

test('each element of both lists is in one row, rows follow the later list, and as few as possible are moved', async () => {
  const ids = fc.uniqueArray(fc.integer({ min: 0, max: 12 }), { maxLength: 9 });
  await fc.assert(
    fc.asyncProperty(ids, ids, async (was, is) => {
      const rows = compared(
        was.map((id) => ({ id })),
        is.map((id) => ({ id })),
      );
      expect(rows.flatMap(({ to }) => to ?? [])).toEqual(is.map((_, place) => place));
      expect(rows.flatMap(({ from }) => from ?? []).sort((a, b) => a - b)).toEqual(was.map((_, place) => place));
      const kept = is.filter((id) => was.includes(id));
      expect(rows.filter(({ kind }) => kind === 'added')).toHaveLength(is.length - kept.length);
      expect(rows.filter(({ isMoved }) => isMoved)).toHaveLength(kept.length - longestCommon(was, is));
    }),
  );
});

/** The length of the longest sequence that both lists have in their order. */
function longestCommon(a: readonly number[], b: readonly number[]): number {
  const [first, ...rest] = a;
  if (first === undefined) return 0;
  const place = b.indexOf(first);
  const without = longestCommon(rest, b);
  return place < 0 ? without : Math.max(without, 1 + longestCommon(rest, b.slice(place + 1)));
}
