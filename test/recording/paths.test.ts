import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseJson } from '../../src/core/json/parse.ts';
import { differenceOf, isUnchanged } from '../../src/recording/paths.ts';
import { anyPair, anyTree, written } from '../support/oracle/random-documents.ts';
import { referenceParse } from '../support/oracle/reference-json.ts';
import {
  canonical,
  compact,
  decoded,
  membersByName,
  referencePaths,
  type Tree,
} from '../support/oracle/reference-paths.ts';
import { trials } from '../support/oracle/trials.ts';

const node = (text: string | undefined) => (text === undefined ? undefined : parseJson(text));
const paths = (before: string | undefined, after: string | undefined) =>
  differenceOf(node(before), node(after), { isWhole: false }).paths;

describe('what differs', () => {
  test('objects are walked, keys are joined by dots, and only what differs appears', () => {
    expect(paths('{"a":{"b":1,"c":2},"d":3}', '{"a":{"b":4,"c":2},"d":3}')).toBe('{"a.b":{"before":1,"after":4}}');
  });

  test('a dot or a backslash inside a key is escaped by a backslash', () => {
    expect(paths(undefined, String.raw`{"a.b":{"c\\d":1}}`)).toBe(String.raw`{"a\\.b.c\\\\d":{"after":1}}`);
    expect(paths(undefined, String.raw`{"\u0061\u002eb":1}`)).toBe(String.raw`{"a\\.b":{"after":1}}`);
  });

  test('a create has after only and a delete before only', () => {
    expect(paths(undefined, '{"a":1,"b":{"c":null}}')).toBe('{"a":{"after":1},"b.c":{"after":null}}');
    expect(paths('{"a":1,"b":{"c":null}}', undefined)).toBe('{"a":{"before":1},"b.c":{"before":null}}');
  });

  test('null is a value, absence is not', () => {
    expect(paths('{"a":null}', '{}')).toBe('{"a":{"before":null}}');
    expect(paths('{"a":null}', '{"a":0}')).toBe('{"a":{"before":null,"after":0}}');
    expect(paths('null', undefined)).toBe('{"":{"before":null}}');
    expect(paths(undefined, undefined)).toBe('{}');
  });

  test('a value that changes its kind is one path, whole', () => {
    expect(paths('{"a":{"b":{"c":1}}}', '{"a":{"b":[1]}}')).toBe('{"a.b":{"before":{"c":1},"after":[1]}}');
    expect(paths('{"a":"1"}', '{"a":1}')).toBe('{"a":{"before":"1","after":1}}');
    expect(paths('{"a":1}', '[1]')).toBe('{"":{"before":{"a":1},"after":[1]}}');
  });

  test('an empty object or array is a leaf', () => {
    expect(paths(undefined, '{"a":{},"b":{"c":[]}}')).toBe('{"a":{"after":{}},"b.c":{"after":[]}}');
    expect(paths('{"a":{}}', '{"a":[]}')).toBe('{"a":{"before":{},"after":[]}}');
    expect(paths(undefined, '{ }')).toBe('{"":{"after":{}}}');
  });

  test('an object that is filled or emptied is walked', () => {
    expect(paths('{"a":{}}', '{"a":{"b":1}}')).toBe('{"a.b":{"after":1}}');
    expect(paths('{"a":1}', '{}')).toBe('{"a":{"before":1}}');
  });

  test('a document that is no object has the empty path', () => {
    expect(paths('1', '2')).toBe('{"":{"before":1,"after":2}}');
    expect(paths('[1,2,3]', '[1,2,4]')).toBe('{"":{"before":[1,2,3],"after":[1,2,4]}}');
    expect(paths(undefined, '[{"a":1}]')).toBe('{"":{"after":[{"a":1}]}}');
    expect(paths('[1]', '[1.0]')).toBe('{}');
  });

  test('what appears or vanishes is walked to its leaves', () => {
    expect(paths('{"a":{"b":{"c":1,"d":2}}}', '{"e":{"f":3}}')).toBe(
      '{"a.b.c":{"before":1},"a.b.d":{"before":2},"e.f":{"after":3}}',
    );
  });

  test('keys that objects inherit elsewhere are data, and so is the empty key', () => {
    expect(paths('{"__proto__":1}', '{"__proto__":2,"":{"constructor":3}}')).toBe(
      '{"__proto__":{"before":1,"after":2},".constructor":{"after":3}}',
    );
  });

  test('the last of duplicate keys counts', () => {
    expect(paths('{"a":1,"b":0,"a":2}', '{"b":0,"a":2.0}')).toBe('{}');
    expect(paths(undefined, '{"a":{"x":1},"a":5}')).toBe('{"a":{"after":5}}');
    expect(paths('{"a":"s"}', String.raw`{"a":{"x":[1,{"y":1,"\u0079":2}]}}`)).toBe(
      String.raw`{"a":{"before":"s","after":{"x":[1,{"\u0079":2}]}}}`,
    );
  });

  test('values keep their source text, without the blanks between them', () => {
    const after = String.raw`{"a":9007199254740993,"b":1.10,"c":"\u0041\/","d":[ 1.50 , { "x" : -0.0E+1 } ]}`;
    expect(paths(undefined, after)).toBe(
      String.raw`{"a":{"after":9007199254740993},"b":{"after":1.10},"c":{"after":"\u0041\/"},"d":{"after":[1.50,{"x":-0.0E+1}]}}`,
    );
  });
});

describe('arrays', () => {
  test('one changed element of a long array is recorded by its position', () => {
    const before = '{"items":[{"quantity":1,"sku":"a"},{"quantity":2,"sku":"b"},{"quantity":3,"sku":"c"}]}';
    expect(paths(before, before.replace('3,', '4,'))).toBe('{"items.2.quantity":{"before":3,"after":4}}');
  });

  test('the whole array stands for its elements where that takes fewer bytes', () => {
    expect(paths('{"a":[1,2,3]}', '{"a":[4,5,6]}')).toBe('{"a":{"before":[1,2,3],"after":[4,5,6]}}');
    expect(paths(undefined, '{"tags":["x","y"]}')).toBe('{"tags":{"after":["x","y"]}}');
  });

  test('the whole array where both take the same, which one element of one digit does', () => {
    expect(paths(undefined, '{"a":[1]}')).toBe('{"a":{"after":[1]}}');
    expect(paths('{"a":[]}', '{"a":[1]}')).toBe('{"a.0":{"after":1}}');
  });

  test('commas between members do not count, but their colons do', () => {
    const single = '"a.0":{"before":1,"after":2}"a.1":{"before":1,"after":2}'.length;
    const wholeOf = (filler: string) => `"a":{"before":[1,1,1${filler}],"after":[2,2,1${filler}]}`;
    // A digit more in the filler is a byte more on both sides, so an odd rest is made up for by `after` alone.
    const missing = single - wholeOf('').length;
    expect(missing % 2).toBe(0);
    const same = '0'.repeat(missing / 2);
    const pathsWith = (filler: string) => paths(`{"a":[1,1,1${filler}]}`, `{"a":[2,2,1${filler}]}`);
    expect(pathsWith(same)).toBe(`{${wholeOf(same)}}`);
    expect(pathsWith(`${same}0`)).toMatch(/^\{"a\.0"/);
  });

  test('bytes are those of UTF-8', () => {
    const single = '"a.0":{"before":1,"after":2}"a.1":{"before":1,"after":2}'.length;
    const whole = '"a":{"before":[1,1,""],"after":[2,2,""]}'.length;
    const characters = Math.floor((single - whole) / 4);
    const pairOf = (text: string) => paths(`{"a":[1,1,"${text}"]}`, `{"a":[2,2,"${text}"]}`);
    expect(pairOf('é'.repeat(characters))).toMatch(/^\{"a":/);
    expect(pairOf('é'.repeat(characters + 1))).toMatch(/^\{"a\.0":/);
  });

  test('inner arrays are decided before the arrays that contain them', () => {
    const before = '{"m":[[1,2,3],[4,5,6],["a long text that nobody wants to see twice in one change entry"]]}';
    const after = before.replace('1,2,3', '7,8,9');
    expect(paths(before, after)).toBe('{"m.0":{"before":[1,2,3],"after":[7,8,9]}}');
  });
});

describe('laws', () => {
  test('any pair of documents gives what the plain reading of the rule gives', () => {
    fc.assert(
      fc.property(anyPair, fc.nat(), ([before, after], seed) => {
        const text = (tree: Tree | undefined, own: number) => tree && written(tree, own);
        const result = paths(text(before, seed), text(after, seed >>> 3));
        const members = membersOf(referenceParse(result)).map(([key, value]) => `${key.text}:${compact(value)}`);
        expect(members.sort()).toEqual(referencePaths(before, after).sort());
      }),
      { numRuns: trials(100) },
    );
  });

  test('documents are unchanged exactly where nothing differs by value, whatever the order and the spelling', () => {
    fc.assert(
      fc.property(anyTree, anyTree, fc.nat(), (one, other, seed) => {
        expect(isUnchanged(parseJson(written(one, seed)), parseJson(written(one)))).toBe(true);
        expect(isUnchanged(parseJson(written(one)), parseJson(written(other, seed)))).toBe(
          canonical(one) === canonical(other),
        );
      }),
      { numRuns: trials(100) },
    );
  });

  test('the paths applied to the document before give the one after, but for containers left empty', () => {
    fc.assert(
      fc.property(anyPair, ([before, after]) => {
        // A change at "" alone is ambiguous: of the whole document, or of its empty key.
        fc.pre(![before, after].some((tree) => tree && 'members' in tree && membersByName(tree).has('')));
        const result = paths(before && written(before), after && written(after));
        expect(withoutEmpty(applied(before, referenceParse(result)))).toEqual(withoutEmpty(nested(after)));
      }),
      { numRuns: trials(100) },
    );
  });
});

function membersOf(tree: Tree) {
  if (!('members' in tree)) throw new Error('no object');
  return tree.members;
}

/** Objects and arrays as maps, scalars as text. */
type Nested = Map<string, Nested> | string;

function nested(tree: Tree | undefined): Nested {
  if (tree === undefined) return new Map();
  if ('elements' in tree) return new Map(tree.elements.map((element, index) => [String(index), nested(element)]));
  if ('members' in tree) return new Map([...membersByName(tree)].map(([name, { value }]) => [name, nested(value)]));
  return canonical(tree);
}

function applied(before: Tree | undefined, changes: Tree): Nested {
  const root = new Map([['', nested(before)]]);
  for (const [key, change] of membersOf(changes)) {
    let container: Map<string, Nested> = root;
    let last = '';
    for (const name of namesOf(decoded(key))) {
      const below = container.get(last);
      const next = below instanceof Map ? below : new Map<string, Nested>();
      container.set(last, next);
      container = next;
      last = name;
    }
    const after = membersOf(change).find(([side]) => decoded(side) === 'after');
    if (after === undefined) container.delete(last);
    else container.set(last, nested(after[1]));
  }
  return root.get('') ?? new Map();
}

function namesOf(path: string): string[] {
  if (path === '') return [];
  const names = `${path}.`.matchAll(/((?:[^.\\]|\\.)*)\./gsu);
  return [...names].map(([, name = '']) => name.replace(/\\(.)/gs, '$1'));
}

function withoutEmpty(tree: Nested): Nested {
  if (typeof tree === 'string') return tree;
  const members = [...tree].map(([key, value]): [string, Nested] => [key, withoutEmpty(value)]);
  return new Map(members.filter(([, value]) => typeof value === 'string' || value.size > 0));
}
