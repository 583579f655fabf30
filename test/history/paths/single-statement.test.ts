import { randomBytes } from 'node:crypto';
import { beforeEach, expect, test } from 'vitest';
import { readHistogram } from '../../../src/history/search/histogram.ts';
import { DictionaryCache } from '../../../src/history/search/names/dictionary-cache.ts';
import { changelogDialect } from '../../../src/history/search/plan/dialect.ts';
import { inQuerySnapshot, queryAt } from '../../../src/history/search/snapshot.ts';
import { parseQuery } from '../../../src/query/parse.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { matches } from '../../support/oracle/query-evaluator.ts';
import { changeOf, openTestHistory } from '../../support/server/history.ts';
import { pathsOf } from '../../support/server/path-history.ts';
import { recordStatements } from '../../support/server/statements.ts';

const tenant = 'acme';
const now = Date.UTC(2026, 8, 15, 10, 11, 12, 345);
/** Maximum path numbers for a single statement. */
const maxLists = 64;

const day = 86_400_000;
const sides = '{"before":1,"after":2}';
const fields = Array.from({ length: maxLists + 1 }, (_none, place) => `field${'x'.repeat(place)}`);
const changes = [
  ...['price', 'price.amount', 'priceList', 'items.3.quantity', 'items', '', '.a', 'a%b', 'a_b', 'aXb'].flatMap(
    (path, place) =>
      ['order', 'site'].map((entity) =>
        changeOf({
          at: now - place,
          entity,
          actor: `actor ${place % 3}`,
          paths: pathsOf({ [path]: sides, name: sides }),
        }),
      ),
  ),
  ...fields.map((field, place) =>
    changeOf({ at: now - 100 - place, entity: 'order', paths: pathsOf({ [field]: sides }) }),
  ),
  ...[20, 19.9, 1].map((days) =>
    changeOf({ at: now - days * day, paths: pathsOf(days === 20 ? { early: sides } : { late: sides }) }),
  ),
].map((change) => ({ ...change, identity: randomBytes(16) }));

const history = closeAfterAll(await openTestHistory(tenant, () => now));
await createRecorder(history.database.db, tenant, () => now)(changes);
const statements = recordStatements(history.database.pool);
await ask('');

beforeEach(() => {
  statements.length = 0;
});

async function ask(q: string, skip = 0): Promise<object> {
  const query = parseQuery(q, changelogDialect);
  const page = await history.findPage(tenant, query, { skip, size: 5 });
  const matching = changes.toReversed().filter((change) => matches(query, change, now));
  expect({ q, total: page.total, paths: page.entries.map(({ paths }) => paths) }).toEqual({
    q,
    total: matching.length,
    paths: matching
      .sort((a, b) => b.at - a.at)
      .slice(skip, skip + 5)
      .map(({ paths }) => paths),
  });
  return page;
}

const texts = () => statements.map(({ text }) => text);
const isOne = [expect.stringContaining('change_page_paths')];

test.each([
  'path:price',
  'path:"price"',
  'path:(price, items)',
  'path:pri*',
  'path:a%b',
  'path:a_b',
  'path:""',
  'path:nothing',
  'path:items.*.quantity',
  'entity:site path:name',
  'entity:nothing path:name',
  'actor:(actor 0, actor 2) type:create path:name',
  'path:name occurredAt:<"2026-09-15T10:11:12.342Z"',
  `path:name occurredAt:(>"2026-09-15T10:11:12.338Z" AND <"2026-09-15T10:11:12.342Z")`,
])('%s is answered by one statement if numbers identify its paths', async (q) => {
  await ask(q);
  expect(texts()).toEqual(isOne);
  await ask(q, 5);
});

test.each([
  'path:items.3.quantity',
  'path:items.*3*',
  'path:~pr.+e|x',
  'path:price path:name',
  'change:elemMatch(path:price after:2)',
  '(path:price) OR (entity:site)',
])('%s is answered by several statements: numbers do not identify its entries, or it is no AND', async (q) => {
  await ask(q.startsWith('(') ? `compoundLogicalQuery:(${q})` : q);
  expect(texts().length).toBeGreaterThan(1);
  expect(texts()).not.toContainEqual(expect.stringContaining('change_page_paths'));
});

test(`one statement answers for ${maxLists} numbers, and several for more`, async () => {
  await ask(`path:(${fields.slice(1).join(', ')})`);
  expect(texts()).toEqual(isOne);
  await ask(`path:(${fields.join(', ')})`);
  expect(texts().length).toBeGreaterThan(1);
});

test.each([
  [
    'two names share a number',
    `update change_path set number = (select min(number) from change_path where name = 'priceList') where name = 'price'`,
  ],
  [
    'a path has no number',
    `insert into change_path (tenant, path, number, entity, name) values ('acme', gen_random_uuid(), 7, '', '')`,
  ],
])('entries are read where %s', async (_why, change) => {
  const { pool } = history.database;
  await pool.query(`create table kept as select * from change_path; ${change}`);
  statements.length = 0;
  await history.findPage(tenant, parseQuery('path:price', changelogDialect), { skip: 0, size: 5 });
  expect(texts().length).toBeGreaterThan(2);
  await pool.query('delete from change_path; insert into change_path select * from kept; drop table kept');
  statements.length = 0;
  await ask('path:price');
  expect(texts()).toEqual(isOne);
});

test.each([
  ['late', 'once, where the oldest one makes the buckets of the first entry of the window', 1],
  ['price', 'twice, where it makes others', 2],
])('a histogram of %s searches %s', async (path, _why, searches) => {
  const { pool, db } = history.database;
  const known = await new DictionaryCache(pool).get(tenant);
  const query = parseQuery(`path:${path}`, changelogDialect);
  const reading = { pool, db, regexes: history.regexes };
  statements.length = 0;
  const { from, buckets, total } = await inQuerySnapshot(reading, queryAt(tenant, query, now), known, (snapshot) =>
    readHistogram(snapshot, { maxBuckets: 60 }),
  );
  expect(texts().filter((text) => text.includes('width_bucket')).length).toBe(searches);
  const times = changes.filter((change) => matches(query, change, now)).map(({ at }) => at);
  expect({ from, total }).toEqual({ from: Math.min(...times), total: times.length });
  for (const [place, { at, count }] of buckets.entries()) {
    const end = buckets[place + 1]?.at ?? now + 1;
    expect({ at, count }).toEqual({ at, count: times.filter((time) => time >= at && time < end).length });
  }
});
