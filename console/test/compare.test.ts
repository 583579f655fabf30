import { finish, parseJson, stringifyJson } from '@annals/client/json';
import { expect, test } from 'vitest';
import { differences, leavesOf } from '../src/compare/compare-documents.ts';
import { compareWords, type WordRun, wordLimits } from '../src/compare/compare-words.ts';

const between = (before: string | undefined, after: string | undefined) =>
  finish(
    differences(
      before === undefined ? undefined : parseJson(before),
      after === undefined ? undefined : parseJson(after),
    ),
  ).map(([path, change]) => [
    path,
    ...[change.before, change.after].map((value) => (value === undefined ? '-' : stringifyJson(value))),
  ]);

test('two documents differ at the paths whose values differ, and numbers are compared as they are written', () => {
  expect(between('{"a":1.10,"b":{"c":[1,2]},"same":"x"}', '{"a":1.1,"b":{"c":[1,3,4]},"same":"x","new":null}')).toEqual(
    [
      ['a', '1.10', '1.1'],
      ['b.c.1', '2', '3'],
      ['b.c.2', '-', '4'],
      ['new', '-', 'null'],
    ],
  );
  expect(between('{"x":9007199254740992}', '{"x":9007199254740993}')).toHaveLength(1);
  expect(between('{"a":[],"b":{}}', '{"b":{},"a":[]}')).toEqual([]);
});

test('what changes its kind is one path, and a document that appears or vanishes is one, too', () => {
  expect(between('{"a":{"b":1}}', '{"a":[1]}')).toEqual([['a', '{"b":1}', '[1]']]);
  expect(between('{"a":{}}', '{"a":{"b":1}}')).toEqual([['a', '{}', '{"b":1}']]);
  expect(between(undefined, '{"a":1}')).toEqual([['', '-', '{"a":1}']]);
});

test('dots and backslashes within a key are written as in change entries', () => {
  expect(between('{"a.b":1,"c\\\\d":{"e":1}}', '{"a.b":2,"c\\\\d":{"e":2}}').map(([path]) => path)).toEqual([
    'a\\.b',
    'c\\\\d.e',
  ]);
  expect(finish(leavesOf(parseJson('{"a":{"b":[]},"c":[1,{"d":2}]}'))).map(([path]) => path)).toEqual([
    'a.b',
    'c.0',
    'c.1.d',
  ]);
});

test('a document that is nested very deep is compared', () => {
  const deep = (inner: string) => `${'['.repeat(20_000)}${inner}${']'.repeat(20_000)}`;
  expect(between(deep('1'), deep('2'))).toHaveLength(1);
});

const marked = (runs: readonly WordRun[] | undefined) =>
  runs?.map(({ text, changed }) => (changed ? `[${text}]` : text)).join('');

test('of two texts the words that differ are marked, and each side reads as it was', () => {
  const before = 'Ships within three days, to the EU only.';
  const after = 'Ships within two days, to the EU and Norway.';
  const compared = compareWords(before, after);
  expect(marked(compared?.before)).toBe('Ships within [three] days, to the EU [only].');
  expect(marked(compared?.after)).toBe('Ships within [two] days, to the EU [and Norway].');
  expect(compared?.before.map(({ text }) => text).join('')).toBe(before);
});

test('texts with too little in common, or too long ones, are not compared', () => {
  expect(compareWords('one two three four', 'alpha beta gamma delta')).toBeUndefined();
  const long = 'x'.repeat(wordLimits.characters / 2);
  expect(compareWords(long, long)).toBeDefined();
  expect(compareWords(long, `${long}x`)).toBeUndefined();
});

test('texts that differ in too many words are not compared, however fast the machine is', () => {
  const words = (count: number, word: string) => Array.from({ length: count }, (_, index) => `${word}${index}`);
  // Each word is removed, and another one added.
  const marks = (count: number) => {
    const [before, after] = ['old', 'new'].map((word) => words(count, word).join(' and '));
    return marked(compareWords(before ?? '', after ?? '')?.after);
  };
  expect(marks(wordLimits.edits / 2)).toMatch(/^\[new0\] and \[new1\] and .* and \[new299\]$/);
  expect(marks(wordLimits.edits / 2 + 1)).toBeUndefined();
});
