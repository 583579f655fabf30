import { expect, test } from 'vitest';
import { pathCandidates } from '../../../src/history/search/plan/path-candidates.ts';
import { match } from '../../../src/query/ast.ts';
import { RegexBudget, RegexMatcherPool } from '../../../src/query/regex-pool.ts';
import { numberOfPath } from '../../../src/recording/path-names.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { changeOf } from '../../support/server/history.ts';
import { pathsOf, startPathHistory } from '../../support/server/path-history.ts';

const history = closeAfterAll(await startPathHistory());

test('a regular expression finds changes by path where no entry has a path into an array', async () => {
  await history.record('plain', [
    { paths: pathsOf({ 'price.amount': '{"before":1,"after":2}' }) },
    { paths: pathsOf({ stock: '{"before":3,"after":2}' }) },
  ]);
  expect(
    await history.agree('plain', [
      'path:~^pri',
      'change:elemMatch(path:~^pri after:exists)',
      'change:elemMatch(path:~^pri path:~t$ after:2)',
      'change:elemMatch(path:~. is:lower)',
    ]),
  ).toEqual([1, 1, 1, 1]);
});

test('the values of a path are its own, whatever other values and the braces around them contain', async () => {
  const inner = '{"after":{"price":{"before":9,"after":1}}}';
  const numbers = '{"before":1,"after":2}';
  await history.record('own', [
    { paths: `{"price":${numbers}}` },
    { paths: `{"first":${inner},"price":${numbers}}` },
    { paths: `{"price":${numbers},"later":${inner}}` },
    { paths: `{"first":${inner},"pric\\u0065":${numbers}}` },
    { paths: `{"x\\"price":{"before":9,"after":1},"pric\\u0065":${numbers}}` },
    { paths: '{"price":{"before":{"price":{"before":9,"after":1}},"after":2}}' },
    { paths: '{"price":{"before":{"x":1},"after":{}}}' },
    { paths: '{"price":{"before":"}","after":"p{q"}}' },
    { paths: '{"price":{"before":"a}b}c","after":"x\\"}"}}' },
    { paths: '{"price":{"before":[1,"}"],"after":[{"x":"]"}]}}' },
    { paths: '{"price":{"before":1e400000,"after":-1e-400000}}' },
    { paths: '{"price":{"before":1e+12345,"after":"7e12345"}}' },
    { paths: `{"price":{"before":0.${'1'.repeat(20_000)},"after":1e3}}` },
    { paths: '{"price":{"after":true}}' },
    { paths: '{"price":{"before":null}}' },
    { paths: '{"price":{"before":{"before":4,"after":3},"after":7}}' },
    { paths: '{"price":{"before":[{"after":3}],"after":"a"}}' },
    { paths: '{"price":{"before":"a}","after":5}}' },
    { paths: '{"price":{"after":-4.50,"before":["}",2]}}' },
    { paths: '{"price":{"after":[2,"a"],"before":1e99999}}' },
    { paths: '{"price":{"after":-4.5,"before":-1E-99999}}' },
    { paths: '{"price":{"after":"a,b","before":"-4.5"}}' },
    { paths: '{"price":{"before":"********","after":2}}' },
    { paths: '{"price":{"before":true,"after":null}}' },
    { paths: `{"price":{"before":6,"after":"a"},"x":{"before":"\\"price\\":{"}}` },
  ]);
  const found = await history.agree('own', [
    'change:elemMatch(path:price after:2)',
    'change:elemMatch(path:price is:lower)',
    'change:elemMatch(path:price is:higher)',
    'change:elemMatch(path:price after:exists)',
    'change:elemMatch(path:price before:missing)',
    'change:elemMatch(path:price before:null)',
    'change:elemMatch(path:price before:"}")',
    'change:elemMatch(path:price after:"p{q")',
    'change:elemMatch(path:price before:a* after:x*)',
    'change:elemMatch(path:price before:>100)',
    'change:elemMatch(path:price after:7e*)',
    'change:elemMatch(path:price after:1000)',
    'change:elemMatch(path:price after:true)',
    'change:elemMatch(path:price)',
    'change:elemMatch(path:price is:(lower, higher))',
    'change:elemMatch(path:price before:1 after:2)',
    'change:elemMatch(path:price after:-4.50 is:lower)',
    'change:elemMatch(path:price after:(a, 5))',
    'change:elemMatch(path:price after:"a,b")',
    'change:elemMatch(path:price before:"********")',
    'change:elemMatch(path:price before:(null, true))',
    'change:elemMatch(path:price before:missing after:true)',
    'change:elemMatch(path:price before:(>=1 AND <10) after:exists)',
    'change:elemMatch(path:price after:missing)',
    'change:elemMatch(path:price after:<0)',
    'change:elemMatch(path:price before:*)',
    'change:elemMatch(path:price after:(a*b, 2))',
  ]);
  expect(found).toEqual([8, 2, 6, 24, 1, 1, 3, 1, 1, 3, 1, 1, 1, 25, 8, 5, 1, 4, 1, 0, 2, 1, 8, 1, 3, 6, 9]);
});

test('a string is found within its quotes, however JSON escapes it, and in an array', async () => {
  const values = ['"PAID"', '"\\u0050AID"', '["PAID"]', '"UNPAID"', '"a\\"b"', '""', '1'];
  await history.record(
    'quotes',
    values.map((value) => ({ paths: `{"status":{"after":${value}}}` })),
  );
  const searchTerms = ['PAID', 'P*D', '*PAID', '(PAID, UNPAID)', '"a\\"b"', 'a*b', '""', '"1"', '1'];
  const found = await history.agree(
    'quotes',
    searchTerms.map((value) => `change:elemMatch(path:status after:${value})`),
  );
  expect(found).toEqual([3, 3, 4, 4, 1, 1, 1, 0, 1]);
});

test('a part of a long text is found, however JSON escapes what is in and around it', async () => {
  const texts = [
    'was\\nPAID in',
    '\\"PAID\\"',
    'C:\\\\PAID',
    'a\\/PAID',
    '\\u0050AID',
    '\\ud83d\\ude00PAID',
    'PA\\tID',
    'UNPA',
  ];
  await history.record(
    'escapes',
    texts.flatMap((text) => [
      { paths: `{"note":{"before":"","after":"${text}"}}` },
      { paths: `{"note":{"before":["${text}",1]},"other":{"after":{"a":"${text}"}}}` },
    ]),
  );
  const searchTerms = [
    '*PAID*',
    '*\nPAID*',
    '*PAID in',
    '"\\"PAID\\""',
    '*"PAID*',
    '*\\\\PAID',
    '*/PAID',
    '*😀PAID',
    'PA\tID',
    '*\n*',
    '*"',
  ];
  const found = await history.agree(
    'escapes',
    searchTerms.flatMap((value) => [`change:elemMatch(after:${value})`, `change:elemMatch(before:${value})`]),
  );
  expect(found).toEqual([6, 6, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]);
});

test('characters unsupported by jsonb are literal in texts, globs and regular expressions, numbered or not', async () => {
  const change = '{"before":1,"after":2}';
  await history.record('odd', [
    { paths: pathsOf({ 'x\u0001y': change }) },
    { paths: pathsOf({ 'x\0y': change }) },
    {
      paths: pathsOf([
        ['a\ud800', change],
        ['a\ud801', '{"after":"\\ud800"}'],
      ]),
    },
    { paths: pathsOf([['__proto__', change]]) },
    { paths: pathsOf({ '': change, '.': change }) },
    { paths: pathsOf({ 'a\\.b': change, 'a\\\\.0': change, 'a\\.0': change, '7': change }) },
    { paths: pathsOf({ [`deep${'.0'.repeat(300)}`]: change }) },
    { paths: pathsOf({ 'items.0': '{"after":["\\u0001"]}', 'x\u0001\u0001y': change }) },
    { paths: pathsOf({ 'x\u0001\u0002y': change }) },
  ]);
  const queries = [
    'path:~^x.y$',
    'path:~^x..y$',
    'path:x*y',
    'path:"x\u0001y"',
    'path:"x\u0001\u0001y"',
    'path:"x\u0001\u0002y"',
    'path:~\u0001',
    'path:a*',
    'path:~"^a"',
    'change:elemMatch(path:a* after:2)',
    'change:elemMatch(path:~^a after:2)',
    'change:elemMatch(path:a* before:missing)',
    'change:elemMatch(path:~^x.y$ after:2)',
    'change:elemMatch(path:~^x..y$ after:2)',
    'change:elemMatch(path:"x\u0001y" after:2)',
    'change:elemMatch(after:"\u0001")',
    'change:elemMatch(after:*\u0001)',
    'path:""',
    'change:elemMatch(path:"")',
    'change:elemMatch(path:"." after:2)',
    'path:__proto__',
    'change:elemMatch(path:__proto__ after:2)',
    'path:a\\.b',
    'path:"a\\\\.b"',
    'path:a',
    'path:"a\\\\\\\\"',
    'path:"a\\\\\\\\.0"',
    'path:a\\.*',
    'path:7',
    'path:~^[0-9]$',
    'path:deep',
    'path:deep.0.0.0',
    'path:deep.1',
    'path:deep.*.0',
    'path:~^deep(\\.0){300}$',
    'path:items.0',
    'path:~^items',
  ];
  await history.agree('odd', queries);
  const { body } = await history.ask<{ values: string[] }>('odd', 'names', { field: 'path', size: '100' });
  expect(body.values).toContain('x\0y');
  expect(body.values).toContain('a\ud801');
});

test('numbers are compared by value, however written', async () => {
  const long = '1'.repeat(20_000);
  const pairs: [string, string][] = [
    ['1E400', '2E400'],
    ['1e200000', '2e200000'],
    ['1e200000', '1e200001'],
    ['-1e200000', '-2e200000'],
    ['1e-99999', '2e-99999'],
    ['1e-99999', '1e-99998'],
    ['1e-99999', '0'],
    ['-1e-99999', '0'],
    ['-1e-99999', '1e-9999'],
    ['1e9999', '9e99999'],
    [`1${'0'.repeat(139_999)}`, `2${'0'.repeat(139_999)}`],
    [`0.${long.slice(0, 15_000)}`, `0.${long.slice(0, 15_001)}`],
    ['0.5', `0.5${'0'.repeat(20_000)}1`],
    ['0.5', `0.5${'0'.repeat(20_000)}`],
    [`${long}.${long}`, `${long}.${long}`],
    ['1e999999999999999999999999', `1e${'9'.repeat(3_000)}`],
    ['1e-999999999999999999999999', '1e-999999999999999999999998'],
    ['9007199254740992', '9007199254740993'],
    ['1.10', '1.1'],
    ['0e99999', '-0.0e-99999'],
    [`0.${'0'.repeat(17_000)}1`, `0.${'0'.repeat(17_000)}2`],
  ];
  await history.record(
    'numbers',
    pairs.map(([before, after]) => ({ paths: pathsOf({ n: `{"before":${before},"after":${after}}` }) })),
  );
  await history.record(
    'numbers',
    // next to a text that jsonb does not support; the longest take most of the time
    pairs
      .filter((pair) => pair.join('').length < 100_000)
      .map(([after, before]) => ({
        paths: pathsOf([
          ['n', `{"before":${before},"after":${after}}`],
          ['\0', '{}'],
        ]),
      })),
  );
  await history.agree('numbers', [
    'change:elemMatch(is:lower)',
    'change:elemMatch(path:n is:higher)',
    'change:elemMatch(path:n after:1e9999)',
    'change:elemMatch(path:n after:>=1e9999)',
    'change:elemMatch(path:n after:>1e-9999)',
    'change:elemMatch(path:n after:<=-1e9999)',
    'change:elemMatch(path:n after:>0)',
    'change:elemMatch(path:n after:<0)',
    'change:elemMatch(path:n after:0)',
    'change:elemMatch(path:n after:0.5)',
    'change:elemMatch(path:n before:0.5)',
    'change:elemMatch(path:n after:>0.5)',
    'change:elemMatch(path:n after:9007199254740993.0)',
    'change:elemMatch(path:n after:1.1)',
  ]);
});

/** Names that share a number, found by trying all four-letter names. */
const twins = { shared: ['cdod', 'fxxi'] } as const;

test('names that share a number are distinguished in queries, facets and names', async () => {
  const [first, second] = twins.shared;
  expect(numberOfPath('shared', 'order', first)).toBe(numberOfPath('shared', 'order', second));
  await history.record('shared', [
    { paths: pathsOf({ [first]: '{"before":1,"after":2}' }) },
    { paths: pathsOf({ [second]: '{"before":1,"after":2}' }) },
    { paths: pathsOf({ [second]: '{"before":1,"after":2}', [`${first}.a`]: '{"after":2}' }) },
    { at: history.now - 70 * 86_400_000, paths: pathsOf({ [first]: '{"before":1,"after":2}', gone: '{"after":1}' }) },
  ]);
  const all = 'occurredAt:>"2020-01-01T00:00:00Z"';
  expect(
    await history.agree('shared', [
      `path:${first}`,
      `path:${second}`,
      `path:~${first} ${all}`,
      `path:(${first}, x) ${all}`,
      `path:${first.slice(0, 2)}*`,
      `path:${first} path:${second}`,
      `compoundLogicalQuery:((path:${first}) OR (path:${second}))`,
      `change:elemMatch(path:${first} after:2)`,
      `change:elemMatch(path:~${first}|x after:2)`,
    ]),
  ).toEqual([2, 2, 3, 3, 2, 1, 3, 1, 3]);
  const facets = await history.ask('shared', 'facets', { field: 'path', q: all });
  expect(facets.body).toMatchObject({
    totalElements: 4,
    values: [
      { value: first, count: 2 },
      { value: second, count: 2 },
      { value: `${first}.a`, count: 1 },
      { value: 'gone', count: 1 },
    ],
    others: 0,
  });
  const names = async () => (await history.ask('shared', 'names', { field: 'path' })).body;
  expect(await names()).toEqual({ field: 'path', values: [first, `${first}.a`, second, 'gone'] });
});

test('names are those of existing entries: not of dropped entries, nor of refused changes', async () => {
  const names = async (tenant: string) => (await history.ask(tenant, 'names', { field: 'path' })).body;
  const at = history.now - 5_000;
  const identity = Buffer.alloc(16, 7);
  await history.record('refused', [{ at, identity, paths: pathsOf({ kept: '{"after":1}' }) }]);
  const again = changeOf({ at, identity, entityId: '0', paths: pathsOf({ phantom: '{"after":1}' }) });
  expect(await createRecorder(history.server.context.db, 'refused', () => history.now)([again])).toEqual(['conflict']);
  expect(await names('refused')).toEqual({ field: 'path', values: ['kept'] });

  const [one, other] = twins.shared;
  const { pool } = history.server.database;
  await pool.query('insert into change_retention (tenant, horizon) values ($1, $2)', [
    'shared',
    Math.floor(history.now / 86_400_000 - 40) * 86_400_000,
  ]);
  expect(await names('shared')).toEqual({ field: 'path', values: [one, `${one}.a`, other] });
  await pool.query(`delete from change_entry where tenant = 'shared' and paths like '{"${one}"%'`);
  expect(await names('shared')).toEqual({ field: 'path', values: [`${one}.a`, other] });
});

test('a name whose number equals the number of the rest is read', async () => {
  const names = { names: [{ number: 7, entity: 'order', name: 'price', isShared: false }] };
  const means = { regexes: new RegexMatcherPool(), budget: new RegexBudget() };
  const term = match('path', { kind: 'text', text: 'price', quoted: false }, 1);
  expect(await pathCandidates([term], { ...names, rest: 7 }, means)).toMatchObject({ certain: [], possible: ['{7}'] });
  expect(await pathCandidates([term], { ...names, rest: 8 }, means)).toMatchObject({
    certain: ['{7}'],
    possible: ['{8}'],
  });
});
