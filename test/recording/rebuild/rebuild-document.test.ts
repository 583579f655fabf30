import { describe, expect, test } from 'vitest';
import { parseJson } from '../../../src/core/json/parse.ts';
import { type ChangeType, differenceOfChange } from '../../../src/recording/change.ts';
import { maxLaterEntries, rebuildDocument } from '../../../src/recording/rebuild/document-rebuild.ts';
import type { RebuildEntry } from '../../../src/recording/rebuild/entry-changes.ts';

function entry(type: ChangeType, before: string | undefined, after: string | undefined): RebuildEntry {
  const node = (text: string | undefined) => (text === undefined ? undefined : parseJson(text));
  const difference = differenceOfChange(type, node(before), node(after));
  if (difference === undefined) throw new Error('nothing changed');
  return { type, paths: difference.paths, marks: difference.marks ?? null, isMarked: true };
}
const old = (marked: RebuildEntry): RebuildEntry => ({ ...marked, marks: null, isMarked: false });

describe('marks', () => {
  const marksOf = (type: ChangeType, before: string | undefined, after: string | undefined) =>
    entry(type, before, after).marks;

  test('are null for what most changes are', () => {
    expect(marksOf('create', undefined, '{"a":[{"b":1}],"c":{"d":{}}}')).toBe(null);
    expect(marksOf('update', '{"a":{"b":1},"items":[{"n":1}]}', '{"items":[{"n":2}]}')).toBe(null);
    expect(marksOf('delete', '{"a":1}', undefined)).toBe(null);
  });

  test('distinguish changes that have the same paths', () => {
    expect(marksOf('update', '{"a":{"b":1}}', '{"a":{}}')).toBe('{"kept":["a"]}');
    expect(marksOf('update', '{"a":{}}', '{"a":{"b":1}}')).toBe('{"wasEmpty":["a"]}');
    expect(marksOf('create', undefined, '{"a":{"0":{"b":1}}}')).toBe('{"objects":[0,"a"]}');
    expect(marksOf('create', undefined, '{"a":{"0":{"1":2},"2":{"3":4}}}')).toBe('{"objects":[0,"a",1,"0",1,"2"]}');
    expect(marksOf('create', undefined, '{"":1}')).toBe('{"root":true}');
    expect(marksOf('update', undefined, '{"b":1}')).toBe('{"whole":true}');
  });

  test('of a document with 10,000 levels of keys like positions are as short as the document', () => {
    const levels = 9_999;
    const deep = `${'{"0":'.repeat(levels)}1${'}'.repeat(levels)}`;
    const create = entry('create', undefined, deep);
    expect(create.marks?.length).toBeLessThan(20 * levels);
    expect(rebuildDocument([create], [])).toEqual({ exists: true, complete: true, document: deep });
  });
});

describe('a document without an anchor', () => {
  const update = entry('update', '{"a":1,"b":1,"c":[1],"d":5}', '{"a":2,"b":1,"c":[1],"d":5}');
  const next = entry('update', '{"a":2,"b":1,"c":[1],"d":5}', '{"a":3,"b":{"x":1},"c":[1],"e":1,"d":5}');

  test('takes what it does not know from later entries, and is not complete', () => {
    expect(rebuildDocument([update], [next])).toEqual({ exists: true, complete: false, document: '{"a":2,"b":1}' });
    const last = entry('delete', '{"a":3,"b":{"x":1},"c":[1],"e":1,"d":5}', undefined);
    const { document = '', ...rest } = rebuildDocument([update], [next, last]);
    expect(rest).toEqual({ exists: true, complete: false });
    expect(JSON.parse(document)).toEqual({ a: 2, b: 1, c: [1], d: 5 });
  });

  test('looks at 1,000 later entries and no more', () => {
    const filler = Array.from({ length: maxLaterEntries - 1 }, () => entry('update', '{"z":1}', '{"z":2}'));
    const found = rebuildDocument([update], [...filler, next]).document;
    expect(JSON.parse(found ?? '')).toEqual({ a: 2, b: 1, z: 1 });
    const notFound = rebuildDocument([update], [...filler, entry('update', '{"y":1}', '{"y":2}'), next]).document;
    expect(JSON.parse(notFound ?? '')).toEqual({ a: 2, y: 1, z: 1 });
  });

  test('takes nothing from behind an entry that replaced the document as a whole', () => {
    const replaced = entry('update', '{"a":2,"b":1}', undefined);
    const behind = entry('update', '{"z":1}', '{"z":2}');
    const { document } = rebuildDocument([update], [replaced, behind]);
    expect(JSON.parse(document ?? '')).toEqual({ a: 2, b: 1 });
  });

  test('takes nothing from behind its delete', () => {
    const later = [entry('delete', '{"a":2,"b":1}', undefined), entry('update', '{"z":1}', '{"z":2}')];
    expect(JSON.parse(rebuildDocument([update], later).document ?? '')).toEqual({ a: 2, b: 1 });
  });

  test('is never complete, whatever its entries tell', () => {
    const steps = [update, next, entry('update', '{"z":1}', undefined)];
    for (const count of steps.keys()) expect(rebuildDocument(steps.slice(0, count + 1), [next]).complete).toBe(false);
  });

  test('did not exist before its create, and existed before its first update', () => {
    expect(rebuildDocument([], [entry('create', undefined, '{"a":1}')])).toMatchObject({ exists: false });
    expect(rebuildDocument([], [update])).toEqual({ exists: true, complete: false, document: '{"a":1}' });
  });

  test('existed where it has an entry before a create', () => {
    const create = entry('create', undefined, '{"z":1}');
    expect(rebuildDocument([update], [create])).toEqual({ exists: true, complete: false, document: '{"a":2}' });
    expect(rebuildDocument([], [update, create])).toEqual({ exists: true, complete: false, document: '{"a":1}' });
  });
});

test('a document with an anchor takes nothing from later entries, not even where its last entry is none', () => {
  const until = [entry('create', undefined, '{"a":1}'), entry('update', '{"a":1}', '{"a":2}')];
  expect(rebuildDocument(until, [entry('update', '{"z":1}', '{"z":2}')]).document).toBe('{"a":2}');
});

test('an entry that does not meet what stood there makes the document incomplete until the next anchor', () => {
  const create = entry('create', undefined, '{"a":1}');
  const mismatch = entry('update', '{"a":7}', '{"a":8}');
  expect(rebuildDocument([create, mismatch], [])).toEqual({ exists: true, complete: false, document: '{"a":8}' });
  const whole = entry('update', undefined, '{"b":1}');
  expect(rebuildDocument([create, mismatch, whole], [])).toEqual({ exists: true, complete: true, document: '{"b":1}' });
});

test('an entry from before marks is complete only where it can be read in one way', () => {
  const create = old(entry('create', undefined, '{"a":{"b":1},"c":2}'));
  expect(rebuildDocument([create], []).complete).toBe(true);
  expect(rebuildDocument([create, old(entry('update', '{"c":2}', '{"c":3}'))], []).complete).toBe(true);
  expect(rebuildDocument([create, old(entry('update', '{"a":{"b":1}}', '{}'))], []).complete).toBe(false);
  expect(rebuildDocument([create, old(entry('update', undefined, '{"d":1}'))], []).complete).toBe(false);
  expect(rebuildDocument([old(entry('create', undefined, '{"a":[{"b":1}]}'))], []).complete).toBe(false);
  expect(rebuildDocument([old(entry('create', undefined, '1'))], []).complete).toBe(false);
});

test('deleted documents are known not to exist, whatever is known of them', () => {
  expect(rebuildDocument([old(entry('delete', undefined, undefined))], [])).toEqual({
    exists: false,
    complete: true,
    document: undefined,
  });
});
