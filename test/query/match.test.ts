import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { and, glob, list, match, text } from '../../src/query/ast.ts';
import { compileMatcher } from '../../src/query/match.ts';
import { matches } from '../support/oracle/query-evaluator.ts';
import { seed } from '../support/oracle/random.ts';
import { trials } from '../support/oracle/trials.ts';

it('a text matches itself alone, case and form included', () => {
  const matchesJane = compileMatcher(text('Jane', false));
  expect(['Jane', 'jane', 'Jane ', 'J', ''].map(matchesJane)).toEqual([true, false, false, false, false]);
  expect(compileMatcher(text('é', true))('e\u0301')).toBe(false);
});

describe('a glob', () => {
  it('matches the whole text, with any run of characters for a star', () => {
    const matchesGlob = compileMatcher(glob(['J', 'Doe', '']));
    expect(matchesGlob('Jane Doe')).toBe(true);
    expect(matchesGlob('JDoe')).toBe(true);
    expect(matchesGlob('J\nDoe, Jr.')).toBe(true);
    expect(matchesGlob('Mr. Jane Doe')).toBe(false);
    expect(compileMatcher(glob(['', '']))('')).toBe(true);
  });

  it('has beginning and end that do not share characters', () => {
    const matchesGlob = compileMatcher(glob(['aa', 'aa']));
    expect(['aa', 'aaa', 'aaaa', 'aabaa'].map(matchesGlob)).toEqual([false, false, true, true]);
    expect(compileMatcher(glob(['a', 'b', 'b']))('ab')).toBe(false);
    expect(compileMatcher(glob(['a', 'bc', 'c']))('abc')).toBe(false);
  });

  it('with many stars takes time linear in the text', () => {
    const matchesGlob = compileMatcher(glob([...'a'.repeat(1000), 'b']));
    expect(matchesGlob('a'.repeat(100_000))).toBe(false);
  });

  it('agrees with an evaluator that tries every way', async () => {
    const small = fc.string({ unit: fc.constantFrom('a', 'b', '😀'), maxLength: 3 });
    const parts = fc.array(small, { minLength: 2, maxLength: 5 });
    const subject = fc.string({ unit: fc.constantFrom('a', 'b', '😀'), maxLength: 10 });
    const entry = { at: 0, type: 'create', entity: 'order', entityId: '1', related: [], paths: '{}' };
    await fc.assert(
      fc.property(parts, subject, (some, actor) => {
        const query = and([match('actor', glob(some), 1)], 1);
        expect(compileMatcher(glob(some))(actor)).toBe(matches(query, { ...entry, actor }, 0));
      }),
      { numRuns: trials(1000), seed },
    );
  });
});

it('a list matches what any of its items matches', () => {
  const matchesList = compileMatcher(list([text('a', false), glob(['b', '']), text('c*', true)]));
  expect(['a', 'bx', 'c*', 'cx', 'ab'].map(matchesList)).toEqual([true, true, true, false, false]);
});
