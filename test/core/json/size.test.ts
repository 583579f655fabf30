import { expect, test } from 'vitest';
import { AnnalsError } from '../../../src/core/errors.ts';
import { maxDocument, refuseLargeDocument, sizeOfJson } from '../../../src/core/json/measure.ts';
import { parseJson } from '../../../src/core/json/parse.ts';

test.each<[string, { bytes: number; values: number; levels: number }]>([
  ['1', { bytes: 1, values: 1, levels: 0 }],
  ['"é"', { bytes: 4, values: 1, levels: 0 }],
  ['{}', { bytes: 2, values: 1, levels: 1 }],
  [' { "a" : [ 1 , [ ] ] , "b" : { } } ', { bytes: 19, values: 5, levels: 3 }],
  ['{"a":[1,2,3],"a":null}', { bytes: 10, values: 2, levels: 1 }],
])('the size of %s', (text, size) => {
  expect(sizeOfJson(parseJson(text))).toEqual(size);
});

test('a document has at most 1 MiB and 100,000 values', () => {
  refuseLargeDocument('It', maxDocument);
  for (const larger of [
    { ...maxDocument, bytes: 1_048_577 },
    { ...maxDocument, values: 100_001 },
  ]) {
    expect(() => refuseLargeDocument('It', larger)).toThrow(AnnalsError);
  }
});
