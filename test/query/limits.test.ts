import { describe, expect, it } from 'vitest';
import { queryLimits } from '../../src/query/parse.ts';
import { faultOf, parse } from '../support/oracle/query-parsing.ts';

it('the limits are 4,096 characters, 16 levels and 256 terms', () => {
  expect(queryLimits).toEqual({ characters: 4096, levels: 16, terms: 256 });
});

describe('characters', () => {
  it('are counted as code points: 4,096 are accepted, one more is not', () => {
    parse(`actor:${'a'.repeat(4090)}`);
    parse(`actor:${'😀'.repeat(4090)}`);
    parse(' '.repeat(4096));
    for (const query of [
      `actor:${'a'.repeat(4091)}`,
      `actor:${'😀'.repeat(4091)}`,
      ' '.repeat(4097),
      'x'.repeat(1_000_000),
    ]) {
      expect(faultOf(query).details).toEqual([
        { field: 'q', message: 'At position 4097: expected no more than 4096 characters' },
      ]);
    }
  });

  it('must be characters: NUL and half a surrogate pair are not', () => {
    expect(faultOf('actor:a\u0000b').position).toBe(8);
    expect(faultOf('actor:"\u0000"').position).toBe(8);
    expect(faultOf('actor:😀\ud800').position).toBe(8);
    expect(faultOf('actor:\udc00\ud800').position).toBe(7);
    parse('actor:\u0001\u007f\ufffe\u{10ffff}');
  });
});

describe('levels', () => {
  const inTerms = (levels: number): string =>
    levels === 0 ? 'type:create' : `compoundLogicalQuery:((${inTerms(levels - 1)}))`;
  const inGroups = (levels: number): string =>
    `compoundLogicalQuery:${'('.repeat(levels)}(type:create)${')'.repeat(levels)}`;

  it('of groups within groups are accepted up to 16', () => {
    parse(inGroups(16));
    expect(faultOf(inGroups(17)).details[0]?.message).toBe(
      'At position 38: expected no more than 16 levels of groups, found "("',
    );
    faultOf(`compoundLogicalQuery:${'('.repeat(4000)}`);
  });

  it('of compoundLogicalQuery within compoundLogicalQuery are accepted up to 16', () => {
    parse(inTerms(16));
    expect(faultOf(inTerms(17)).details[0]?.message).toMatch(/no more than 16 levels of groups/);
  });

  it('are not what parentheses of a value are', () => {
    parse(`actor:a${'('.repeat(100)}${')'.repeat(100)}`);
    parse(inTerms(16).replace('type:create', 'related:elemMatch(entity:a)'));
  });
});

describe('terms', () => {
  const terms = (count: number) => Array.from({ length: count }, () => 'type:create').join(' ');

  it('are accepted up to 256', () => {
    expect(parse(terms(256)).operands).toHaveLength(256);
    expect(faultOf(terms(257)).details[0]?.message).toBe(
      'At position 3073: expected no more than 256 terms, found "type:create"',
    );
  });

  it('are counted wherever they stand, compoundLogicalQuery and elemMatch being terms too', () => {
    const arms = (count: number) => Array.from({ length: count }, () => '(actor:a)').join(' OR ');
    parse(`compoundLogicalQuery:(${arms(255)})`);
    expect(faultOf(`compoundLogicalQuery:(${arms(256)})`).message).toMatch(/256 terms/);
    const items = (count: number) => `related:elemMatch(${'entity:a '.repeat(count)})`;
    parse(items(255));
    expect(faultOf(items(256)).message).toMatch(/256 terms/);
  });

  it('are not what items of a list are', () => {
    parse(`actor:(${'a,'.repeat(1000)}a)`);
  });
});
