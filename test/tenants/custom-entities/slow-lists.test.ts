import { beforeEach, expect, test } from 'vitest';
import { parseSort } from '../../../src/pagination/sort.ts';
import { parseDocumentQuery } from '../../../src/query/parse.ts';
import { slowPage, timingOfSlowPage } from '../../../src/tenants/custom-entities/service.ts';
import { createSortIndex } from '../../../src/tenants/custom-entities/sort-indexes.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { createTestDatabase } from '../../support/server/database.ts';

const warnings: string[] = [];
const logger = { warn: (_fields: object, message: string) => void warnings.push(message) } as never;

const database = closeAfterAll(await createTestDatabase());
await createSortIndex(database.db, 'price:DESC,name');

beforeEach(() => {
  warnings.length = 0;
});

const headersOf = (took: number, sort: string | undefined, q: string) =>
  timingOfSlowPage(database.db, logger, { took, sort: parseSort(sort), query: parseDocumentQuery(q) });

test('a slow page says which index it lacked, and the log names the one to make', async () => {
  expect(await headersOf(slowPage, 'stock:DESC', '')).toEqual({
    'Server-Timing': 'list;dur=1000.0;desc="sort without an index"',
  });
  expect(warnings).toEqual([
    'a sort of instances has no index: annals index create --sort "stock:DESC,_id:ASC" makes one',
  ]);
  expect(await headersOf(1234.56, 'stock', 'name:~x status:open')).toEqual({
    'Server-Timing': 'list;dur=1234.6;desc="sort without an index, filter without an index"',
  });
});

test.each([
  ['stock:>5', ['a filter of instances has no index: annals index create --filters stock makes one']],
  ['name:x*', ['a filter of instances has no index: annals index create --filters name makes one']],
  ['name:~^x', ['a filter of instances has no index: annals index create --filters name makes one']],
  [
    'a.b:<1 a.b:y* c:~x',
    [
      'a filter of instances has no index: annals index create --filters a.b makes one',
      'a filter of instances can have no index: only values, ranges and beginnings of strings have one',
    ],
  ],
  [
    'lines.0.sku:>5',
    ['a filter of instances can have no index: only values, ranges and beginnings of strings have one'],
  ],
])('the log names the index for the filter %s', async (q, messages) => {
  expect(await headersOf(slowPage, undefined, q)).toEqual({
    'Server-Timing': 'list;dur=1000.0;desc="filter without an index"',
  });
  expect(warnings).toEqual(messages);
});

test('a page that was not slow says nothing', async () => {
  expect(await headersOf(slowPage - 1, 'stock', 'name:~x')).toEqual({});
  expect(warnings).toEqual([]);
});

test.each([
  [undefined, ''],
  [undefined, 'price:>5 price:(x*, 7)'],
  ['price:DESC,name', 'status:open amount:(1, 2)'],
  ['price,name:DESC,_id:DESC', 'compoundLogicalQuery:((a:1) OR (b:"null"))'],
])('a slow page that indexes served says nothing: sort %s, filter %s', async (sort, q) => {
  expect(await headersOf(60_000, sort, q)).toEqual({});
  expect(warnings).toEqual([]);
});

test.each(['a:null', 'a:exists', 'a:>1', 'a:x*', 'a:~x', 'a:(x, y*)', 'compoundLogicalQuery:((a:1) OR (b:missing))'])(
  'no index serves the filter %s',
  async (q) => {
    expect(await headersOf(60_000, undefined, q)).toEqual({
      'Server-Timing': 'list;dur=60000.0;desc="filter without an index"',
    });
  },
);
