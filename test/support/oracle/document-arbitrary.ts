import * as fc from 'fast-check';
import type { ModelDocument, SortedField } from './document-evaluator.ts';
import type { JsonModel } from './json-model.ts';

const fieldNames: readonly string[] = [
  'a',
  'b',
  'c',
  'm.x',
  'm.y.z',
  'l.0',
  'l',
  'l.x',
  'l.0.x',
  'l.x.0',
  'm',
  'name',
  'name.en',
];

const hardNumbers = [
  '0',
  '-0',
  '0.0',
  '1',
  '1.0',
  '10e-1',
  '-1',
  '1.10',
  '2',
  '10',
  '0.1',
  '1e-7',
  '-0.5',
  '9007199254740992',
  '9007199254740993',
  '-9007199254740993',
  '9007199254740993.5',
  '1e308',
  '1E+308',
  '1.7976931348623157e308',
  '1e400',
  '-1e400',
  '1e-400',
  '123456789012345678901234567890',
];

const long = 'long '.repeat(40);
const hardStrings = [
  '',
  ' ',
  'a',
  'A',
  'aa',
  'ab',
  'a b',
  'b',
  'Z',
  'é',
  'e\u0301',
  '1',
  'true',
  'null',
  'exists',
  '😀',
  '😀😀',
  '\ue000',
  '\uffff',
  'a\0b',
  'a\u0001b',
  'a\u0002b',
  '\0',
  '\u0001',
  'say "hi" \\ 100%_*',
  'x'.repeat(127),
  'x'.repeat(128),
  `${'x'.repeat(128)}y`,
  `${long}1`,
  `${long}2`,
  '😀'.repeat(130),
  `${'😀'.repeat(127)}a`,
];

const number = fc.constantFrom(...hardNumbers).map((digits): JsonModel => ({ number: digits }));
// A plain rule gives the canonical JSON of a number only for these.
const plainNumber = fc
  .constantFrom('0', '1', '1.0', '2', '10', '0.1', '9007199254740993', '1e21', '1e-7')
  .map((digits): JsonModel => ({ number: digits === '1e21' ? '1e+21' : digits }));
const text = fc.constantFrom(...hardStrings);

const scalar: fc.Arbitrary<JsonModel> = fc.oneof(
  { weight: 4, arbitrary: number },
  { weight: 4, arbitrary: text },
  { weight: 2, arbitrary: fc.constantFrom<JsonModel>(true, false, null) },
);
const inner: fc.Arbitrary<JsonModel> = fc.oneof(plainNumber, text, fc.constantFrom<JsonModel>(true, false, null));
const value: fc.Arbitrary<JsonModel> = fc.oneof(
  { weight: 10, arbitrary: scalar },
  { weight: 2, arbitrary: fc.array(inner, { maxLength: 4 }) },
  {
    weight: 2,
    arbitrary: fc
      .dictionary(fc.constantFrom('x', 'y', 'é', '😀', 'z.w', '\0'), inner, { maxKeys: 3, noNullPrototype: true })
      .map((members): JsonModel => ({ members })),
  },
);

/** Arrays within arrays, and objects within them, one of whose keys looks like a place. */
const { array: lines } = fc.letrec<{ array: JsonModel; object: JsonModel }>((tie) => ({
  array: fc.array(
    fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      { weight: 2, arbitrary: inner },
      { weight: 3, arbitrary: tie('object') },
      { weight: 2, arbitrary: tie('array') },
    ),
    { maxLength: 3 },
  ),
  object: fc
    .dictionary(fc.constantFrom('x', 'y', '0', '1'), fc.oneof({ depthSize: 'small' }, inner, tie('array')), {
      maxKeys: 2,
      noNullPrototype: true,
    })
    .map((members) => ({ members })),
}));

const id = fc.oneof(
  fc.constantFrom('a', 'A', 'B', 'aa', 'a b', 'é', '😀', '\ue000', '0', '10', '9', 'Z', '_', '%', "it's", 'a/b', '"q"'),
  fc.string({ minLength: 1, maxLength: 3, unit: fc.constantFrom('a', 'b', 'é', '-') }),
);

/** Documents with few fields and few values, so that many of them tie. */
export const arbitraryDocuments: fc.Arbitrary<ModelDocument[]> = fc
  .tuple(fc.array(value, { minLength: 1, maxLength: 5 }), fc.constantFrom(0, 1, 10, 25))
  .chain(([pool, minLength]) =>
    fc.uniqueArray(
      fc.record({
        id,
        content: fc
          .record(
            {
              a: fc.oneof(fc.constantFrom(...pool), value),
              b: fc.constantFrom(...pool),
              c: fc.oneof(fc.constantFrom(...pool), scalar),
              m: fc.oneof(
                value,
                fc
                  .record({ x: fc.constantFrom(...pool), y: fc.record({ z: scalar }).map((members) => ({ members })) })
                  .map((members): JsonModel => ({ members })),
              ),
              name: fc.oneof(
                value,
                fc
                  .dictionary(fc.constantFrom('en', 'de'), fc.constantFrom(...pool), { noNullPrototype: true })
                  .map((members): JsonModel => ({ members })),
              ),
              l: fc.oneof(
                { weight: 1, arbitrary: value },
                { weight: 1, arbitrary: fc.array(inner, { maxLength: 3 }) },
                { weight: 3, arbitrary: lines },
              ),
            },
            { requiredKeys: [], noNullPrototype: true },
          )
          .map((members) => ({ members: members as Record<string, JsonModel> })),
      }),
      { selector: (document) => document.id, minLength, maxLength: 40, size: 'max' },
    ),
  );

export interface SortSketch {
  readonly text: string;
  readonly fields: readonly SortedField[];
}

export const arbitrarySort: fc.Arbitrary<SortSketch> = fc
  .uniqueArray(
    fc.record({
      name: fc.oneof(
        { weight: 6, arbitrary: fc.constantFrom(...fieldNames) },
        { weight: 1, arbitrary: fc.constant('_id') },
      ),
      direction: fc.constantFrom('', ':ASC', ':DESC', ':desc', ':Asc'),
    }),
    { selector: ({ name }) => name, minLength: 1, maxLength: 4 },
  )
  .map((criteria) => ({
    text: criteria.map(({ name, direction }) => name + direction).join(),
    fields: criteria.map(({ name, direction }) => ({
      path: name.split('.'),
      descending: direction.toUpperCase() === ':DESC',
    })),
  }));

function quoted(string: string): string {
  return `"${string.replaceAll(/["\\]/g, '\\$&')}"`;
}

const queryText = fc.constantFrom(...hardStrings.filter((one) => !one.includes('\0')));
const bound = fc.oneof(fc.constantFrom(...hardNumbers), queryText.map(quoted));
const operator = fc.constantFrom('>', '>=', '<', '<=');
const item = fc.oneof(
  fc.constantFrom(
    ...hardNumbers,
    'true',
    'false',
    'null',
    'exists',
    'missing',
    'a',
    'é',
    '😀',
    'a*',
    '*a',
    '*',
    'x*y',
    'aa*',
    'long long*',
    `${'x'.repeat(128)}*`,
    '😀*',
    '1*',
    'lo*1',
  ),
  queryText.map(quoted),
);
const term = fc
  .tuple(
    fc.constantFrom(...fieldNames, 'id', '_id', 'nothing'),
    fc.oneof(
      { weight: 4, arbitrary: item },
      { weight: 1, arbitrary: fc.tuple(operator, bound).map((parts) => parts.join('')) },
      { weight: 1, arbitrary: fc.tuple(operator, bound).map((parts) => `(${parts.join('')})`) },
      {
        weight: 2,
        arbitrary: fc.tuple(operator, bound, operator, bound).map(([a, b, c, d]) => `(${a}${b} AND ${c}${d})`),
      },
      { weight: 1, arbitrary: fc.array(item, { minLength: 1, maxLength: 3 }).map((items) => `(${items.join(', ')})`) },
      {
        weight: 1,
        arbitrary: fc.constantFrom('~^a', '~a$', '~b|Z', '~"x{3}"', '~.', '~^$', '~é|😀', '(~a b)', '(~^[aZ])'),
      },
    ),
  )
  .map(([field, written]) => `${field}:${written}`);
const group = fc
  .tuple(fc.constantFrom(' AND ', ' OR '), fc.array(term, { minLength: 1, maxLength: 3 }))
  .map(([joint, terms]) => `compoundLogicalQuery:(${terms.map((one) => `(${one})`).join(joint)})`);

/** Queries over these fields; half of them filter nothing, since walks want something to walk. */
export const arbitraryFilter: fc.Arbitrary<string> = fc.oneof(
  { weight: 3, arbitrary: fc.constant('') },
  { weight: 2, arbitrary: term },
  { weight: 1, arbitrary: fc.tuple(term, term).map((terms) => terms.join(' ')) },
  { weight: 2, arbitrary: group },
);
