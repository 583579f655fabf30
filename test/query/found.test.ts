import * as fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { parseDocumentQuery } from '../../src/query/parse.ts';
import { hardPaths } from '../support/oracle/path-arbitrary.ts';
import { hardExpressions, hardNames } from '../support/oracle/query-arbitrary.ts';
import { arbitraryMutatedText } from '../support/oracle/query-mutations.ts';
import { errorOf, faultOf } from '../support/oracle/query-parsing.ts';
import { seed } from '../support/oracle/random.ts';
import { trials } from '../support/oracle/trials.ts';

function detailOf(query: string): string {
  return faultOf(query).details[0]?.message ?? '';
}

describe('an error of a query', () => {
  test.each([
    // A value.
    ['change:elemMatch(path:price is:lowr)', 32, '"lowr"'],
    ['type:updated actor:x', 6, '"updated"'],
    ['type:create update', 6, '"create update"'],
    ['type:(create, updat, delete)', 15, '"updat"'],
    ['type:"creat e"', 6, '"creat e"'],
    ['type:()', 7, '")"'],
    ['actor:(Jane Doe,)', 17, '")"'],
    ['actor:("a" "b c")', 12, '"b c"'],
    ['actor:<Jane>', 7, '"<Jane>"'],
    ['actor: Jane Doe', 7, 'a blank before "Jane"'],
    ['actor:   ', 7, 'blanks at the end of the query'],
    ['actor:', 7, 'the end of the query'],
    ['actor:"Jane', 12, 'the end of the query'],
    ['actor:John (Sales', 12, '"(Sales"'],
    ['actor:"C:\\Users"', 11, '"Users"'],
    ['change:elemMatch(after:~^P x)', 24, '"~^P"'],
    ['change:elemMatch(after:>1.2.3)', 25, '"1.2.3"'],
    ['actor:~a(?=b c) type:create', 9, '"(?=b c)"'],
    ['actor:~"a(?=b c)" type:create', 10, '"(?=b c)"'],
    // A time.
    ['occurredAt:yesterday', 12, '"yesterday"'],
    ['occurredAt:>2026-01-01', 13, '"2026-01-01"'],
    ['occurredAt:>"1 January"', 14, '"1 January"'],
    ['occurredAt:>"2026-02-30T00:00:00Z"', 14, '"2026-02-30T00:00:00Z"'],
    ['occurredAt:>""', 14, '""'],
    ['occurredAt:(>"2026-01-01T00:00:00Z" and <"2026-02-01T00:00:00Z")', 36, 'a blank before "and"'],
    // A field.
    ['status:OPEN', 1, '"status"'],
    ['change:elemMatch(pth:price)', 18, '"pth"'],
    ['change:price', 8, '"price"'],
    ['actor:"Jane" Doe', 14, '"Doe"'],
    ['actor:"Jane"type:create', 13, '"type:create"'],
    ['order', 1, '"order"'],
    // A group.
    ['compoundLogicalQuery:((type:create) XOR (actor:x))', 37, '"XOR"'],
    ['compoundLogicalQuery:((type:create) AND)', 37, '"AND)"'],
    ['compoundLogicalQuery:((type:create) OR type:update)', 40, '"type:update"'],
    ['entity:order AND type:update', 14, '"AND"'],
  ])('names what stands at its position: %s', (query, position, found) => {
    const [place, shown] = detailOf(query).split(', found ');
    expect([place, shown]).toEqual([expect.stringMatching(`^At position ${position}: expected `), found]);
  });

  it('shows 40 characters of what is longer, an emoji being one', () => {
    expect(detailOf(`type:${'😀'.repeat(40)}`)).toMatch(new RegExp(`found "${'😀'.repeat(40)}"$`));
    expect(detailOf(`type:${'😀'.repeat(41)}`)).toMatch(new RegExp(`found "${'😀'.repeat(40)}…"$`));
    expect(detailOf(`type:"${'x'.repeat(41)}"`)).toMatch(/found "x{40}…"$/);
    expect(detailOf(`${'x'.repeat(41)}:y`)).toMatch(/found "x{40}…"$/);
  });

  it('shows the characters that no eye sees', () => {
    expect(detailOf('type:create\u200b')).toMatch(/found "create<U\+200B>"$/);
    expect(detailOf('\ttype:create')).toMatch(/found "<U\+0009>type:create"$/);
    expect(detailOf('type:cre\u{e0001}ate')).toMatch(/found "cre<U\+E0001>ate"$/);
  });

  it('says what to write instead of a likely mistake', () => {
    expect(detailOf('path:price after:2')).toMatch(/found "after" \(write change:elemMatch\(after:…\)\)$/);
    expect(detailOf('constructor:2')).toMatch(/found "constructor"$/);
    expect(detailOf('type :create')).toMatch(/\(no blank before the colon\), found "type"$/);
    expect(detailOf('change:elemMatch(price)')).toMatch(/such as path:price, found "price"$/);
    expect(detailOf('type:"create" AND actor:x')).toMatch(/leave it out between terms/);
    expect(detailOf('NOT type:create')).toMatch(/queries have no NOT/);
    expect(detailOf('actor:x NOT y')).toMatch(/quote it if it is text, queries have no such operator/);
    expect(detailOf('entity:order AND type:update')).toMatch(/quote it if it is text, leave it out/);
    expect(detailOf('entity:order OR type:update')).toMatch(/write compoundLogicalQuery:\(\(…\) OR \(…\)\)/);
    expect(detailOf('compoundLogicalQuery:((type:create) )')).toMatch(/position 37: expected no blank before the \)/);
    expect(detailOf('occurredAt:>"2026')).toMatch(/the closing double quote of the one at position 13/);
    expect(() => parseDocumentQuery('name')).toThrow('a field and a colon, such as price:12, found "name"');
  });
});

it('whatever the query, what an error shows stands at its position', async () => {
  const vocabulary = {
    entities: ['order', ...hardNames],
    entityIds: ['ORD-1', ...hardNames],
    actors: hardNames,
    paths: hardPaths,
    expressions: hardExpressions,
    times: [Date.UTC(2026, 7, 31, 12)],
  };
  let checked = 0;
  await fc.assert(
    fc.property(arbitraryMutatedText(vocabulary), (text) => {
      const fault = errorOf(text);
      const shown = /, found (.*)$/su.exec(fault?.details[0]?.message ?? '')?.[1];
      if (fault === undefined || shown === undefined || /, found (?:NUL|half)/.test(fault.expected)) return;
      checked += 1;
      const rest = [...text].slice(fault.position - 1).join('');
      if (shown.startsWith('the end')) expect(rest).toBe('');
      else if (/^(?:a blank|blanks) /.test(shown)) expect(rest).toMatch(/^ /);
      // Nothing between double quotes is shown as "", also where the position is that of the closing one.
      else if (shown === '""') expect(rest).toMatch(/^"/);
      else expect(visible(rest).startsWith(shown.slice(rest.startsWith('"') ? 0 : 1, 2))).toBe(true);
    }),
    { numRuns: trials(500), seed },
  );
  expect(checked).toBeGreaterThan(50);
});

function visible(text: string): string {
  return text.replaceAll(/(?! )[\p{C}\p{Z}]/gu, '<');
}
