import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { changelogDialect } from '../../src/history/search/plan/dialect.ts';
import type { Condition, ItemTerm, Matcher } from '../../src/query/ast.ts';
import { compileMatcher } from '../../src/query/match.ts';
import { parseQuery } from '../../src/query/parse.ts';
import { scanQuery } from '../../src/query/scan.ts';
import { hardPaths } from '../../test/support/oracle/path-arbitrary.ts';
import { arbitraryQuery, hardExpressions, hardNames } from '../../test/support/oracle/query-arbitrary.ts';
import { arbitraryMutatedText } from '../../test/support/oracle/query-mutations.ts';
import { errorOf } from '../../test/support/oracle/query-parsing.ts';
import { seed } from '../../test/support/oracle/random.ts';
import { trials } from '../../test/support/oracle/trials.ts';
import { valuesOf } from '../src/query-text/edit-query.ts';
import { queryOfText, textsOfQuery } from '../src/query-text/text-search.ts';

// The page's scanner only colours, suggests and makes chips; the service's parser decides. Where both read a text, they read it alike.

const vocabulary = {
  entities: ['order', 'customer', ...hardNames],
  entityIds: ['ORD-1', '1', ...hardNames],
  actors: hardNames,
  paths: hardPaths,
  expressions: hardExpressions,
  times: [Date.UTC(2026, 7, 31, 12), Date.UTC(2024, 1, 29, 23, 59, 59, 999)],
};

interface ReadTerm {
  /** In UTF-16 code units, from 0. */
  readonly start: number;
  readonly field: string;
  /** The texts that the field is compared with; undefined where it has a pattern, a range or a group. */
  readonly values: readonly string[] | undefined;
}

test('the page and the service agree what is a field, where it is, and which texts it matches', async () => {
  await fc.assert(
    fc.property(arbitraryQuery(vocabulary), ({ text }) => {
      expect(scannedTerms(text)).toEqual(parsedTerms(text));
    }),
    { numRuns: trials(250), seed },
  );
});

test('the tokens of any text follow each other, and a field that is refused is a field to the page too', async () => {
  const found = { queries: 0, refusedFields: 0 };
  await fc.assert(
    fc.property(arbitraryMutatedText(vocabulary), (text) => {
      const { tokens, terms } = scanQuery(text);
      let end = 0;
      for (const token of tokens) {
        expect(token.start).toBeGreaterThanOrEqual(end);
        expect(token.end).toBeGreaterThan(token.start);
        ({ end } = token);
      }
      expect(end).toBeLessThanOrEqual(text.length);
      const fault = errorOf(text);
      if (fault === undefined) {
        found.queries += 1;
        expect(scannedTerms(text)).toEqual(parsedTerms(text));
      }
      const [, refused] = /^Unsupported query field: (.*)$/.exec(fault?.message ?? '') ?? [];
      if (fault === undefined || refused === undefined) return;
      found.refusedFields += 1;
      const start = offsetOf(text, fault.position);
      expect(terms.map((term) => `${term.start} ${term.field}`)).toContain(`${start} ${refused}`);
    }),
    { numRuns: trials(250), seed },
  );
  expect(Math.min(found.queries, found.refusedFields)).toBeGreaterThan(3);
});

test('the query for a text finds each value with that text in it, and the page knows which text it is', async () => {
  const words = fc.constantFrom(
    'AND',
    'a:',
    'type:x',
    '(',
    ')',
    '*',
    '\\',
    '"',
    ',',
    '~',
    '>=',
    ' ',
    'oak',
    '-1.10',
    'NOT',
    'é😀',
  );
  const text = fc.oneof(
    fc.string({ unit: 'grapheme' }),
    fc.array(words, { maxLength: 6 }).map((parts) => parts.join('')),
  );
  await fc.assert(
    fc.property(text, fc.string(), (asTyped, around) => {
      const sought = asTyped.trim();
      const q = queryOfText(sought);
      if (q === undefined) return;
      const sides = parseQuery(q, changelogDialect);
      const matchers = matchersOf(sides);
      expect(matchers.map(({ field }) => field)).toEqual(['before', 'after']);
      for (const { matcher } of matchers) {
        const matches = compileMatcher(matcher);
        expect([sought, `${around}${sought}${around}`].map(matches)).toEqual([true, true]);
      }
      const texts = textsOfQuery(q);
      expect([[sought], sought.split(' ').filter((part) => part !== '')]).toContainEqual(texts);
    }),
    { numRuns: trials(500), seed },
  );
  for (const plain of ['oak', 'oak table', 'a "b" (c), d', '50% *', '1.10', 'C:\\x', 'AND', 'see a: b', 'x AND y'])
    expect(queryOfText(plain), plain).toBeDefined();
  expect(['', 'a\0', '\ud800', 'a'.repeat(2_100)].map(queryOfText)).toEqual([
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
  expect(queryOfText('a'.repeat(1_900))).toBeDefined();
});

function matchersOf(condition: Condition | ItemTerm) {
  const found: { readonly field: string; readonly matcher: Exclude<Matcher, { kind: 'regex' }> }[] = [];
  const add = (part: Condition | ItemTerm) => {
    if (part.kind === 'and' || part.kind === 'or') for (const operand of part.operands) add(operand);
    else if (part.kind === 'item') for (const operand of part.operand.operands) add(operand);
    else if (part.kind === 'match' && part.matcher.kind !== 'regex')
      found.push({ field: part.field, matcher: part.matcher });
  };
  add(condition);
  return found;
}

function scannedTerms(text: string): ReadTerm[] {
  return scanQuery(text)
    .terms.filter(({ field }) => field !== 'compoundLogicalQuery')
    .map((term) => ({
      start: term.start,
      field: term.field,
      values: isOpen(term.field) ? undefined : valuesOf(text, term),
    }));
}

function parsedTerms(text: string): ReadTerm[] {
  const terms: ReadTerm[] = [];
  const add = (condition: Condition | ItemTerm) => {
    if (condition.kind === 'and' || condition.kind === 'or') {
      for (const operand of condition.operands) add(operand);
      return;
    }
    const { field, position } = condition;
    const values = condition.kind === 'match' ? textsOf(condition.matcher) : undefined;
    terms.push({ start: offsetOf(text, position), field, values });
    if (condition.kind === 'item') for (const operand of condition.operand.operands) add(operand);
  };
  add(parseQuery(text, changelogDialect));
  return terms;
}

function isOpen(field: string): boolean {
  return field === 'related' || field === 'change' || field === 'occurredAt';
}

function textsOf(matcher: Matcher): string[] | undefined {
  if (matcher.kind === 'text') return [matcher.text];
  if (matcher.kind !== 'list') return undefined;
  const texts = matcher.items.flatMap((item) => (item.kind === 'text' ? [item.text] : []));
  return texts.length === matcher.items.length ? texts : undefined;
}

/** The service counts code points from 1. */
function offsetOf(text: string, position: number): number {
  return [...text].slice(0, position - 1).join('').length;
}
