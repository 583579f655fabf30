import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { doWork } from '../../src/core/concurrency/work.ts';
import { Stop } from '../../src/core/stop-signal.ts';
import { createTenantPool } from '../../src/postgres/connections/tenant-pool.ts';
import { databaseRegex } from '../../src/query/database-regex.ts';
import { compileRegex, RegexFault } from '../../src/query/regex.ts';
import { createTestDatabase, type TestDatabase } from '../support/server/database.ts';
import { comesTrueWithin, eventually } from '../support/server/patience.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

test.each([
  ['^d.*(23|\\d5)$', '^d[^\\n]*(?:23|[0123456789]5)$'],
  ['(?s)a.b', 'a.b'],
  ['(?i)k1', '[kK\u212a]1'],
  ['[^a-c\\]]', '[^abc\\]]'],
  ['a|', 'a|(?:)'],
  ['(ab)+?', '(?:ab)+'],
  ['a{2,32}', 'a{2,32}'],
  ['^a|b$', '^a|b$'],
])('%s has the same meaning as %s in PostgreSQL', (source, translated) => {
  expect(databaseRegex(source)).toBe(translated);
});

test.each([
  ...[
    '(?m)^a',
    '\\bx',
    '\\pL',
    '\\x41',
    '\\Qa\\E',
    '[[:alpha:]]',
    '[é-ü]',
    '(?i)é',
    '(?i:a)',
    '(?P<a>b)',
    '(^a)',
    'a^b',
  ],
  ...[
    '(a*)*',
    '(ab){2}',
    'a{33}',
    'a{2}{3}',
    'a**',
    'a{',
    'a{,3}',
    '[]a]',
    '[z-a]',
    'a{3,2}',
    'x'.repeat(257),
    '(?=a)',
  ],
  ...['(a', 'a)', '[a', '*a', '\\', '(?i)[é]', '('.repeat(9) + ')'.repeat(9)],
])('%s is left to the engine of the service', (source) => {
  expect(databaseRegex(source)).toBeUndefined();
});

test('an expression of 256 characters is translated', () => {
  expect(databaseRegex('x'.repeat(254))).toBe('x'.repeat(254));
});

test('PostgreSQL ends within a second of its cancelling, whatever the expression', async () => {
  const slow = databaseRegex('.*[ab]+\\w{0,32}[ab]?\\w?[ab]{2,}\\w{1,16}a{1,16}\\w{32}\\w{32}[ab]+z$');
  expect(slow).toBeDefined();
  const pool = createTenantPool(database.url, { applicationName: 'slow expression', reads: 2, writes: 0, own: 1 });
  const text = 'select count(*) from generate_series(1, 10000000) n where repeat(md5(n::text), 31) collate "C" ~ $1';
  const stop = new Stop();
  let isOver = false;
  const asked = doWork({ tenant: 'acme', signal: stop }, () => pool.query({ text, values: [slow] })).finally(() => {
    isOver = true;
  });
  const outcome = expect(asked).rejects.toThrow('the client has gone');
  const busy = `select pid from pg_stat_activity where application_name = 'slow expression' and state = 'active'`;
  await eventually(async () => (await database.pool.query(busy)).rowCount).toBe(1);
  stop.abort(new Error('the client has gone'));
  expect(await comesTrueWithin(1_000, () => isOver)).toBe(true);
  await outcome;
  await pool.end();
});

test('PostgreSQL finds just the texts that the engine of the service finds', async () => {
  const atom = fc.constantFrom(
    ...[
      'a',
      'b',
      'K',
      's',
      '1',
      ' ',
      'é',
      '😀',
      '-',
      '"',
      "'",
      '/',
      '#',
      '~',
      '.',
      '[ab]',
      '[^a]',
      '[a-c1]',
      '[^\\d]',
      '\\d',
    ],
    ...[
      '\\D',
      '\\w',
      '\\W',
      '\\s',
      '\\S',
      '\\.',
      '\\-',
      '\\\\',
      '\\^',
      '\\]',
      '[\\]\\^\\-]',
      '[.*]',
      '[=:&]',
      '(ab|c)',
      '(?:a|)',
    ],
    ...['(a[bc])', '[\\w-]', '[\\s\\d]', '&&', '@', '\t', '\n', 'ß', '\u212a', '[K-S]', '[é1]', '{', ':', '='],
  );
  const quantifier = fc.constantFrom('', '', '', '', '*', '+', '?', '*?', '{2}', '{1,2}', '{2,}');
  const branch = fc
    .tuple(
      fc.constantFrom('', '', '^'),
      fc.array(fc.tuple(atom, quantifier), { maxLength: 4 }),
      fc.constantFrom('', '', '$'),
    )
    .map(([begin, pieces, end]) => begin + pieces.flat().join('') + end);
  const expression = fc
    .tuple(fc.constantFrom('', '', '(?i)', '(?s)', '(?is)'), fc.array(branch, { minLength: 1, maxLength: 2 }))
    .map(([flags, branches]) => flags + branches.join('|'));
  const text = fc.string({
    unit: fc.constantFrom(...'abckKsS1.- \n\t"/\\]^ſé#~=:&@{', '😀', 'ß', '\u212a'),
    maxLength: 5,
  });
  let translated = 0;
  let matched = 0;
  const cases: { source: string; pattern: string; text: string; matches: boolean }[] = [];
  for (const [source, texts] of fc.sample(
    fc.tuple(expression, fc.array(text, { minLength: 8, maxLength: 8 })),
    3_000,
  )) {
    const pattern = databaseRegex(source);
    if (pattern === undefined) continue;
    const matches = compileRegex(source);
    translated += 1;
    for (const one of texts) {
      matched += matches(one) ? 1 : 0;
      cases.push({ source, pattern, text: one, matches: matches(one) });
    }
  }
  const { rows } = await database.pool.query<{ found: boolean }>({
    text: 'select one collate "C" ~ pattern as found from unnest($1::text[], $2::text[]) with ordinality as c (one, pattern, place) order by place',
    values: [cases.map((one) => one.text), cases.map(({ pattern }) => pattern)],
  });
  const wrong = cases.filter(({ matches }, place) => rows[place]?.found !== matches);
  expect(wrong.slice(0, 5)).toEqual([]);
  expect(translated).toBeGreaterThan(1_500);
  expect(matched).toBeGreaterThan(2_000);
});

test('an expression that RE2 refuses is never translated', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...'a1^$.*+?{},[]()|\\-zé(?:i'), maxLength: 7 }), (source) => {
      try {
        compileRegex(source);
      } catch (error) {
        if (!(error instanceof RegexFault)) throw error;
        expect({ source, translated: databaseRegex(source) }).toEqual({ source });
      }
    }),
    { numRuns: 5_000 },
  );
});
