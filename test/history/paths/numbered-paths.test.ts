import * as fc from 'fast-check';
import { sql } from 'kysely';
import { beforeAll, describe, expect, test } from 'vitest';
import { DictionaryCache } from '../../../src/history/search/names/dictionary-cache.ts';
import { searchPaths } from '../../../src/history/search/search-paths.ts';
import { inHistorySnapshot } from '../../../src/history/search/snapshot.ts';
import { projectedText } from '../../../src/query/json-projection.ts';
import { maxNameLength, maxNamesOfEntry, nameOfPath, numberOfRest } from '../../../src/recording/path-names.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { seed } from '../../support/oracle/random.ts';
import { type Call, contentOf, endOfJob, startExport } from '../../support/server/jobs.ts';
import { pathsOf, startPathHistory } from '../../support/server/path-history.ts';

const history = closeAfterAll(await startPathHistory());

async function namesOf(tenant: string, parameters: Record<string, string> = {}): Promise<string[]> {
  const { body } = await history.ask<{ values: string[] }>(tenant, 'names', { field: 'path', ...parameters });
  return body.values;
}

async function registered(tenant: string): Promise<number> {
  const { rows } = await history.server.database.pool.query(
    'select count(*)::integer as names from change_path where tenant = $1',
    [tenant],
  );
  return rows[0].names;
}

describe('a tenant with more path names than the registered maximum', () => {
  const tenant = 'crowd';
  const entries = 12;
  const names = 900;
  const queries = [
    'path:k11_899',
    'path:k0_0',
    'path:(k0_0, k11_5, k11_6)',
    'path:k11_*',
    'path:~^k11_8..$',
    'path:k11',
    'path:items.4.k',
    'path:items.*.k',
    'change:elemMatch(path:k11_899 after:899)',
    'change:elemMatch(path:~_899$ after:899)',
    'change:elemMatch(path:k*_7 after:>6)',
    'path:k0_0 path:k11_3',
    'compoundLogicalQuery:((path:k0_0) OR (path:k11_3))',
    'path:none',
  ];

  beforeAll(async () => {
    const crowd = Array.from({ length: entries }, (_none, entry) => {
      const own = Array.from(
        { length: names },
        (_nothing, name) => [`k${entry}_${name}`, `{"after":${name}}`] as const,
      );
      return { paths: pathsOf([...own, [`items.${entry}.k`, '{"before":1}']]) };
    });
    for (const change of crowd) await history.record(tenant, [change]);
    await history.record('beside', [{ paths: pathsOf({ k0_0: '{"after":0}', own: '{"after":1}' }) }]);
  });

  test('registers 10,000 names and the number of the rest, and its queries are exact', async () => {
    expect(await registered(tenant)).toBe(10_001);
    const found = await history.agree(tenant, queries);
    expect(found.slice(0, 4)).toEqual([1, 1, 2, 1]);
  });

  test('lists all of them in names and facets', async () => {
    expect(await namesOf(tenant, { prefix: 'k11_89', size: '100' })).toEqual([
      'k11_89',
      ...Array.from({ length: 10 }, (_none, digit) => `k11_89${digit}`),
    ]);
    expect(await namesOf(tenant, { prefix: 'ITEMS' })).toEqual(['items.*.k']);
    const { body } = await history.ask(tenant, 'facets', { field: 'path', size: '2' });
    expect(body).toEqual({
      field: 'path',
      totalElements: entries,
      values: [
        { value: 'items.*.k', count: entries },
        { value: 'k0_0', count: 1 },
      ],
      others: entries * names - 1,
    });
  });
});

test.each([
  { tenant: 'limita', what: `${maxNamesOfEntry} names`, names: maxNamesOfEntry, length: 1, isRead: false },
  { tenant: 'limitb', what: `${maxNamesOfEntry + 1} names`, names: maxNamesOfEntry + 1, length: 1, isRead: true },
  { tenant: 'limitc', what: `a name of ${maxNameLength} characters`, names: 1, length: maxNameLength, isRead: false },
  {
    tenant: 'limitd',
    what: `a name of ${maxNameLength + 1} characters`,
    names: 1,
    length: maxNameLength + 1,
    isRead: true,
  },
])('an entry with $what is found; numbers of its own: not $isRead', async ({ tenant, names, length, isRead }) => {
  const all = Array.from({ length: names }, (_none, name) => `${name}`.padStart(length, 'k').replace(/^[0-9]/, 'k$&'));
  await history.record(tenant, [
    { paths: pathsOf(all.map((name) => [name, '{"before":1,"after":2}'])) },
    { paths: pathsOf({ other: '{"after":1}' }) },
  ]);
  const { rows } = await history.server.database.pool.query(
    'select path_numbers as numbers from change_entry where tenant = $1 order by at desc limit 1',
    [tenant],
  );
  expect(rows[0].numbers.includes(numberOfRest(tenant))).toBe(isRead);
  const last = all.at(-1) ?? '';
  expect(
    await history.agree(tenant, [
      `path:${last}`,
      `path:*${last.slice(-3)}`,
      `change:elemMatch(path:${last} is:higher)`,
    ]),
  ).toEqual([1, 1, 1]);
  expect(await namesOf(tenant, { prefix: last.slice(0, 900) })).toContain(last);
});

test('names of old entries alone are listed, and the history is not read for each unused name', async () => {
  const { server, record } = history;
  const tenant = 'renamed';
  const newest = Array.from({ length: 2_400 }, () => ({ paths: '{"status":{"before":1,"after":2}}' }));
  const oldest = Array.from({ length: 100 }, (_, index) => ({
    paths: `{"status":{"before":1,"after":2},"old${index % 2}":{"before":1,"after":2}}`,
  }));
  await record(tenant, [...newest, ...oldest]);
  const { db } = server.context;
  await sql`
    insert into change_path (tenant, path, number, entity, name)
      select ${tenant}, gen_random_uuid(), n, 'order', 'gone' || n from generate_series(1, 300) as n`.execute(db);
  // As autovacuum does: until then new entries are outside the index.
  await sql`vacuum analyze change_entry`.execute(db);
  const known = await new DictionaryCache(server.database.pool).get(tenant);
  const [names, scans] = await inHistorySnapshot({ db }, { tenant, now: history.now }, known, async (snapshot) => {
    const found = await searchPaths(snapshot, tenant, { prefix: '', size: 100 });
    const { rows } = await sql<{ scans: number }>`
      select seq_scan::integer as scans from pg_stat_xact_user_tables where relname = 'change_entry'`.execute(
      snapshot.transaction,
    );
    return [found, rows[0]?.scans];
  });
  expect(names).toEqual(['old0', 'old1', 'status']);
  expect(scans).toBeLessThan(10);
});

test('the database derives the same name from a path as recording does', async () => {
  const segment = fc.oneof(
    fc.constantFrom(
      '0',
      '7',
      '10',
      '01',
      '',
      'a',
      '\\.',
      '\\\\',
      'a\\\\\\.b',
      '*',
      '-1',
      '1e3',
      '٣',
      '\u0001',
      '\n',
      '\r\n',
    ),
    fc.string({ unit: 'grapheme', maxLength: 3 }).map((text) => text.replaceAll('\0', '0')),
  );
  const paths = fc.array(
    fc.array(segment, { maxLength: 5 }).map((segments) => segments.join('.')),
    { minLength: 100 },
  );
  await fc.assert(
    fc.asyncProperty(paths, async (some) => {
      const texts = some.filter((text) => text.isWellFormed());
      const { rows } = await history.server.database.pool.query(
        'select array(select change_path_name(path) from unnest($1::text[]) with ordinality as t (path, n) order by n) as names',
        [texts.map(projectedText)],
      );
      expect(rows[0].names).toEqual(texts.map((text) => projectedText(nameOfPath(text))));
    }),
    { seed, numRuns: 30 },
  );
});

test('masked sides satisfy exists and nothing else', async () => {
  const mask = '"********"';
  await history.record('masked', [
    { paths: pathsOf({ a: `{"before":${mask},"after":${mask}}` }) },
    { paths: pathsOf({ a: `{"after":${mask}}` }) },
    { paths: pathsOf({ a: `{"before":${mask},"after":1}` }) },
    { paths: pathsOf({ a: '{"before":"*******","after":["********"]}' }) },
  ]);
  const sides = [
    'exists',
    'missing',
    'null',
    '*',
    '"********"',
    '(exists, "********")',
    '(missing, "********")',
    '>""',
    '(>="*" AND <"+")',
    '\\*\\*\\*\\*\\*\\*\\*\\*',
    '********',
  ];
  const queries = sides.flatMap((side) => [
    `change:elemMatch(after:${side})`,
    `change:elemMatch(path:a before:${side} after:exists)`,
  ]);
  const found = await history.agree('masked', [...queries, 'change:elemMatch(is:(lower, higher))']);
  expect(found.slice(0, 2)).toEqual([4, 3]);
});

test('an export takes queries on paths', async () => {
  await history.record('exported', [
    { paths: pathsOf({ 'price.amount': '{"before":2,"after":1}' }) },
    { paths: pathsOf({ 'price.amount': '{"before":1,"after":2}' }) },
    { paths: pathsOf({ priceList: '{"after":"a"}' }) },
  ]);
  const token = await history.server.token('exported');
  const call: Call = (path, init) => history.server.call(path, { ...init, token });
  const linesOf = async (q: string) => {
    const id = await startExport(call, 'exported', { q, format: 'NDJSON' });
    expect(await endOfJob(call, 'exported', id)).toMatchObject({ status: 'success' });
    return (await contentOf(call, 'exported', id)).trim().split('\n').length;
  };
  expect(await linesOf('path:price')).toBe(2);
  expect(await linesOf('change:elemMatch(path:price.amount is:lower)')).toBe(1);
});

test('a histogram counts the entries of a list with the same paths', async () => {
  const { body } = await history.ask<{ totalElements: number; buckets: { update: number }[] }>(
    'exported',
    'histogram',
    { q: 'path:price' },
  );
  expect(body.totalElements).toBe(2);
  expect(body.buckets.reduce((sum, { update }) => sum + update, 0)).toBe(2);
});
