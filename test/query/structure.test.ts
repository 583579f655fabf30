import { describe, expect, it } from 'vitest';
import { faultOf, outline, parse } from '../support/oracle/query-parsing.ts';

describe('a query', () => {
  it('without terms filters nothing', () => {
    expect(outline(parse(''))).toBe('and()');
    expect(outline(parse('   '))).toBe('and()');
  });

  it('wants all its terms together', () => {
    expect(outline(parse(' type:create   actor:x  type:update '))).toBe('and(type=create, actor=x, type=update)');
  });

  it('has a field and a colon where a term begins', () => {
    for (const query of [
      'Jane',
      'type',
      'type create',
      ':x',
      '-type:create',
      '1a:x',
      '(type:create)',
      '"type":create',
      'type :create',
      '\ttype:create',
      '*:*',
    ]) {
      expect(faultOf(query).details[0]?.message).toMatch(/^At position 1: expected a field and a colon/);
    }
    expect(faultOf('type:"create" AND type:update').message).toMatch(/AND stands only within compoundLogicalQuery/);
  });

  it('knows its fields by their exact names', () => {
    for (const field of [
      'status',
      'Entity',
      'entityid',
      'related.entity.x',
      'at',
      '_',
      'constructor',
      '__proto__',
      'elemMatch',
    ]) {
      const fault = faultOf(`type:create ${field}:x`);
      expect([fault.message, fault.position]).toEqual([`Unsupported query field: ${field}`, 13]);
      expect(fault.details).toEqual([
        { field: 'q', message: expect.stringContaining('At position 13: expected entity, entityId, type') },
      ]);
    }
  });

  it('is a validation error where anything is wrong with it', () => {
    const fault = faultOf('type:"create');
    expect([fault.type, fault.status, fault.details.length, fault.details[0]?.field]).toEqual([
      'validation_violation',
      400,
      1,
      'q',
    ]);
  });

  it('counts positions in characters, not in code units', () => {
    expect(faultOf('actor:"😀😀" x:y').position).toBe(12);
  });
});

describe('a group', () => {
  it('joins its operands by AND or by OR', () => {
    expect(outline(parse('compoundLogicalQuery:((type:create) OR (actor:x type:update))'))).toBe(
      'and(or(and(type=create), and(actor=x, type=update)))',
    );
    expect(outline(parse('compoundLogicalQuery:((type:create)  AND   (actor:x) AND (actor:y))'))).toBe(
      'and(and(and(type=create), and(actor=x), and(actor=y)))',
    );
  });

  it('may have one operand, and groups and queries as operands', () => {
    expect(outline(parse('compoundLogicalQuery:((type:create))'))).toBe('and(and(and(type=create)))');
    expect(outline(parse('compoundLogicalQuery:(((type:create) OR (type:update)) AND (actor:x))'))).toBe(
      'and(and(or(and(type=create), and(type=update)), and(actor=x)))',
    );
    expect(outline(parse('compoundLogicalQuery:((compoundLogicalQuery:((type:create) OR (actor:x)) actor:y))'))).toBe(
      'and(and(and(or(and(type=create), and(actor=x)), actor=y)))',
    );
  });

  it('may have an operand without terms, which everything satisfies', () => {
    expect(outline(parse('compoundLogicalQuery:(())'))).toBe('and(and(and()))');
    expect(outline(parse('compoundLogicalQuery:((type:create) OR ( ))'))).toBe('and(or(and(type=create), and()))');
  });

  it('has one kind of operator', () => {
    expect(faultOf('compoundLogicalQuery:((type:create) AND (actor:x) OR (actor:y))').position).toBe(51);
    expect(faultOf('compoundLogicalQuery:((type:create) OR (actor:x) AND (actor:y))').position).toBe(50);
  });

  it('has blanks round its operators and nowhere else between its parentheses', () => {
    for (const [group, position] of Object.entries({
      '()': 23,
      '(type:create)': 23,
      '( (type:create))': 23,
      '((type:create) )': 37,
      '((type:create)OR (actor:x))': 36,
      '((type:create) OR(actor:x))': 37,
      '((type:create) or (actor:x))': 37,
      '((type:create) NOT (actor:x))': 37,
      '((type:create) (actor:x))': 37,
      '((type:create) OR )': 40,
      '((type:create)': 36,
      '((type:create': 35,
      '': 22,
      ' ((type:create))': 22,
      x: 22,
      '((type:create) ORx (actor:x))': 37,
      '((type:create) OR actor:x)': 40,
    })) {
      expect([group, faultOf(`compoundLogicalQuery:${group}`).position]).toEqual([group, position]);
    }
    expect(faultOf('compoundLogicalQuery:((type:create))type:create').position).toBe(37);
    expect(faultOf('compoundLogicalQuery:((type:create)))').position).toBe(37);
  });

  it('wants operators in it, not in a value', () => {
    expect(faultOf('compoundLogicalQuery:((type:create OR type:update))').message).toMatch(/quote it/);
  });
});

describe('elemMatch', () => {
  it('holds entity, entityId or both, about one item', () => {
    expect(outline(parse('related:elemMatch(entity:customer entityId:C-1)'))).toBe(
      'and(related=item(entity=customer, entityId=C-1))',
    );
    expect(outline(parse('related:elemMatch( entityId:C-1 ) type:create'))).toBe(
      'and(related=item(entityId=C-1), type=create)',
    );
    expect(outline(parse('related:elemMatch(entity:a*)'))).toBe('and(related=item(entity=glob(a*)))');
  });

  it('holds nothing else, and not nothing', () => {
    expect(faultOf('related:elemMatch()').position).toBe(19);
    expect(faultOf('related:elemMatch(  )').position).toBe(21);
    for (const field of ['type', 'actor', 'occurredAt', 'related.entity', 'related', 'compoundLogicalQuery']) {
      expect(faultOf(`related:elemMatch(entity:a ${field}:x)`).message).toBe(`Unsupported query field: ${field}`);
    }
    expect(faultOf('related:elemMatch((entity:a) OR (entity:b))').position).toBe(19);
  });

  it('is the only thing that related takes, and taken by nothing else', () => {
    for (const value of [
      'x',
      '',
      '"elemMatch(entity:a)"',
      'elemMatch',
      'elemMatch (entity:a)',
      '(entity:a)',
      'elemmatch(entity:a)',
      '~x',
    ]) {
      expect(faultOf(`related:${value}`).position).toBe(9);
    }
    expect(outline(parse('actor:elemMatch(entity:a)'))).toBe('and(actor=elemMatch(entity:a))');
  });

  it('ends with its parenthesis', () => {
    expect(faultOf('related:elemMatch(entity:a').position).toBe(27);
    expect(faultOf('related:elemMatch(entity:a)x').position).toBe(28);
  });
});

describe('entityId', () => {
  const message = 'entity is required when entityId is provided';

  it('is served by an entity beside it', () => {
    expect(outline(parse('entityId:1 entity:order'))).toBe('and(entityId=1, entity=order)');
    parse('entityId:1 entity:*');
    parse('entityId:1 entity:~o type:create');
    parse('entityId:~1 entity:(a, b)');
    parse('compoundLogicalQuery:((entity:order entityId:1) OR (type:delete))');
  });

  it('is served by an entity in an AND that contains it', () => {
    parse('entity:order compoundLogicalQuery:((entityId:1) OR (entityId:2))');
    parse('compoundLogicalQuery:((entity:order) AND (entityId:1))');
    parse('compoundLogicalQuery:((entityId:1) AND ((type:create) AND (entity:order)))');
    parse('compoundLogicalQuery:((entity:order)) entityId:1');
    parse('compoundLogicalQuery:((entity:order) AND ((type:create) OR ((actor:x) AND (entityId:1))))');
  });

  it('is not served by an entity in another arm of an OR', () => {
    for (const query of [
      'compoundLogicalQuery:((entityId:1) OR (entity:order))',
      'compoundLogicalQuery:((entity:order entityId:2) OR (entityId:1))',
      'entityId:1 compoundLogicalQuery:((entity:order) OR (type:create))',
      'entityId:1 compoundLogicalQuery:((entity:order) OR (entity:quote))',
      'compoundLogicalQuery:((entityId:1) AND ((entity:order) OR (type:create)))',
    ]) {
      expect([query, faultOf(query).message]).toEqual([query, message]);
    }
  });

  it('without any entity is an error at its place', () => {
    const fault = faultOf('type:create entityId:1');
    expect([fault.message, fault.position]).toEqual([message, 13]);
    expect(fault.details).toEqual([
      { field: 'q', message: expect.stringMatching(/^At position 13: expected a term entity/) },
    ]);
  });

  it('is neither served by related fields nor needed for them', () => {
    expect(faultOf('related.entity:order entityId:1').message).toBe(message);
    expect(faultOf('related:elemMatch(entity:order) entityId:1').message).toBe(message);
    parse('related.entityId:1');
    parse('related:elemMatch(entityId:1)');
  });
});
