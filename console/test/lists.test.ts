import { finish, type JsonValue, parseJson, stringifyJson } from '@annals/client/json';
import { expect, test } from 'vitest';
import { differences, leavesOf } from '../src/compare/compare-documents.ts';
import { isObjectList, objectLists } from '../src/compare/list-table.tsx';
import { hasElements, withLists } from '../src/history/entry-lists.ts';

const items = (count: number, member = '1') =>
  parseJson(`[${Array.from({ length: count }, () => `{"n":${member}}`).join(',')}]`);
const members = (count: number) => `[{${Array.from({ length: count }, (_, index) => `"m${index}":1`).join(',')}}]`;

test('a list of up to 500 objects with up to 50 members is a table, whose members have up to 20 values inside', () => {
  expect([isObjectList(items(500)), isObjectList(items(501))]).toEqual([true, false]);
  expect([members(50), members(51)].map((text) => isObjectList(parseJson(text)))).toEqual([true, false]);
  const inside = (count: number) => `[${Array.from({ length: count }, () => '1').join(',')}]`;
  expect([20, 21].map((count) => isObjectList(items(1, inside(count))))).toEqual([true, false]);
  for (const text of ['[]', '[1]', '[{"n":1},2]', '[{}]', '[[1]]', '{"n":1}', 'null'])
    expect(isObjectList(parseJson(text)), text).toBe(false);
  expect(objectLists(undefined, items(1))).toMatchObject({ before: [] });
  expect(objectLists(parseJson('[]'), undefined)).toBeUndefined();
  expect(objectLists(parseJson('[1]'), items(1))).toBeUndefined();
});

const written = (value: JsonValue | undefined) => (value === undefined ? '-' : stringifyJson(value));

test('a list of objects that differs is one difference, a list within it is no other', () => {
  const of = (quantity: number, tags: string) =>
    parseJson(`{"a":1,"items":[{"sku":"x","q":${quantity},"parts":[{"p":${tags}}]}],"z":${quantity}}`);
  const found = finish(differences(of(1, '1'), of(2, '2')));
  expect(found.map(([path]) => path)).toEqual(['items', 'z']);
  expect(written(found[0]?.[1].after)).toBe('[{"sku":"x","q":2,"parts":[{"p":2}]}]');
  expect(finish(differences(of(1, '1'), of(1, '1')))).toEqual([]);
  expect(finish(leavesOf(of(1, '1'), true)).map(([path]) => path)).toEqual(['a', 'items', 'z']);
  expect(finish(leavesOf(of(1, '1'))).map(([path]) => path)).toContain('items.0.q');
});

test('single members of a list in an entry become the list, where the documents confirm each of them', () => {
  const [before, after] = ['{"items":[{"q":1.10},{"q":2}],"n":1}', '{"items":[{"q":1.1},{"q":3}],"n":2}'].map((json) =>
    parseJson(json),
  );
  const paths = (json: string) =>
    new Map(
      [...(parseJson(json) as Map<string, Map<string, JsonValue>>)].map(([path, sides]) => [
        path,
        { before: sides.get('before'), after: sides.get('after') },
      ]),
    );
  const recorded = paths(
    '{"items.0.q":{"before":1.10,"after":1.1},"n":{"before":1,"after":2},"items.1.q":{"before":2,"after":3}}',
  );
  expect(hasElements(recorded)).toBe(true);
  expect(hasElements(paths('{"tags.1":{"after":1},"n":{"after":2}}'))).toBe(false);
  const shown = withLists(recorded, before, after);
  expect([...shown].map(([path, change]) => [path, written(change.after)])).toEqual([
    ['items', '[{"q":1.1},{"q":3}]'],
    ['n', '2'],
  ]);
  // Other digits are another value.
  const others = paths('{"items.0.q":{"before":1.1,"after":1.1},"items.1.q":{"before":2,"after":3}}');
  expect([...withLists(others, before, after).keys()]).toEqual(['items.0.q', 'items.1.q']);
  expect([...withLists(recorded, undefined, undefined).keys()]).toEqual([...recorded.keys()]);
});
