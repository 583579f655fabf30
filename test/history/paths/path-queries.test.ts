import { afterAll, beforeAll, expect, test } from 'vitest';
import { type PathHistory, startPathHistory } from '../../support/server/path-history.ts';

let history: PathHistory;

beforeAll(async () => {
  history = await startPathHistory();
});

afterAll(() => history.close());

/** The JSON text of paths with these members. */
function pathsOf(members: Record<string, string> | readonly (readonly [string, string])[]): string {
  const entries = Array.isArray(members) ? members : Object.entries(members);
  return `{${entries.map(([path, sides]) => `${JSON.stringify(path)}:${sides}`).join(',')}}`;
}

test('a regular expression finds changes of paths that no entry has beside a place in an array', async () => {
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

test('characters that jsonb does not know mean themselves in texts, globs and regular expressions, numbered or not', async () => {
  const one = '{"before":1,"after":2}';
  await history.record('odd', [
    { paths: pathsOf({ 'x\u0001y': one }) },
    { paths: pathsOf({ 'x\0y': one }) },
    {
      paths: pathsOf([
        ['a\ud800', one],
        ['a\ud801', '{"after":"\\ud800"}'],
      ]),
    },
    { paths: pathsOf([['__proto__', one]]) },
    { paths: pathsOf({ '': one, '.': one }) },
    { paths: pathsOf({ 'a\\.b': one, 'a\\\\.0': one, 'a\\.0': one, '7': one }) },
    { paths: pathsOf({ [`deep${'.0'.repeat(300)}`]: one }) },
    { paths: pathsOf({ 'items.0': '{"after":["\\u0001"]}', 'x\u0001\u0001y': one }) },
    { paths: pathsOf({ 'x\u0001\u0002y': one }) },
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
  const numbered = await history.agree('odd', queries);
  await history.server.database.pool.query(`update change_entry set path_numbers = null where tenant = 'odd'`);
  await history.server.database.pool.query(`insert into change_path_backlog (tenant, at) values ('odd', $1)`, [
    history.now,
  ]);
  expect(await history.agree('odd', queries)).toEqual(numbered);
  const { body } = await history.ask<{ values: string[] }>('odd', 'names', { field: 'path', size: '100' });
  expect(body.values).toContain('x\0y');
  expect(body.values).toContain('a\ud801');
});

test('numbers are compared by value, whatever their digits and exponents', async () => {
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
    [`1${'0'.repeat(199_999)}`, `2${'0'.repeat(199_999)}`],
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
    // beside a text that jsonb does not know
    pairs.map(([after, before]) => ({
      paths: pathsOf([
        ['n', `{"before":${before},"after":${after}}`],
        ['\0', '{}'],
      ]),
    })),
  );
  await history.agree('numbers', [
    'change:elemMatch(is:lower)',
    'change:elemMatch(path:n is:higher)',
    'change:elemMatch(path:n is:(lower, higher))',
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
