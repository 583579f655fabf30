import { describe, expect, test } from 'vitest';
import { parseJson } from '../../../src/core/json/parse.ts';
import { compactText } from '../../../src/core/json/text.ts';
import { parsePathPattern } from '../../../src/core/path-pattern.ts';
import { applyRules, compileRules } from '../../../src/recording/mapping/apply-rules.ts';
import { differenceOf } from '../../../src/recording/paths.ts';

function rules({ mask = [], ignore = [] }: { mask?: string[]; ignore?: string[] }) {
  const patterns = (texts: string[]) =>
    texts.map((text) => {
      const pattern = parsePathPattern(text);
      if (typeof pattern === 'string') throw new Error(pattern);
      return pattern;
    });
  return compileRules({ mask: patterns(mask), ignore: patterns(ignore) });
}

function paths(
  of: { mask?: string[]; ignore?: string[] },
  before: string | undefined,
  after: string | undefined,
): string {
  const node = (text: string | undefined) => (text === undefined ? undefined : parseJson(text));
  const sides = applyRules(rules(of), { before: node(before), after: node(after) });
  return differenceOf(sides.before, sides.after, { isWhole: false }).paths;
}

function documentOf(of: { mask?: string[]; ignore?: string[] }, text: string): string {
  const { after } = applyRules(rules(of), { after: parseJson(text) });
  return after === undefined ? '' : compactText(after);
}

const masked = '"********"';

describe('a mask', () => {
  test('of a changed value appears on each side that exists, and of an equal value on neither', () => {
    const card = { mask: ['card'] };
    expect(paths(card, '{"card":1,"b":1}', '{"card":2,"b":1}')).toBe(`{"card":{"before":${masked},"after":${masked}}}`);
    expect(paths(card, '{"card":1,"b":1}', '{"card":1.0,"b":2}')).toBe('{"b":{"before":1,"after":2}}');
    expect(paths(card, '{"card":{"a":1,"b":2}}', '{"card":{"b":2,"a":1}}')).toBe('{}');
    expect(paths(card, '{}', '{"card":[1]}')).toBe(`{"card":{"after":${masked}}}`);
    expect(paths(card, '{"card":"x"}', undefined)).toBe(`{"card":{"before":${masked}}}`);
  });

  test('leaves a null as it is', () => {
    expect(paths({ mask: ['card'] }, '{"card":null}', '{"card":1}')).toBe(`{"card":{"before":null,"after":${masked}}}`);
    expect(paths({ mask: ['card'] }, '{"card":null}', '{"card":null}')).toBe('{}');
  });

  test('of a value that was written as the mask itself still shows that it differs', () => {
    expect(paths({ mask: ['a'] }, '{"a":"x"}', `{"a":${masked}}`)).toBe(`{"a":{"before":${masked},"after":${masked}}}`);
  });

  test('applies in an array that is recorded as one value, and an equal array is not recorded', () => {
    const before = '{"items":[{"card":1,"n":1},{"card":2,"n":2}]}';
    const shifted = '{"items":[{"card":2,"n":2},{"card":1,"n":1}]}';
    expect(paths({ mask: ['items.card'] }, before, before)).toBe('{}');
    const difference = paths({ mask: ['items.card'] }, before, shifted);
    expect(difference).not.toMatch(/"card":[12]/);
    expect(JSON.parse(difference).items.after).toEqual([
      { card: '********', n: 2 },
      { card: '********', n: 1 },
    ]);
  });
});

describe('a pattern', () => {
  test('with a star covers any one key or position, and what lies below', () => {
    expect(documentOf({ mask: ['card.*'] }, '{"card":{"n":1,"o":{"p":2}},"x":3}')).toBe(
      `{"card":{"n":${masked},"o":${masked}},"x":3}`,
    );
    expect(documentOf({ mask: ['card.*'] }, '{"card":[1,null]}')).toBe(`{"card":[${masked},null]}`);
    expect(documentOf({ mask: ['*.b'] }, '{"a":{"b":1},"c":{"b":2,"d":3}}')).toBe(
      `{"a":{"b":${masked}},"c":{"b":${masked},"d":3}}`,
    );
  });

  test('continues in each element of an array, and takes a number as a position', () => {
    expect(documentOf({ mask: ['a.b'] }, '{"a":[{"b":1},[{"b":2}],{"c":3}]}')).toBe(
      `{"a":[{"b":${masked}},[{"b":${masked}}],{"c":3}]}`,
    );
    expect(documentOf({ mask: ['a.1'] }, '{"a":[1,2,3]}')).toBe(`{"a":[1,${masked},3]}`);
  });

  test('has keys with dots, stars and backslashes by a backslash', () => {
    const document = '{"a.b":1,"*":2,"c\\\\d":3,"e":4}';
    expect(documentOf({ ignore: ['a\\.b', '\\*', 'c\\\\d'] }, document)).toBe('{"e":4}');
  });
});

describe('what is ignored', () => {
  test('is left out, at any depth, and alone it is no change', () => {
    const of = { ignore: ['updated', 'doc.etag'] };
    expect(paths(of, '{"updated":1,"doc":{"etag":1,"a":1}}', '{"updated":2,"doc":{"etag":2,"a":1}}')).toBe('{}');
    expect(documentOf(of, '{"updated":1,"doc":{"etag":1}}')).toBe('{"doc":{}}');
    expect(documentOf({ ignore: ['a'], mask: ['a'] }, '{"a":1,"b":2}')).toBe('{"b":2}');
  });

  test('every other value keeps its text', () => {
    expect(documentOf({ ignore: ['x'] }, '{"x":1, "a":1.10,"b":"\\u0041","c":[ 1e400 ],"10":-0}')).toBe(
      '{"a":1.10,"b":"\\u0041","c":[1e400],"10":-0}',
    );
  });

  test('is found 10,000 levels deep without a call for each', () => {
    const deep = `${'['.repeat(9_998)}{"card":1}${']'.repeat(9_998)}`;
    expect(documentOf({ mask: ['a.card'] }, `{"a":${deep}}`)).toContain(`{"card":${masked}}`);
  });
});
