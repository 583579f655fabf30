import { afterAll, beforeAll, expect, test } from 'vitest';
import type { FindPage } from '../../../src/history/search/find-page.ts';
import { changelogDialect } from '../../../src/history/search/plan/dialect.ts';
import { foldHistory } from '../../../src/history/upkeep/fold.ts';
import { parseQuery } from '../../../src/query/parse.ts';
import { Random, seed } from '../../support/oracle/random.ts';
import { openTestHistory, type TestHistory } from '../../support/server/history.ts';
import { day, now, recordRandom, types } from '../../support/server/random-history.ts';

const tenant = 'acme';

const laws = [
  '',
  'entity:order',
  'actor:actor 1*',
  'actor:~[02468]$ type:(create, update)',
  'related.entity:group',
  'entity:order entityId:1*',
  'related.entityId:(1, 2)',
  'compoundLogicalQuery:((actor:actor 0) OR (entity:customer entityId:(1, 2, 3)))',
  'compoundLogicalQuery:((type:update) OR (related:elemMatch(entity:group entityId:3)))',
  'compoundLogicalQuery:((entity:order actor:~[1-5]$) OR (related.entityId:~[0-3]) OR (type:delete))',
  'compoundLogicalQuery:((entity:* entityId:~.) OR (type:update))',
  `compoundLogicalQuery:((occurredAt:<"${new Date(now - 3 * day).toISOString()}" entity:* entityId:*1*) OR (actor:actor 0))`,
];
const always = 'occurredAt:>="1970-01-01T00:00:00Z"';

let history: TestHistory;
let findPage: FindPage;

// 6,000 entries, some of them not folded.
beforeAll(async () => {
  history = await openTestHistory(tenant, () => now);
  const { database } = history;
  ({ findPage } = history);
  const random = new Random(seed);
  const record = (count: number, actors: number) => recordRandom(database, tenant, { random, count, actors });
  for (let batch = 0; batch < 4; batch++) {
    await record(1_400, 60);
    if (batch === 1 || batch === 3) await foldHistory(database.db, tenant);
  }
  await record(400, 200);
  await database.pool.query('analyze');
});

afterAll(() => history.close());

const find = (q: string, skip: number, size: number) =>
  findPage(tenant, parseQuery(q.trim(), changelogDialect), { skip, size });

test.each(laws)('a total is the sum of the totals of its types: %s', async (q) => {
  const total = async (more: string) => (await find(`${q} ${more} ${always}`, 0, 0)).total;
  const parts = await Promise.all(types.map((type) => total(`type:${type}`)));
  expect(parts.reduce((sum, part) => sum + part, 0)).toBe(await total(''));
});

test.each(laws)('the pages joined are the list, in order, each with the same total: %s', async (q) => {
  const query = `${q} ${always}`;
  const { total } = await find(query, 0, 0);
  const list: string[] = [];
  for (let skip = 0; skip <= total; skip += 5_000) {
    const page = await find(query, skip, 5_000);
    expect(page.total).toBe(total);
    list.push(...page.entries.map((entry) => JSON.stringify(entry)));
  }
  expect(list).toHaveLength(total);
  const times = list.map((entry) => JSON.parse(entry).at as number);
  expect(times).toEqual(times.toSorted((a, b) => b - a));

  // Single pages: shallow, deep, and last.
  const random = new Random(seed + total);
  for (const [place, size] of [
    [0, 100],
    [950, 100],
    [1_001, 1],
    [random.below(total + 1), random.pick([1, 100])],
    [total - 1, 100],
  ] as const) {
    const skip = Math.max(0, place);
    const page = await find(query, skip, size);
    expect({ q, skip, size, total: page.total, entries: page.entries.map((entry) => JSON.stringify(entry)) }).toEqual({
      q,
      skip,
      size,
      total,
      entries: list.slice(skip, skip + size),
    });
  }
});

test('walking page by page visits every entry once, crowded milliseconds included', async () => {
  const q = `compoundLogicalQuery:((actor:actor 0) OR (entity:* entityId:(1, 2, 3, 4, 5, 6, 7))) ${always}`;
  const { total, entries } = await find(q, 0, 20_000);
  expect(total).toBeGreaterThan(1_000);
  const walked: string[] = [];
  for (let skip = 0; skip < total; skip += 500) {
    walked.push(...(await find(q, skip, 500)).entries.map((one) => JSON.stringify(one)));
  }
  expect(walked).toEqual(entries.map((one) => JSON.stringify(one)));
});
