import { describe, expect, it } from 'vitest';
import { glob, list, regex, text } from '../../src/query/ast.ts';
import { faultOf, matcherOf, outline, parse } from '../support/oracle/query-parsing.ts';

const bare = (value: string) => text(value, false);
const quoted = (value: string) => text(value, true);

describe('a bare value', () => {
  it('runs on over blanks and ends before the next field', () => {
    expect(outline(parse('actor:Jane Doe type:update'))).toBe('and(actor=Jane Doe, type=update)');
    expect(outline(parse('actor:Jane  Q.  Doe   type:update'))).toBe('and(actor=Jane  Q.  Doe, type=update)');
    expect(outline(parse('entity:order entityId:4711 8'))).toBe('and(entity=order, entityId=4711 8)');
  });

  it('ends before a field that does not exist, which is then the error', () => {
    expect(faultOf('entity:order status:OPEN').message).toBe('Unsupported query field: status');
    expect(faultOf('actor:see https://example.org').message).toBe('Unsupported query field: https');
    expect(faultOf('actor:Jane a.b_c1:x').message).toBe('Unsupported query field: a.b_c1');
  });

  it('does not end at a colon that no field stands before', () => {
    expect(matcherOf('actor:at 10:30')).toEqual(bare('at 10:30'));
    expect(matcherOf('actor:a :b')).toEqual(bare('a :b'));
    expect(matcherOf('actor:a é:b')).toEqual(bare('a é:b'));
    expect(matcherOf('actor:a-b c-d:e')).toEqual(bare('a-b c-d:e'));
    expect(matcherOf('actor:a (type:x)')).toEqual(bare('a (type:x)'));
    expect(matcherOf('actor:a\ttype:x')).toEqual(bare('a\ttype:x'));
  });

  it('is not searched for a field right after the colon', () => {
    expect(matcherOf('actor:type: x')).toEqual(bare('type: x'));
    expect(matcherOf('actor:type:update')).toEqual(bare('type:update'));
    expect(matcherOf('entity:actor:x:y')).toEqual(bare('actor:x:y'));
    expect(faultOf('actor:Bob type: x').position).toBe(16);
    expect(matcherOf('actor:"Bob type: x"')).toEqual(quoted('Bob type: x'));
  });

  it('ends before a field even where a parenthesis is open', () => {
    expect(faultOf('actor:Jane (acting type: CEO)').position).toBe(12);
  });

  it('leaves the blanks at its end', () => {
    expect(matcherOf('  actor:Jane   ')).toEqual(bare('Jane'));
    expect(outline(parse('compoundLogicalQuery:((actor:Jane  ) OR ( type:delete ))'))).toBe(
      'and(or(and(actor=Jane), and(type=delete)))',
    );
  });

  it('is an error where it is empty or begins with a blank', () => {
    for (const query of ['actor:', 'actor: ', 'actor: Jane', 'actor: type:create', 'entity: order', 'actor:  ']) {
      expect(faultOf(query).details[0]?.message).toMatch(/expected a value/);
    }
    expect(faultOf('compoundLogicalQuery:((actor:) OR (type:create))').position).toBe(30);
  });

  it('ends before the parenthesis that closes its group', () => {
    expect(outline(parse('compoundLogicalQuery:((actor:Jane Doe) OR (actor:J (x) (y) z))'))).toBe(
      'and(or(and(actor=Jane Doe), and(actor=J (x) (y) z)))',
    );
    expect(outline(parse('related:elemMatch(entity:a b entityId:c (d))'))).toBe(
      'and(related=item(entity=a b, entityId=c (d)))',
    );
  });

  it('has balanced parentheses, of which escaped ones are none', () => {
    expect(matcherOf('actor:Jane (Sales (EMEA))')).toEqual(bare('Jane (Sales (EMEA))'));
    expect(matcherOf('actor:Jane \\(Sales')).toEqual(bare('Jane (Sales'));
    expect(matcherOf('actor:Jane\\) Sales')).toEqual(bare('Jane) Sales'));
    expect(matcherOf('actor:\\(x')).toEqual(bare('(x'));
    expect(faultOf('actor:Jane (Sales').position).toBe(12);
    expect(faultOf('actor:Jane) Sales').position).toBe(11);
    expect(faultOf('actor:a)(b').position).toBe(8);
  });

  it('does not begin with a character that begins something else', () => {
    expect(faultOf('actor:"Jane" Doe').position).toBe(14);
    expect(faultOf('actor:<b>').position).toBe(7);
    expect(faultOf('actor:>x').position).toBe(7);
    expect(matcherOf('actor:x"y')).toEqual(bare('x"y'));
    expect(matcherOf('actor:x~<>')).toEqual(bare('x~<>'));
  });

  it('with the whole word AND, OR or NOT is an error that says to quote it', () => {
    for (const value of ['AND', 'Jane AND John', 'x OR', 'NOT x', 'a (OR) b', 'Jane NOT, John', '(a) OR']) {
      const fault = faultOf(`actor:${value.startsWith('(') ? `x${value}` : value}`);
      expect(fault.message).toMatch(/quote it/);
      expect(fault.details[0]?.message).toMatch(/^At position \d+: .*quote it/);
    }
    expect(faultOf('entity:order AND type:update').position).toBe(14);
    expect(faultOf('actor:(Jane, John OR Jim)').message).toMatch(/quote it/);
    expect(matcherOf('actor:"Jane AND John"')).toEqual(quoted('Jane AND John'));
    expect(matcherOf('actor:("AND", x)')).toEqual(list([quoted('AND'), bare('x')]));
  });

  it('may have AND, OR and NOT as a part of a word, or in other case', () => {
    for (const value of ['ANDREW', 'BRAND', 'ORlando', 'NOTE', 'Jane and John', 'x or y', 'Not x', 'US-OR-97201']) {
      expect(matcherOf(`actor:${value}`)).toEqual(bare(value));
    }
    expect(matcherOf('actor:*OR*')).toEqual(glob(['', 'OR', '']));
  });

  it('has a star for any run of characters', () => {
    expect(matcherOf('actor:J*')).toEqual(glob(['J', '']));
    expect(matcherOf('actor:*a*b*')).toEqual(glob(['', 'a', 'b', '']));
    expect(matcherOf('actor:a**b')).toEqual(glob(['a', 'b']));
    expect(matcherOf('actor:*')).toEqual(glob(['', '']));
  });

  it('has a backslash that escapes five characters and otherwise stands for itself', () => {
    expect(matcherOf('actor:a\\*b')).toEqual(bare('a*b'));
    expect(matcherOf('actor:\\*\\(\\)\\,\\\\')).toEqual(bare('*(),\\'));
    expect(matcherOf('actor:a\\b\\"c\\ d\\')).toEqual(bare('a\\b\\"c\\ d\\'));
    expect(matcherOf('actor:a\\\\*')).toEqual(glob(['a\\', '']));
    expect(matcherOf('actor:a,b')).toEqual(bare('a,b'));
  });
});

describe('a quoted value', () => {
  it('is literal, the star too', () => {
    expect(matcherOf('actor:"a*b (c), ~d type:x AND"')).toEqual(quoted('a*b (c), ~d type:x AND'));
    expect(matcherOf('actor:" Jane "')).toEqual(quoted(' Jane '));
    expect(matcherOf('actor:""')).toEqual(quoted(''));
  });

  it('escapes the quote and the backslash, and nothing else', () => {
    expect(matcherOf('actor:"say \\"hi\\" \\\\"')).toEqual(quoted('say "hi" \\'));
    expect(faultOf('actor:"a\\*b"').position).toBe(10);
    expect(faultOf('actor:"a\\').position).toBe(10);
  });

  it('ends with a quote, and a blank or the end follows', () => {
    expect(faultOf('actor:"Jane').position).toBe(12);
    expect(faultOf('actor:"Jane"type:create').position).toBe(13);
    expect(outline(parse('compoundLogicalQuery:((actor:"a)") OR (type:create))'))).toBe(
      'and(or(and(actor=a)), and(type=create)))',
    );
  });
});

describe('a list', () => {
  it('has quoted and bare items, of which any may match', () => {
    expect(matcherOf('actor:(Jane Doe, "x, y", J*n)')).toEqual(
      list([bare('Jane Doe'), quoted('x, y'), glob(['J', 'n'])]),
    );
    expect(matcherOf('actor:(Jane)')).toEqual(list([bare('Jane')]));
    expect(outline(parse('entity:(order, quote) entityId:(a,b)'))).toBe(
      'and(entity=list(order; quote), entityId=list(a; b))',
    );
  });

  it('loses the blanks round its commas', () => {
    expect(matcherOf('actor:(a  ,  "b"  ,c d )')).toEqual(list([bare('a'), quoted('b'), bare('c d')]));
  });

  it('has commas in an item only where they are escaped, quoted or in parentheses', () => {
    expect(matcherOf('actor:(Doe\\, Jane, x)')).toEqual(list([bare('Doe, Jane'), bare('x')]));
    expect(matcherOf('actor:(Doe (a, b), x)')).toEqual(list([bare('Doe (a, b)'), bare('x')]));
  });

  it('has no empty item, no regular expression and no list in it', () => {
    const faults = {
      'actor:()': 8,
      'actor:(a,)': 10,
      'actor:(,a)': 8,
      'actor:(a,,b)': 10,
      'actor:(~a)': 8,
      'actor:((a))': 8,
      'actor:(a, >b)': 11,
    };
    for (const [query, position] of Object.entries(faults))
      expect([query, faultOf(query).position]).toEqual([query, position]);
  });

  it('ends with a parenthesis, before any field', () => {
    expect(faultOf('actor:(a, b').position).toBe(12);
    expect(faultOf('actor:(a, b type:create)').position).toBe(13);
    expect(faultOf('actor:("a" "b")').position).toBe(12);
    expect(faultOf('actor:(a) b').position).toBe(11);
    expect(faultOf('actor:(a)b').position).toBe(10);
  });
});

describe('the type', () => {
  it('takes its three values or a list of them', () => {
    expect(matcherOf('type:create')).toEqual(bare('create'));
    expect(matcherOf('type:"delete"')).toEqual(quoted('delete'));
    expect(matcherOf('type:(create, "update",delete)')).toEqual(
      list([bare('create'), quoted('update'), bare('delete')]),
    );
  });

  it('takes nothing else', () => {
    for (const value of [
      'CREATE',
      'created',
      'creat*',
      '*',
      '~create',
      '(create, x)',
      '(creat*)',
      '"create "',
      '>create',
      'create x',
      '""',
      '',
    ]) {
      const fault = faultOf(`type:${value}`);
      expect([value, fault.status, fault.details[0]?.field]).toEqual([value, 400, 'q']);
    }
    expect(faultOf('type:replace').details[0]?.message).toBe(
      'At position 6: expected create, update or delete, or a list of them in parentheses, as the value of type, found "replace"',
    );
  });
});

it('globs, regular expressions and lists work on every field of text', () => {
  for (const field of ['entity', 'actor', 'related.entity', 'related.entityId']) {
    expect(matcherOf(`${field}:a*`)).toEqual(glob(['a', '']));
    expect(matcherOf(`${field}:~a`)).toEqual(regex('a'));
    expect(matcherOf(`${field}:(a, b*)`)).toEqual(list([bare('a'), glob(['b', ''])]));
  }
  expect(outline(parse('entity:~o entityId:~^a'))).toBe('and(entity=regex(o), entityId=regex(^a))');
  expect(outline(parse('related:elemMatch(entity:(a, b*) entityId:~c)'))).toBe(
    'and(related=item(entity=list(a; glob(b*)), entityId=regex(c)))',
  );
});
