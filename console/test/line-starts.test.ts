import { finish } from '@annals/client/json';
import { expect, test } from 'vitest';
import { lineOf, lineStarts } from '../src/components/lines-view.tsx';

const linesOf = (text: string, maxLength: number) => {
  const starts = finish(lineStarts(text, maxLength));
  return starts.map((_, index) => lineOf(text, starts, index));
};

test('a line that is longer than allowed goes on in the next one, and one of exactly that length does not', () => {
  expect(linesOf('abc\n\nabcd\nabcdefgh\n', 4)).toEqual(['abc', '', 'abcd', 'abcd', 'efgh', '']);
  expect(linesOf('', 4)).toEqual(['']);
});

test('a character of two units stays whole', () => {
  expect(linesOf('abc😀de', 4)).toEqual(['abc', '😀de']);
});
