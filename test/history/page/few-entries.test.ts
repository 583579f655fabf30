import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { changelogDialect } from '../../../src/history/search/plan/dialect.ts';
import { parseQuery } from '../../../src/query/parse.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { changeOf, openTestHistory } from '../../support/server/history.ts';

const tenant = 'acme';
const now = Date.UTC(2026, 8, 15, 10, 11, 12, 345);
/** Entries of all actors of a query whose places are read at once, and the maximum number of such actors. */
const maxEntries = 2_500;
const maxActors = 128;

const history = closeAfterAll(await openTestHistory(tenant, () => now));
/** An entry with a unique time, so that its id gives its place. */
function entryOf(place: number, actor: string) {
  const type = place % 4 === 0 ? ('delete' as const) : ('update' as const);
  return changeOf({ identity: randomBytes(16), at: now - place, type, entityId: String(place), actor });
}

async function ask(q: string, skip = 0) {
  const { total, entries } = await history.findPage(tenant, parseQuery(q, changelogDialect), { skip, size: 3 });
  return { total, ids: entries.map(({ entityId }) => entityId).join(' ') };
}

test(`up to ${maxEntries} entries of some actors, and more, are counted and paged`, async () => {
  const record = createRecorder(history.database.db, tenant, () => now);
  const places = Array.from({ length: maxEntries }, (_none, place) => place);
  await record(places.map((place) => entryOf(place, `one ${place % 3}`)));
  const answers = async () => [
    await ask('actor:one *'),
    await ask('actor:one *', 1_000),
    await ask('actor:one * type:delete', 400),
    await ask('actor:(one 0, one 2) type:delete'),
    await ask('actor:one * type:create'),
    await ask(`actor:one * occurredAt:<"${new Date(now - 10).toISOString()}"`),
    await ask('actor:one *', maxEntries - 1),
  ];
  const expected = [
    { total: maxEntries, ids: '0 1 2' },
    { total: maxEntries, ids: '1000 1001 1002' },
    { total: maxEntries / 4, ids: '1600 1604 1608' },
    { total: 417, ids: '0 8 12' },
    { total: 0, ids: '' },
    { total: maxEntries - 11, ids: '11 12 13' },
    { total: maxEntries, ids: '2499' },
  ];
  expect(await answers()).toEqual(expected);
  await record([entryOf(maxEntries, 'one 1')]);
  const further: Record<number, number> = { 0: 1, 1: 1, 2: 1, 5: 1, 6: 1 };
  expect(await answers()).toEqual(
    expected.map(({ total, ids }, place) => ({
      total: total + (further[place] ?? 0),
      ids: place === 6 ? '2499 2500' : ids,
    })),
  );
});

test(`up to ${maxActors} actors, and more, are counted and paged`, async () => {
  const record = createRecorder(history.database.db, tenant, () => now);
  const entries = (count: number) =>
    Array.from({ length: count }, (_none, place) => entryOf(10_000 + place, `some ${place}`));
  await record(entries(maxActors));
  expect(await ask('actor:some *', maxActors - 1)).toEqual({ total: maxActors, ids: '10127' });
  await record([entryOf(10_128, 'some 128')]);
  expect(await ask('actor:some *', maxActors - 1)).toEqual({ total: maxActors + 1, ids: '10127 10128' });
});

test('actors with some 130 entries each are counted and paged, even with a wrong sample of them', async () => {
  const record = createRecorder(history.database.db, tenant, () => now);
  const first = 20_000;
  const count = 40 * 130;
  const before = `occurredAt:<"${new Date(now - first - 9).toISOString()}"`;
  const answers = async () => [
    await ask('actor:many *'),
    await ask('actor:many *', 401),
    await ask('actor:many *', count - 2),
    await ask(`actor:many * ${before}`, 400),
    await ask(`actor:many * ${before}`, 401),
    await ask(`actor:many * ${before}`, 3_000),
  ];
  const expected = (total: number, last: string) => [
    { total, ids: '20000 20001 20002' },
    { total, ids: '20401 20402 20403' },
    { total, ids: last },
    { total: total - 10, ids: '20410 20411 20412' },
    { total: total - 10, ids: '20411 20412 20413' },
    { total: total - 10, ids: '23010 23011 23012' },
  ];
  await record(Array.from({ length: count }, (_none, place) => entryOf(first + place, `many ${place % 40}`)));
  expect(await answers()).toEqual(expected(count, '25198 25199'));
  const more = 7_000;
  await record(Array.from({ length: more }, (_none, place) => entryOf(first + count + place, 'many 39')));
  expect(await answers()).toEqual(expected(count + more, '25198 25199 25200'));
});
