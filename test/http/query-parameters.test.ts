import fc from 'fast-check';
import { Type } from 'typebox';
import { describe, expect, test } from 'vitest';
import { AnnalsError } from '../../src/core/errors.ts';
import { compileQueryReader, parseQueryString, queryInteger } from '../../src/http/query-parameters.ts';

const read = compileQueryReader(
  Type.Object({
    q: Type.Optional(Type.String({ maxLength: 5, 'x-message': 'q is too long' })),
    page: Type.Optional(
      queryInteger({
        minimum: 1,
        maximum: 2_147_483_647,
        default: 1,
        message: 'page must be >= 1',
        messageAbove: 'page must be <= 2147483647',
      }),
    ),
    size: Type.Optional(queryInteger({ minimum: 1, maximum: 100, default: 20 })),
  }),
);

function details(query: string) {
  const answer = read(parseQueryString(query));
  return 'error' in answer ? answer.error.details : answer.value;
}

test('NUL in a text is an error at its position, and in an unknown parameter it is none', () => {
  expect(details('q=%F0%9F%98%80%00')).toEqual([
    { field: 'q', message: 'At position 2: expected a character of Unicode, found NUL' },
  ]);
  expect(details('q=%F0%9F%98%80%01&unknown=%00')).toEqual({ q: '😀\u0001', page: 1, size: 20 });
});

describe('a number in a query string is decimal digits alone', () => {
  test.each(['1.0', '%2B1', '+1', '1e1', '%201', '1%20', '', '-1', '0', '0x1', '1_0', '١', 'NaN', '1,0', '1%00'])(
    'page=%s is an error',
    (text) => {
      expect(details(`page=${text}`)).toEqual([{ field: 'page', message: 'page must be >= 1' }]);
    },
  );

  test('page without a value is an error', () => {
    expect(details('page')).toEqual([{ field: 'page', message: 'page must be >= 1' }]);
  });

  test.each([
    ['1', 1],
    ['01', 1],
    ['2147483647', 2_147_483_647],
  ])('page=%s is read', (text, page) => {
    expect(details(`page=${text}`)).toEqual({ page, size: 20 });
  });

  test.each(['2147483648', '9007199254740993', '9'.repeat(400)])('page=%s is above the maximum', (text) => {
    expect(details(`page=${text}`)).toEqual([{ field: 'page', message: 'page must be <= 2147483647' }]);
  });

  test.each(['0', '101', 'x'])('size=%s is an error that names both bounds', (text) => {
    expect(details(`size=${text}`)).toEqual([{ field: 'size', message: 'size must be between 1 and 100' }]);
  });
});

test('left out, a parameter has its default, or is absent', () => {
  expect(details('')).toEqual({ page: 1, size: 20 });
});

test('a repeated parameter is an error, even with the same value', () => {
  expect(details('page=1&page=1')).toEqual([{ field: 'page', message: 'page must be given once' }]);
  expect(details('q=a&%71=a')).toEqual([{ field: 'q', message: 'q must be given once' }]);
});

test('unknown parameters are ignored, even repeated or malformed', () => {
  expect(details('Page=0&page%20=0&x=1&x=2&y=%zz&__proto__=1&=&&')).toEqual({ page: 1, size: 20 });
});

test.each([
  ['%zz', 1],
  ['a%', 2],
  ['%C3%28', 1],
  ['%C3%A4+%F0%9F%99%82%ED%A0%80', 4],
  ['ab%FFc', 3],
  ['%F0%9F%99', 1],
])('q=%s, which is no UTF-8, is an error that tells the position', (text, position) => {
  expect(details(`q=${text}`)).toEqual([
    { field: 'q', message: `At position ${position}: expected percent-encoded UTF-8` },
  ]);
});

test('the schema of a string holds, with its own message', () => {
  expect(details('q=12345')).toMatchObject({ q: '12345' });
  expect(details('q=123456')).toEqual([{ field: 'q', message: 'q is too long' }]);
});

test('a plus is a blank, an escaped plus is a plus', () => {
  expect(details('q=a+%2B')).toMatchObject({ q: 'a +' });
});

test('all faults are reported at once; the message is the first', () => {
  const answer = read(parseQueryString('q=123456&page=0&size=0'));
  if (!('error' in answer)) throw new Error('no error');
  expect(answer.error).toBeInstanceOf(AnnalsError);
  expect(answer.error.message).toBe('q is too long');
  expect(answer.error.details.map(({ field }) => field)).toEqual(['q', 'page', 'size']);
});

test('every text comes through encoding unchanged', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: 'grapheme' }).filter((text) => text.isWellFormed()),
      (text) => {
        expect(parseQueryString(`a=${encodeURIComponent(text)}&b=1`)).toMatchObject({ a: [text], b: ['1'] });
        expect(parseQueryString(new URLSearchParams({ a: text }).toString())).toMatchObject({ a: [text] });
      },
    ),
  );
});
