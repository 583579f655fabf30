import * as fc from 'fast-check';
import { RE2JS } from 're2js';
import { describe, expect, it } from 'vitest';
import { regex } from '../../src/query/ast.ts';
import { measureRegex, regexWorkLimit } from '../../src/query/regex.ts';
import { faultOf, matcherOf, outline, parse } from '../support/oracle/query-parsing.ts';
import { seed } from '../support/oracle/random.ts';
import { trials } from '../support/oracle/trials.ts';

describe('a regular expression without quotes', () => {
  it('ends like a bare value', () => {
    expect(outline(parse('actor:~^Jane Doe$ type:update'))).toBe('and(actor=regex(^Jane Doe$), type=update)');
    expect(matcherOf('actor:~Doe$  ')).toEqual(regex('Doe$'));
    expect(matcherOf('actor:~ Doe$')).toEqual(regex(' Doe$'));
    expect(outline(parse('related:elemMatch(entity:~^c entityId:~(1|2))'))).toBe(
      'and(related=item(entity=regex(^c), entityId=regex((1|2))))',
    );
  });

  it('ends before a field even where a class is open or the blank is escaped', () => {
    expect(faultOf('actor:~[x type:y]').details[0]?.message).toMatch(/RE2 syntax \(missing closing \]/);
    expect(faultOf('actor:~Jane\\ type:create').details[0]?.message).toMatch(/RE2 syntax \(trailing backslash/);
    expect(faultOf('actor:~Jane\\ ').details[0]?.message).toMatch(/RE2 syntax \(trailing backslash/);
    expect(matcherOf('actor:~Jane\\ Doe')).toEqual(regex('Jane\\ Doe'));
  });

  it('has balanced parentheses of its own', () => {
    expect(outline(parse('compoundLogicalQuery:((actor:~^J(an|oh)) OR (type:delete))'))).toBe(
      'and(or(and(actor=regex(^J(an|oh))), and(type=delete)))',
    );
    expect(faultOf('actor:~^J(an').position).toBe(10);
    expect(faultOf('actor:~^J)an').position).toBe(10);
  });

  it('has parentheses that do not count where they are escaped, in a class or in \\Q…\\E', () => {
    for (const source of [
      '\\(',
      '\\)',
      '\\\\(a)',
      '[(]',
      '[)]',
      '[^(]',
      '[])]',
      '[^])]',
      '[\\])]',
      '[[:alpha:])]',
      '[[:^digit:](]',
      '[+-[:alpha:]',
      '[+-\\])]',
      '[\\d)]',
      '[\\d-[:alpha:])]',
      '[\\pL)]',
      '[\\p{Greek})]',
      '[[)]',
      '[\\x{5D})]',
      '\\Q(\\E',
      '\\Q)\\E',
      '\\Q[(\\E',
      '\\Q\\\\E(a)',
      'a\\Q\\E(b)',
    ]) {
      const query = `compoundLogicalQuery:((actor:~${source}) OR (type:delete))`;
      expect([source, outline(parse(query))]).toEqual([
        source,
        `and(or(and(actor=regex(${source})), and(type=delete)))`,
      ]);
    }
    expect(outline(parse('compoundLogicalQuery:((actor:~[a-]) OR (type:delete))'))).toBe(
      'and(or(and(actor=regex([a-])), and(type=delete)))',
    );
    expect(matcherOf('actor:~\\Qa(b')).toEqual(regex('\\Qa(b'));
    expect(faultOf('compoundLogicalQuery:((actor:~[(])) OR (type:delete))').position).toBe(37);
  });

  it('is an error where it is empty', () => {
    expect(faultOf('actor:~').position).toBe(8);
    expect(faultOf('actor:~ type:create').position).toBe(8);
    expect(faultOf('compoundLogicalQuery:((actor:~) OR (type:create))').position).toBe(31);
  });

  it('may hold words that look like operators', () => {
    expect(matcherOf('actor:~Research AND Development')).toEqual(regex('Research AND Development'));
  });
});

describe('a quoted regular expression', () => {
  it('holds anything', () => {
    expect(matcherOf('actor:~"a type:x"')).toEqual(regex('a type:x'));
    expect(outline(parse('compoundLogicalQuery:((actor:~"[)] (x) ") OR (type:delete))'))).toBe(
      'and(or(and(actor=regex([)] (x) )), and(type=delete)))',
    );
    expect(matcherOf('actor:~""')).toEqual(regex(''));
  });

  it('may leave a backslash single, and doubles it before a quote or another', () => {
    expect(matcherOf('actor:~"\\d+\\.\\d"')).toEqual(regex('\\d+\\.\\d'));
    expect(matcherOf('actor:~"\\\\d+"')).toEqual(regex('\\d+'));
    expect(matcherOf('actor:~"say \\"hi\\""')).toEqual(regex('say "hi"'));
    expect(matcherOf('actor:~"\\\\\\\\"')).toEqual(regex('\\\\'));
  });

  it('ends with a quote', () => {
    expect(faultOf('actor:~"a').position).toBe(10);
    expect(faultOf('actor:~"a"b').position).toBe(11);
  });
});

describe('the syntax is that of RE2', () => {
  it('look-arounds are an error at their place', () => {
    for (const lookAround of ['(?=a)', '(?!a)', '(?<=a)', '(?<!a)']) {
      expect(faultOf(`actor:~Jan${lookAround}`).details).toEqual([
        {
          field: 'q',
          message: `At position 11: expected a regular expression without look-around (RE2 syntax), found "${lookAround}"`,
        },
      ]);
      expect(faultOf(`actor:~"\\"Jan${lookAround}"`).position).toBe(14);
    }
  });

  it('back-references are an error at their place', () => {
    for (const reference of ['\\1', '\\2', '\\9', '\\k<a>']) {
      expect(faultOf(`actor:~(a)${reference}`).details[0]?.message).toBe(
        `At position 11: expected a regular expression without back-references (RE2 syntax), found "${reference}"`,
      );
    }
    faultOf('actor:~(?P<a>x)(?P=a)');
  });

  it('what RE2 does not take is an error that tells why', () => {
    for (const source of [
      'a**',
      '[b-a]',
      '[a',
      '\\y',
      'a{1001}',
      '(a{100}){100}',
      '+a',
      '(?P<a',
      '(?>a)',
      'a++',
      '\\',
      '[[:nope:]]',
      '\\p{Nope}',
      '(?i',
    ]) {
      expect([source, faultOf(`actor:~"${source.replaceAll('\\', '\\\\')}"`).message]).toEqual([
        source,
        expect.stringMatching(/RE2 syntax|shorter/),
      ]);
    }
    expect(faultOf('actor:~Jane**').details[0]?.message).toBe(
      'At position 12: expected a regular expression in RE2 syntax (invalid nested repetition operator: **), found "**"',
    );
  });

  it('what else RE2 takes is taken', () => {
    for (const source of [
      '(?i)jane',
      '(?P<name>J)',
      '\\pL',
      '\\x{1F600}',
      '\\bJ',
      'a{0,1000}',
      '(?s:.)',
      '[[:alpha:]]',
      'a|b|',
      '\\101',
    ]) {
      expect(matcherOf(`actor:~${source}`)).toEqual(regex(source));
    }
  });
});

describe('the size of a pattern', () => {
  it('is that of its text with repetitions written out', () => {
    expect(measureRegex('a{1000}').size).toBe(1002);
    expect(measureRegex('[a-z]{0,1000}[0-9]$').size).toBeGreaterThanOrEqual(2004);
    expect(measureRegex('((a{0,100}){0,100}){0,100}').size).toBeGreaterThan(1_000_000);
    expect(measureRegex('\\x{28}\\x{29}').size).toBe(4);
  });

  it('is never less than the instructions of the compiled program', async () => {
    const token = fc.constantFrom(
      'a',
      'é',
      '.',
      '^',
      '$',
      '\\b',
      '\\d',
      '\\pL',
      '[a-c]',
      '[^x]',
      '[]a]',
      '[[:alpha:](]',
      '(',
      '(?:',
      '(?i)',
      '(?i:',
      '(?P<n>',
      ')',
      ')',
      ')',
      '|',
      '*',
      '+',
      '?',
      '{0,3}',
      '{2}',
      '{2,}',
      '{0}',
      '*?',
      '{3,7}?',
      '\\Qab(\\E',
      '\\x{28}',
      '\\x41',
      '\\101',
      '{',
      '-',
    );
    await fc.assert(
      fc.property(fc.array(token, { maxLength: 16 }), (tokens) => {
        const source = tokens.join('');
        const size = programSize(source);
        if (size !== undefined) expect(measureRegex(source).size).toBeGreaterThanOrEqual(size);
      }),
      { numRuns: trials(800), seed },
    );
  });

  it('is limited for a query as a whole', () => {
    const half = 'actor:~(?:abcdefg){500}';
    expect(measureRegex('(?:abcdefg){500}').work).toBeLessThanOrEqual(regexWorkLimit / 2);
    parse(`${half} ${half}`);
    expect(faultOf(`${half} ${half} ${half}`).details[0]?.message).toMatch(
      /^At position 56: expected a query whose regular expressions/,
    );
    faultOf(`actor:~${'\\pL'.repeat(300)}`);
    faultOf(`actor:~(?i)${'[b-\\x{1e800}]'.repeat(20)}`);
    faultOf('actor:~((a{0,100}){0,100}){0,100}');
  });
});

function programSize(source: string): number | undefined {
  try {
    return RE2JS.compile(source).programSize();
  } catch {
    return undefined;
  }
}
