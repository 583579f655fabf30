import { CompiledQuery } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { changelogDialect } from '../../../src/history/ask/dialect.ts';
import { defaultCosts } from '../../../src/history/count/counting-costs.ts';
import { type Facets, readFacets } from '../../../src/history/count/facets.ts';
import { DictionaryCache } from '../../../src/history/names/dictionary-cache.ts';
import { inQuerySnapshot, queryAt } from '../../../src/history/page/query-snapshot.ts';
import { dropPortion, setRetention } from '../../../src/history/retention/retention.ts';
import { foldHistory, foldPortion } from '../../../src/history/tallies/fold.ts';
import { inTransaction } from '../../../src/postgres/transaction.ts';
import { parseQuery } from '../../../src/query/parse.ts';
import type { Change } from '../../../src/recording/change.ts';
import { createRecorder, recordChange } from '../../../src/recording/record-change.ts';
import { Random } from '../../support/oracle/random.ts';
import { changeOf, openTestHistory, type TestHistory } from '../../support/server/history.ts';
import { recordStatements } from '../../support/server/statements.ts';

const tenant = 'acme';
const minute = 60_000;
const day = 86_400_000;
const now = Date.UTC(2026, 8, 15, 10, 11, 12, 345);
const types = ['create', 'update', 'delete'] as const;
// How many facets are compared with a plain count; 2,000 by hand.
const asked = Number(process.env.ANNALS_FACETS ?? 40);

const random = new Random();
let history: TestHistory;

beforeAll(async () => {
  history = await openTestHistory(tenant, () => now);
});

afterAll(() => history.close());

/** Some entity types have most entries, and many have as many as others. Each actor has a favourite of its own. */
function someChanges(): Change[] {
  const count = [20, 300, 900][random.below(3)] ?? 20;
  const crowd = random.below(2) === 0 ? now - random.below(60 * day) : undefined;
  const entities = [3, 20, 60][random.below(3)] ?? 3;
  return Array.from({ length: count }, () => {
    const actor = random.below(5);
    return changeOf({
      at:
        crowd === undefined
          ? now + minute - random.below(60 * day)
          : crowd - random.below([minute, day][random.below(2)] ?? day),
      actor: `p${actor}`,
      type: types[random.below(3)] ?? 'update',
      entity: `e${random.below(4) === 0 ? actor + 10 : Math.floor(random.next() * random.next() * entities)}`,
      related: random.below(4) === 0 ? [{ entity: 'group', entityId: 'g' }] : [],
    });
  });
}

/** Two transactions that meet a new kind and a new actor at once give each of them two numbers. */
async function recordTwins(round: number): Promise<void> {
  const { db } = history.database;
  await inTransaction(db, async (one) => {
    await inTransaction(db, async (other) => {
      for (const [transaction, count] of [
        [one, 70],
        [other, 3],
      ] as const) {
        for (let index = 0; index < count; index++) {
          const change = changeOf({ at: now - (index % 9) * day, actor: `p twin ${round}`, entity: `twin ${round}` });
          await recordChange(transaction, tenant, change, now);
        }
      }
    });
  });
}

function someRange(): { q: string; where: string } {
  const to = now + minute - random.below(30 * day);
  const from = to - (random.below(2) === 0 ? random.below(30 * day) : random.below(3 * minute));
  const [since, before] = [from, to].map((time) => new Date(time).toISOString());
  const actors = [
    { q: 'actor:p0', where: `a.name = 'p0'` },
    { q: 'actor:(p1,p3,p4)', where: `a.name in ('p1', 'p3', 'p4')` },
    { q: 'actor:~^p.*[t02468]', where: `a.name ~ '^p.*[t02468]'` },
    { q: '', where: 'true' },
  ][random.below(4)] ?? { q: '', where: 'true' };
  const kinds = [
    { q: '', where: 'true' },
    { q: 'type:update', where: `k.type = 'update'` },
    { q: 'type:(create,delete)', where: `k.type <> 'update'` },
    // Of actors, tallies do not tell how many of some kinds there are.
    ...(actors.q === '' ? [{ q: 'entity:~[0-4]$', where: `k.entity ~ '[0-4]$'` }] : []),
  ];
  const ofKinds = kinds[random.below(kinds.length)] ?? { q: '', where: 'true' };
  const q = `${actors.q} ${ofKinds.q}`;
  const where = `${actors.where} and ${ofKinds.where}`;
  if (random.below(3) === 0) return { q, where: `${where} and e.at >= ${now - 30 * day}` };
  if (random.below(2) === 0) return { q: `${q} occurredAt:>="${since}"`, where: `${where} and e.at >= ${from}` };
  return {
    q: `${q} occurredAt:(>="${since}" AND <"${before}")`,
    where: `${where} and e.at >= ${from} and e.at < ${to}`,
  };
}

const forTallies = { ...defaultCosts, key: 0, candidate: 0, tally: 0 };

/** The facet by entity, whatever its tallies cost, and a plain count in the same snapshot. */
async function ask(
  dictionaries: DictionaryCache,
  { q, where, size }: { q: string; where: string; size: number },
  costs = forTallies,
): Promise<{ found: Facets; counted: { value: string; count: number }[] }> {
  const { database, regexes } = history;
  const { db, pool } = database;
  const known = await dictionaries.get(tenant);
  const query = queryAt(tenant, parseQuery(q.trim(), changelogDialect), now);
  return await inQuerySnapshot({ pool, db, regexes }, query, known, async (snapshot) => {
    const { rows } = await snapshot.transaction.executeQuery<{ value: string; count: number }>(
      CompiledQuery.raw(
        `select k.entity as value, count(*) as count
           from change_entry e join change_actor a using (tenant, actor) join change_kind k using (tenant, kind)
           where e.tenant = $1 and e.at >= $2 and ${where} group by 1 order by 2 desc, 1`,
        [tenant, snapshot.since],
      ),
    );
    const found = await readFacets(snapshot, { field: 'entity', size }, costs);
    return { found, counted: rows };
  });
}

const sumOf = (values: readonly { count: number }[]) => values.reduce((all, { count }) => all + count, 0);

test(
  'the entity types with most entries, of some actors or of all, are those of a plain count, ties, twins and what is not folded included',
  async () => {
    const { db, pool } = history.database;
    const dictionaries = new DictionaryCache(pool);
    const record = createRecorder(db, tenant, () => now);
    const statements = recordStatements(pool);
    let compared = 0;
    // A range that nothing can be in needs no count.
    let empty = 0;
    for (let round = 0; compared < asked; round++) {
      for (let batch = 0; batch < 3; batch++) await record(someChanges());
      if (round < 3) await recordTwins(round);
      if (random.below(3) > 0) await foldPortion(db, tenant, 200);
      if (random.below(3) > 0) await foldHistory(db, tenant);
      if (round === 4) {
        const { horizon } = await setRetention(db, tenant, 20, now);
        await dropPortion(db, tenant, horizon, { maxRows: 5_000 });
      }
      for (let query = 0; query < 8; query++) {
        const range = someRange();
        const size = [1, 3, 20, 100][random.below(4)] ?? 20;
        const { found, counted } = await ask(dictionaries, { ...range, size });
        if (counted.length === 0) empty += 1;
        expect({ ...range, size, ...found }).toEqual({
          ...range,
          size,
          field: 'entity',
          total: sumOf(counted),
          values: counted.slice(0, size),
          others: sumOf(counted.slice(size)),
        });
        compared += 1;
      }
    }
    expect(statements.filter(({ text }) => text.includes('change_top_entities')).length).toBeGreaterThanOrEqual(
      compared - empty,
    );
  },
  180_000 + asked * 5_000,
);

test('entity types that others have most entries of are not counted, and those that may be among the first all are', async () => {
  const { db, pool } = history.database;
  // Of the entity types that everybody uses, the actor has few entries: the first round finds none of those that it has most of.
  const changes = Array.from({ length: 600 }, (_none, index) => {
    const own = index % 3 === 0;
    return changeOf({
      at: now - index * minute,
      actor: own ? 'loner' : `other ${index % 2}`,
      entity: own ? `rare ${index % 36}` : `common ${index % 4}`,
    });
  });
  const few = ['common 0', 'common 1'].map((entity) => changeOf({ at: now - minute, actor: 'loner', entity }));
  await createRecorder(db, tenant, () => now)([...changes, ...few]);
  await foldHistory(db, tenant);
  const range = { q: 'actor:loner', where: `a.name = 'loner' and e.at >= ${now - 30 * day}`, size: 2 };
  const statements = recordStatements(pool);
  const byTallies = () => statements.filter(({ text }) => text.includes('change_top_entities')).length;
  const { found, counted } = await ask(new DictionaryCache(pool), range);
  expect(found).toEqual({
    field: 'entity',
    total: 202,
    values: counted.slice(0, 2),
    others: 202 - sumOf(counted.slice(0, 2)),
  });
  expect(byTallies()).toBe(1);
  // To read 202 entries costs less than to find out how many of each kind there may be.
  expect((await ask(new DictionaryCache(pool), range, defaultCosts)).found).toEqual(found);
  expect(byTallies()).toBe(1);
});
