import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseJson } from '../../../src/core/json/parse.ts';
import { JsonSyntaxError } from '../../../src/core/json/tape.ts';
import { compactText, sourceText } from '../../../src/core/json/text.ts';
import { anyTree, written } from '../../support/oracle/random-documents.ts';
import { compact } from '../../support/oracle/reference-paths.ts';
import { trials } from '../../support/oracle/trials.ts';

function isAccepted(text: string): boolean {
  try {
    parseJson(text);
    return true;
  } catch (error) {
    if (error instanceof JsonSyntaxError) return false;
    throw error;
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function faultOf(text: string, maximumDepth?: number): JsonSyntaxError {
  try {
    parseJson(text, maximumDepth);
  } catch (error) {
    if (error instanceof JsonSyntaxError) return error;
  }
  throw new Error('was accepted');
}

describe('what is JSON', () => {
  const pieces = [
    ...['{', '}', '[', ']', ',', ':', ' ', '\n', '"a"', '"', '\\', '1', '0', '-', '+', '.', '.5', 'e', 'E9', '01'],
    ...[
      'true',
      'nul',
      'null',
      'false',
      'NaN',
      '\u0000',
      '\u001f',
      '\u00a0',
      '\ufeff',
      '\\u00e9',
      '\\ud83d',
      '\\x',
      'é',
      '😀',
      "'",
    ],
  ];

  test('exactly the texts of RFC 8259 are accepted', () => {
    const soup = fc.array(fc.constantFrom(...pieces), { maxLength: 12 }).map((parts) => parts.join(''));
    const damaged = fc
      .tuple(anyTree, fc.nat(), fc.nat(), fc.nat({ max: 2 }), fc.constantFrom(...pieces))
      .map(([tree, seed, place, removed, piece]) => {
        const text = written(tree, seed);
        const at = place % (text.length + 1);
        return text.slice(0, at) + piece + text.slice(at + removed);
      });
    fc.assert(
      fc.property(fc.oneof(soup, damaged), (text) => {
        expect(isAccepted(text)).toBe(isJson(text) && text.isWellFormed());
      }),
      { numRuns: trials(1_500) },
    );
  });

  test.each([
    '',
    ' ',
    '1 2',
    '[1,]',
    '{"a":1,}',
    '[1 2]',
    '{"a" 1}',
    '{a:1}',
    '{"a"}',
    '[',
    '{',
    '"',
    '"\\',
    '"\\u12',
    '-',
    '1.',
    '1e',
    '01',
    '+1',
    '.1',
    'nul',
    'truex',
    '"\t"',
    '[}',
    '{]',
    ']',
    ',',
    '\ufeff1',
  ])('no JSON: %j', (text) => {
    expect(isAccepted(text)).toBe(false);
  });

  test('bytes that are no UTF-8 are no JSON', () => {
    expect(() => parseJson(Buffer.from([0x22, 0xc3, 0x22]))).toThrow(JsonSyntaxError);
    expect(() => parseJson('"\ud800"')).toThrow(JsonSyntaxError);
  });
});

describe('faults', () => {
  test('a fault has the position of its character', () => {
    expect(faultOf('{"é😀": x}').position).toBe(8);
    expect(faultOf('{"é😀": x}').message).toBe('expected a value at character 9');
    expect(faultOf('[1').position).toBe(2);
  });

  test('nesting is allowed to the limit and no deeper, without a stack that could overflow', () => {
    const nest = (depth: number) =>
      '[{"a":'.repeat(depth / 2) + '[]'.repeat(depth % 2) + (depth % 2 ? '' : '1') + '}]'.repeat(depth / 2);
    expect(compactText(parseJson(nest(10_000)))).toBe(nest(10_000));
    expect(faultOf(nest(10_001)).message).toMatch(/^nested too deep/);
    expect(sourceText(parseJson('[[1]]', 2))).toBe('[[1]]');
    expect(faultOf('[[[]]]', 2).position).toBe(2);
    expect(faultOf('{"a":1}', 0).position).toBe(0);
  });
});

describe('texts', () => {
  test('the compact text has no blanks, scalars as written, and the last value of a duplicate key', () => {
    fc.assert(
      fc.property(anyTree, fc.nat(), (tree, seed) => {
        const node = parseJson(written(tree, seed));
        const text = compactText(node);
        expect(text.length).toBe(compact(tree).length);
        expect(compactText(parseJson(text))).toBe(text);
        expect(sourceText(node)).toBe(written(tree, seed).trim());
      }),
      { numRuns: trials(500) },
    );
  });

  test('duplicate keys are found in objects of any size', () => {
    const members = (count: number) => [...Array(count).keys()].map((index) => `"k${index}":${index}`);
    for (const count of [2, 8, 9, 100, 3000]) {
      const text = `{${members(count).join(',')}}`;
      expect(compactText(parseJson(text))).toBe(text);
      expect(compactText(parseJson(text.replace('{', '{"k1" : [1, {}], ')))).toHaveLength(text.length);
      expect(compactText(parseJson(text.replace('}', String.raw`,"\u006b0":"last"}`)))).toContain('"last"');
    }
  });
});
