import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Entry } from '../src/api/history-reads.ts';
import { groupsOf } from '../src/history/entry-groups.ts';

const entriesOf = (correlations: readonly (string | undefined)[]) =>
  correlations.map((correlationId, index) => ({ ref: `r${index}`, correlationId }) as Entry);

test('entries in a row with one correlation are a group, and one alone is none', () => {
  const groups = groupsOf(entriesOf(['a', 'a', undefined, undefined, 'b', 'a', 'a', 'a']));
  expect(groups.map(({ correlationId, entries }) => [correlationId, entries.length])).toEqual([
    ['a', 2],
    [undefined, 1],
    [undefined, 1],
    [undefined, 1],
    ['a', 3],
  ]);
});

test('the groups joined are the list in its order, and no two that touch have the same correlation', () => {
  const correlations = fc.array(fc.option(fc.constantFrom('a', 'b', 'c'), { nil: undefined }), { maxLength: 40 });
  fc.assert(
    fc.property(correlations, (all) => {
      const entries = entriesOf(all);
      const groups = groupsOf(entries);
      expect(groups.flatMap((group) => group.entries)).toEqual(entries);
      for (const [index, { entries: run }] of groups.entries()) {
        expect(new Set(run.map(({ correlationId }) => correlationId)).size).toBe(1);
        const next = groups[index + 1]?.entries[0]?.correlationId;
        expect(next === undefined || next !== run[0]?.correlationId).toBe(true);
      }
    }),
  );
});

test('a group keeps its key when a newer change of it comes', () => {
  const older = entriesOf(['b', 'a', 'a']);
  const newer = [{ ref: 'new', correlationId: 'b' } as Entry, ...older];
  expect(groupsOf(newer).map(({ key }) => key)).toEqual(groupsOf(older).map(({ key }) => key));
});
