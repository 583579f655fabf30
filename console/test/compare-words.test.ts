import { expect, test } from 'vitest';
import { compareWords, type WordRun } from '../src/compare/compare-words.ts';

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
  const long = 'word '.repeat(12_000);
  expect(compareWords(long, `${long}x`)).toBeUndefined();
});
