import fc from 'fast-check';
import { expect, test } from 'vitest';
import { LineSplitter, maximumLineBytes } from '../../src/recording/lines.ts';
import { trials } from '../support/oracle/trials.ts';

/** The lines of chunks, each as its number and its text; undefined for one that is too long. */
function linesOf(chunks: Buffer[], maximum?: number): [number, string | undefined][] {
  const splitter = new LineSplitter(maximum);
  const lines: [number, string | undefined][] = [];
  for (const chunk of chunks) {
    for (const line of splitter.split(chunk)) lines.push([line.number, line.bytes?.toString()]);
  }
  for (const line of splitter.end()) lines.push([line.number, line.bytes?.toString()]);
  return lines;
}

const linesOfText = (text: string, maximum?: number) => linesOf([Buffer.from(text)], maximum);

test('lines end with LF or CR LF, and the last may end with neither', () => {
  expect(linesOfText('a\nb\r\nc')).toEqual([
    [1, 'a'],
    [2, 'b'],
    [3, 'c'],
  ]);
  expect(linesOfText('a\n')).toEqual([[1, 'a']]);
  expect(linesOfText('a\rb\r\r\n')).toEqual([[1, 'a\rb\r']]);
});

test('blank lines are left out, but they count in the numbers of those that follow', () => {
  expect(linesOfText('\n \t\r\na\n\n\r\nb\n \n')).toEqual([
    [3, 'a'],
    [6, 'b'],
  ]);
  expect(linesOfText('')).toEqual([]);
});

test('a byte order mark at the start is skipped, one elsewhere is not', () => {
  expect(linesOfText('\ufeffa\n\ufeffb')).toEqual([
    [1, 'a'],
    [2, '\ufeffb'],
  ]);
});

test('a line over the limit is reported by its number, and its neighbours come whole', () => {
  expect(linesOfText('1234\n12345\n1\r\n1234\r\n12345\r\n1234', 4)).toEqual([
    [1, '1234'],
    [2, undefined],
    [3, '1'],
    [4, '1234'],
    [5, undefined],
    [6, '1234'],
  ]);
  expect(linesOfText('\ufeff1234\n12345', 4)).toEqual([
    [1, '1234'],
    [2, undefined],
  ]);
});

test('a line of 16 MiB passes, one byte more does not', () => {
  const line = Buffer.alloc(maximumLineBytes, 'x');
  const end = Buffer.from('\r\n');
  const lines = linesOf([line, end, line, Buffer.from('x'), end, Buffer.from('a')]);
  expect(maximumLineBytes).toBe(16 * 1024 * 1024);
  expect(lines.map(([number, text]) => [number, text?.length])).toEqual([
    [1, maximumLineBytes],
    [2, undefined],
    [3, 1],
  ]);
});

test('where the chunks are cut makes no difference', () => {
  const text = fc.array(fc.constantFrom('a', 'bc', 'é', '\n', '\r\n', '\r', ' ', '\ufeff', '12345678'), {
    maxLength: 30,
  });
  fc.assert(
    fc.property(text, fc.array(fc.integer({ min: 1, max: 7 }), { maxLength: 60 }), (parts, sizes) => {
      const bytes = Buffer.from(parts.join(''));
      const chunks: Buffer[] = [];
      let at = 0;
      for (const size of sizes) {
        chunks.push(bytes.subarray(at, at + size));
        at += size;
      }
      chunks.push(bytes.subarray(at));
      expect(linesOf(chunks, 6)).toEqual(linesOf([bytes], 6));
    }),
    { numRuns: trials(100) },
  );
});

test('lines are those that splitting the text gives, without the blank ones', () => {
  const part = fc.constantFrom('a', '\n', '\n\n', '\r\n', '\r', ' ', '\t\n', '  \r\n', '       ');
  fc.assert(
    fc.property(fc.array(part, { maxLength: 30 }), (parts) => {
      const text = parts.join('');
      const expected = text
        .split('\n')
        .map((line, index) => [index + 1, line.replace(/\r$/, '')] as const)
        .map(([number, line]) => [number, line.length > 6 ? undefined : line] as const)
        .filter(([, line]) => line === undefined || !/^[ \t]*$/.test(line));
      // What follows the last line end is no line where it is empty, and no CR ends it.
      const last = text.slice(text.lastIndexOf('\n') + 1);
      if (!last.endsWith('\r')) expect(linesOfText(text, 6)).toEqual(expected);
    }),
    { numRuns: trials(100) },
  );
});
