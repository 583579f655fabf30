import fc from 'fast-check';
import { expect, test } from 'vitest';
import { requiredText } from '../../src/query/plain-regex.ts';
import { compileRegex, RegexFault } from '../../src/query/regex.ts';
import { trials } from '../support/oracle/trials.ts';

test.each([
  ['23$', '23'],
  ['^order-.*23$', 'order-'],
  ['a.bcd', 'bcd'],
  ['ab+c', 'ab'],
  ['ab*cd', 'cd'],
  ['xab?', 'xa'],
  ['abc{2}d', 'ab'],
  ['a\\.b', 'a.b'],
  ['[abc]d', 'd'],
  ['[]x]yz', 'yz'],
  ['x😀y', 'x😀y'],
  ['', ''],
])('what matches %s has %s in it', (source, text) => {
  expect(requiredText(source)).toBe(text);
});

test.each(['a|b', '(ab)?', '(?i)ab', '\\d23', '\\Qa*\\E', 'a{x'])('%s has no required text', (source) => {
  expect(requiredText(source)).toBe('');
});

test('a text is in every name that a pattern matches', () => {
  const piece = fc.constantFrom(...'abc.^$*+?{}[]()|\\-', '{2}', '{0,1}', '[a-c]', '[^b]', '\\d', '\\.', '{,2}', '}');
  const name = fc.string({ unit: fc.constantFrom(...'abc.{}-12^$'), maxLength: 12 });
  let matched = 0;
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 6 }), fc.array(name, { maxLength: 20 }), (pieces, names) => {
      const source = pieces.join('');
      let matches: (one: string) => boolean;
      try {
        matches = compileRegex(source);
      } catch (error) {
        if (error instanceof RegexFault) return;
        throw error;
      }
      const text = requiredText(source);
      for (const one of names.filter(matches)) {
        if (text !== '') matched += 1;
        expect({ source, one, has: one.includes(text) }).toEqual({ source, one, has: true });
      }
    }),
    { numRuns: trials(1_000) },
  );
  expect(matched).toBeGreaterThan(20);
});
