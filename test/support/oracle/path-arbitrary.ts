import * as fc from 'fast-check';

/**
 * Paths as `paths` writes them: beneath each other, with places in arrays, keys that are empty or have dots, and hard
 * names.
 */
export const hardPaths: readonly string[] = [
  'price',
  'price.amount',
  'price.currency',
  'priceList',
  'items',
  'items.0',
  'items.0.quantity',
  'items.12.quantity',
  'items.*.quantity',
  'items.01.quantity',
  '0',
  '0.1',
  '',
  '.',
  '.a',
  'a.',
  'a..b',
  'a\\.b',
  'a\\.0',
  'a\\\\.0',
  '__proto__',
  '__proto__.x',
  'constructor',
  'status',
  'é😀',
  'é😀.0',
  'say "hi"',
  '%',
  '_',
  'x\u0001y',
  'a b',
];

const values = [
  '"OPEN"',
  '"PAID"',
  '"\\u0050AID"',
  '"********"',
  '"was\\nPAID"',
  '"a\\/PAID"',
  '"\\"PAID\\""',
  '"C:\\\\users\\tPAID"',
  '["two\\u000aPAID"]',
  'null',
  'true',
  'false',
  '1',
  '1.10',
  '-3',
  '1E2',
  '9007199254740993',
  '1e-400',
  '1E400',
  '-1E+20000',
  '2e200000',
  '1e-99999',
  '-3e-99999',
  '"1"',
  '"é"',
  '"\\ud800"',
  '"\\u0000"',
  '""',
  '[]',
  '{}',
  '["PAID",null]',
  '[["OPEN"],[]]',
  '[1,{"a":"OPEN"}]',
  '{"a":1}',
];

/** The JSON text of `paths` of a change: creates and deletes have one side of each path, updates both or one. */
export function arbitraryPaths(): fc.Arbitrary<string> {
  const value = fc.constantFrom(...values);
  const sides = fc.oneof(
    value.map((after) => `{"after":${after}}`),
    value.map((before) => `{"before":${before}}`),
    fc.tuple(value, value).map(([before, after]) => `{"before":${before},"after":${after}}`),
  );
  // "__proto__" has to be a member like all others.
  return fc
    .uniqueArray(fc.tuple(fc.constantFrom(...hardPaths), sides), { maxLength: 6, selector: ([path]) => path })
    .map((members) => `{${members.map(([path, one]) => `${JSON.stringify(path)}:${one}`).join(',')}}`);
}
