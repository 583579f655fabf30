import fc from 'fast-check';
import { type TSchema, Type } from 'typebox';
import { Compile } from 'typebox/compile';
import { describe, expect, test } from 'vitest';
import { AnnalsError } from '../../src/core/errors.ts';
import { compileFaultFinder } from '../../src/http/schema-faults.ts';
import { compileValidator } from '../../src/http/validation.ts';

const Order = Type.Object({
  id: Type.Integer({ minimum: 1 }),
  lines: Type.Array(Type.Object({ sku: Type.String({ minLength: 1 }), count: Type.Optional(Type.Integer()) }), {
    maxItems: 3,
  }),
  names: Type.Optional(
    Type.Record(Type.String({ pattern: '^[a-z]{2}$' }), Type.String(), { additionalProperties: false }),
  ),
  state: Type.Optional(Type.Union([Type.Literal('open'), Type.Literal('closed')])),
  tags: Type.Optional(Type.Array(Type.String(), { uniqueItems: true, maxItems: 3 })),
});

function faults(schema: TSchema, value: unknown) {
  return [...compileFaultFinder(schema)(value)].filter((fault) => fault !== undefined);
}

test('the search finds faults exactly where the validator refuses', () => {
  const validator = Compile(Order);
  const anyValue = fc.oneof(
    { depthSize: 'small' },
    fc.integer(),
    fc.string(),
    fc.constant(null),
    fc.array(fc.string()),
  );
  const order = fc.record(
    {
      id: fc.oneof(fc.integer({ min: 1 }), anyValue),
      lines: fc.oneof(
        fc.array(fc.record({ sku: fc.string(), count: fc.oneof(fc.integer(), anyValue) }, { requiredKeys: [] }), {
          maxLength: 4,
        }),
        anyValue,
      ),
      names: fc.dictionary(fc.constantFrom('en', 'de', 'x', '__proto__'), fc.oneof(fc.string(), anyValue)),
      state: fc.constantFrom('open', 'closed', 'lost', 1),
      tags: fc.array(fc.constantFrom('a', 'b', 1), { maxLength: 4 }),
    },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(fc.oneof(order, anyValue), (value) => {
      expect(faults(Order, value).length === 0, JSON.stringify(value)).toBe(validator.Check(value));
    }),
    { numRuns: 500 },
  );
});

test('a choice is one fault, with the values that are allowed', () => {
  expect(faults(Order, { id: 1, lines: [], state: 'lost' })).toEqual([
    { field: 'state', message: 'must be one of open, closed' },
  ]);
  const Choice = Type.Object({
    kind: Type.Enum(['a', 'b'], { type: 'string' }),
    fixed: Type.Literal(false),
    tool: Type.Union([Type.Literal('x'), Type.Object({ id: Type.Literal('x') })]),
    any: Type.Union([Type.Integer(), Type.Boolean()]),
  });
  expect(faults(Choice, { kind: 1, fixed: true, tool: { id: 'y' }, any: 'z' })).toEqual([
    { field: 'kind', message: 'must be one of a, b' },
    { field: 'fixed', message: 'must be false' },
    { field: 'tool.id', message: 'must be x' },
    { field: 'any', message: 'must have one of the forms that are allowed' },
  ]);
});

test('a fault names its field and what is wrong there', () => {
  const value = { lines: [{ sku: 'a' }, { sku: '', count: 1.5 }], names: { en: 1, english: 'a' }, tags: ['a', 'a'] };
  expect(faults(Order, value)).toEqual([
    { field: 'id', message: 'is required' },
    { field: 'lines.1.sku', message: 'must not have fewer than 1 characters' },
    { field: 'lines.1.count', message: 'must be integer' },
    { field: 'names.en', message: 'must be string' },
    { field: 'names.english', message: 'is not a property that this object can have' },
    { field: 'tags', message: 'must not have duplicate items' },
  ]);
});

test('each property that is missing is a fault of its own field', () => {
  const Pair = Type.Object({ a: Type.Integer(), 'b.c': Type.Integer(), d: Type.Optional(Type.Integer()) });
  expect(faults(Type.Object({ pairs: Type.Array(Pair) }), { pairs: [{ a: 1 }, {}] })).toEqual([
    { field: 'pairs.0.b.c', message: 'is required' },
    { field: 'pairs.1.a', message: 'is required' },
    { field: 'pairs.1.b.c', message: 'is required' },
  ]);
});

test('what a text must be is stated in words, not as a pattern', () => {
  const Id = Type.String({ maxLength: 3, pattern: '^[0-9]+$', 'x-must': 'be digits' });
  expect(faults(Type.Object({ id: Id }), { id: 'x' })).toEqual([{ field: 'id', message: 'must be digits' }]);
  expect(faults(Type.Object({ id: Id }), { id: '1234' })).toEqual([
    { field: 'id', message: 'must not have more than 3 characters' },
  ]);
});

describe('the first 10 faults are reported', () => {
  const validate = compileValidator({ schema: Type.Array(Type.Integer()), method: 'POST', url: '/', httpPart: 'body' });
  const detailsOf = (value: unknown) => {
    const result = validate(value);
    if (typeof result !== 'object' || !('error' in result) || !(result.error instanceof AnnalsError)) return [];
    return result.error.details;
  };

  test.each([
    [1, 1],
    [10, 10],
    [11, 10],
  ])('of %i faults: %i', (wrong, count) => {
    expect(detailsOf(Array<string>(wrong).fill('x'))).toHaveLength(count);
  });

  test('and nothing is looked at after the tenth', () => {
    let reads = 0;
    const items = new Proxy(Array<string>(100_000).fill('x'), {
      get(target, key, receiver) {
        reads += 1;
        return Reflect.get(target, key, receiver);
      },
    });
    expect(detailsOf(items)).toHaveLength(10);
    expect(reads).toBeLessThan(100);
  });
});

test('items past maxItems are not searched', () => {
  expect(faults(Order, { id: 1, lines: [1, 2, 3, 4] })).toEqual([
    { field: 'lines', message: 'must not have more than 3 items' },
  ]);
});

test('unique items need a small maxItems', () => {
  expect(() => compileFaultFinder(Type.Array(Type.String(), { uniqueItems: true }))).toThrow('needs maxItems, 100');
  expect(() => compileFaultFinder(Type.Array(Type.String(), { uniqueItems: true, maxItems: 101 }))).toThrow();
  expect(() => compileFaultFinder(Type.Array(Type.String(), { uniqueItems: true, maxItems: 100 }))).not.toThrow();
});
