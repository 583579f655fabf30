import fc from 'fast-check';
import { expect, test } from 'vitest';
import { changelogDialect } from '../../src/history/search/plan/dialect.ts';
import { glob, regex, text } from '../../src/query/ast.ts';
import { compileMatcher } from '../../src/query/match.ts';
import { parseDocumentQuery, parseQuery } from '../../src/query/parse.ts';
import { plainRegex, withPlainRegexes } from '../../src/query/plain-regex.ts';
import { compileRegex, RegexFault } from '../../src/query/regex.ts';
import { trials } from '../support/oracle/trials.ts';

test.each([
  ['23$', glob(['', '23'])],
  ['^order-', glob(['order-', ''])],
  ['a b', glob(['', 'a b', ''])],
  ['^Jane Doe$', text('Jane Doe', true)],
  ['^a\\.b\\*$', text('a.b*', true)],
  ['^', glob(['', ''])],
  ['$', glob(['', ''])],
  ['^$', text('', true)],
  ['😀$', glob(['', '😀'])],
])('%s is as plain as a text or a glob', (source, matcher) => {
  expect(plainRegex(source)).toEqual(matcher);
});

test.each(['a.b', 'a|b', '(ab)', '[ab]', 'ab+', 'a{2}', '(?i)ab', '\\d', '\\Qab\\E', '\\x41', 'a^b', 'a$b', '^^a'])(
  '%s is more than a text',
  (source) => {
    expect(plainRegex(source)).toBeUndefined();
  },
);

test('a text or a glob matches just what its expression matches', () => {
  const piece = fc.constantFrom(
    ...'abAB12 \n.^$*+?{}[]()|\\-"/ß\u0000',
    '😀',
    '\\.',
    '\\$',
    '\\-',
    '\\\\',
    '\\d',
    '\\n',
  );
  const name = fc.string({ unit: fc.constantFrom(...'abAB12 \n.$\\-"/ß\u0000', '😀'), maxLength: 6 });
  let matched = 0;
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 4 }), fc.array(name, { maxLength: 20 }), (pieces, names) => {
      const source = pieces.join('');
      const matcher = plainRegex(source);
      if (matcher === undefined) return;
      const matches = compileMatcher(matcher);
      const expected = compileRegex(source);
      for (const one of [...names, ...names.map((more) => more + pieces[0] + more)]) {
        if (expected(one)) matched += 1;
        expect({ source, one, matches: matches(one) }).toEqual({ source, one, matches: expected(one) });
      }
    }),
    { numRuns: trials(1_000) },
  );
  expect(matched).toBeGreaterThan(200);
});

test('an expression that RE2 refuses is never taken for a text', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...'a1^$.*+?{},[]()|\\ é😀'), maxLength: 6 }), (source) => {
      try {
        compileRegex(source);
      } catch (error) {
        if (error instanceof RegexFault) expect({ source, plain: plainRegex(source) }).toEqual({ source });
      }
    }),
    { numRuns: trials(500) },
  );
});

test('all plain expressions of a query are replaced, at any depth, and nothing else', () => {
  const q = 'compoundLogicalQuery:((entity:~^a$ entityId:~b) OR (related:elemMatch(entity:~^c entityId:~[d])))';
  const plain = 'compoundLogicalQuery:((entity:"a"   entityId:*b*) OR (related:elemMatch(entity:c* entityId:~[d])))';
  const matchers = (query: unknown) => JSON.stringify(query).match(/"matcher":\{[^}]*\}/g);
  expect(matchers(withPlainRegexes(parseQuery(q, changelogDialect)))).toEqual(
    matchers(parseQuery(plain, changelogDialect)),
  );
  const documents = withPlainRegexes(parseDocumentQuery('name:~x$ amount:>5 tags:~[y]'));
  expect(documents.operands).toMatchObject([
    { matcher: glob(['', 'x']) },
    { kind: 'comparison' },
    { matcher: regex('[y]') },
  ]);
});
