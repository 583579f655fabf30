import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { TimeSlice } from '../../../src/core/fairness/time-slice.ts';
import { readEntries } from '../../../src/history/entries/entry-store.ts';
import { mergedPage } from '../../../src/history/search/merged-page.ts';
import { extendDictionary } from '../../../src/history/search/names/dictionary.ts';
import { readNames } from '../../../src/history/search/names/name-store.ts';
import { changelogDialect } from '../../../src/history/search/plan/dialect.ts';
import { resolve } from '../../../src/history/search/plan/resolve.ts';
import { planTallies } from '../../../src/history/search/plan/tally-plan.ts';
import { entryConditions } from '../../../src/history/search/predicate.ts';
import { searchOf } from '../../../src/history/search/search.ts';
import { foldHistory } from '../../../src/history/upkeep/fold.ts';
import { statementsOf } from '../../../src/postgres/statements.ts';
import { inTransaction } from '../../../src/postgres/transaction.ts';
import { parseQuery } from '../../../src/query/parse.ts';
import { RegexBudget } from '../../../src/query/regex-pool.ts';
import type { Change } from '../../../src/recording/change.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { matches } from '../../support/oracle/query-evaluator.ts';
import { openTestHistory } from '../../support/server/history.ts';

const tenant = 'acme';
const hour = 3_600_000;
const now = Date.UTC(2026, 8, 15, 10, 11, 12, 345);

/**
 * 5,400 changes, in the order of recording: spread over 20 days, crowded in one second, and 300 in one millisecond, so
 * that places of both lists alternate and adjoin.
 */
const changes = Array.from({ length: 5_400 }, (_none, place): Omit<Change, 'identity'> & { name: string } => ({
  at:
    place % 3 === 0
      ? now - ((place * 7_919) % (480 * hour))
      : place % 13 === 0
        ? now - 100 * hour
        : now - 50 * hour - ((place * 31) % 1_000),
  type: (['create', 'update', 'delete'] as const)[place % 3] ?? 'update',
  entity: place % 5 === 0 ? 'customer' : 'order',
  entityId: `d${place % 6}`,
  name: String(place),
  actor: `actor ${place % 7}`,
  related: place % 4 === 0 ? [{ entity: 'group', entityId: String(place % 5) }] : [],
  paths: '{}',
}));

const history = closeAfterAll(await openTestHistory(tenant, () => now));
const { database, regexes, findPage } = history;
const record = createRecorder(database.db, tenant, () => now);
for (let first = 0; first < changes.length; first += 900) {
  await record(changes.slice(first, first + 900).map((change) => ({ ...change, identity: randomBytes(16) })));
  // The last is not folded.
  if (first < 3_000) await foldHistory(database.db, tenant);
}

/** A condition on documents, and one on anything else; each matches over 1,000 entries. */
const queries = [
  ['entity:order entityId:(d1, d2, d4)', 'actor:(actor 1, actor 2)'],
  ['entity:* entityId:d*', 'actor:(actor 3, actor 5) type:(update, delete)'],
  ['related.entityId:(0, 1, 2, 3, 4)', 'entity:customer'],
  ['entity:order entityId:~[0-3]', `actor:~[45]$ occurredAt:>"${new Date(now - 60 * hour).toISOString()}"`],
] as const;

test.each(queries)('pages of (%s) OR (%s) are those of the list', async (onDocuments, tallied) => {
  const query = (q: string) => parseQuery(q, changelogDialect);
  const both = query(`compoundLogicalQuery:((${onDocuments}) OR (${tallied}))`);
  const found = changes.filter((change) => matches(both, change, now));
  const byDocuments = found.filter((change) => !matches(query(tallied), change, now));
  expect(byDocuments.length).toBeGreaterThan(1_000);
  expect(found.length - byDocuments.length).toBeGreaterThan(1_000);
  const list = found
    .toReversed()
    .sort((a, b) => b.at - a.at)
    .map(({ name }) => name);

  const page = async (skip: number, size: number) => {
    const { total, entries } = await findPage(tenant, both, { skip, size });
    expect(total).toBe(list.length);
    return entries.map(({ name }) => name);
  };
  for (let skip = 0; skip < list.length + 700; skip += 700) {
    expect({ skip, names: await page(skip, 700) }).toEqual({ skip, names: list.slice(skip, skip + 700) });
  }
  // Around the switch from one plan to the other, and single entries.
  for (const skip of [899, 900, 901, 999, 1_000, 1_001, 1_337, list.length - 1, list.length]) {
    expect({ skip, names: await page(skip, 7) }).toEqual({ skip, names: list.slice(skip, skip + 7) });
  }
});

test.each([
  ['halved to the end', { few: 3, maxPlaces: 1_000_000 }],
  ['not read where there are many', { few: 3, maxPlaces: 10 }],
  ['known as a whole before the page', { few: 1_000_000, maxPlaces: 1_000_000 }],
])('the second list may be %s: pages are the same', async (_how, limits) => {
  const [[onDocuments, tallied]] = queries;
  const query = parseQuery(`compoundLogicalQuery:((${onDocuments}) OR (${tallied}))`, changelogDialect);
  const list = changes
    .filter((change) => matches(query, change, now))
    .toReversed()
    .sort((a, b) => b.at - a.at)
    .map(({ name }) => name);
  const since = now - 30 * 24 * hour;
  await inTransaction(
    database.db,
    async (transaction) => {
      const dictionary = extendDictionary(
        undefined,
        await readNames(database.pool, tenant, { since: '0', lineage: '' }),
      );
      const slice = new TimeSlice();
      const expression = await resolve(query, { dictionary, regexes, budget: new RegexBudget() });
      const satisfies = await entryConditions(tenant, expression, dictionary, slice);
      const search = await searchOf(expression, satisfies, { tenant, since, dictionary, slice });
      const { intervals = [] } = (await planTallies(expression, dictionary, since, slice)) ?? {};
      const parts = {
        tallied: { now, intervals },
        search,
        everything: { tenant, since, condition: satisfies(expression) },
      };
      for (let skip = 0; skip < list.length + 10; skip += 787) {
        const { total, places } = await mergedPage(transaction, { ...parts, skip, size: 5 }, limits);
        const names = (await readEntries(statementsOf(transaction), tenant, places))?.map(({ name }) => name);
        expect({ skip, total, names }).toEqual({ skip, total: list.length, names: list.slice(skip, skip + 5) });
      }
    },
    { isolation: 'repeatable read' },
  );
});
