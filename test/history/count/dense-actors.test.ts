import { afterAll, beforeAll, expect, test } from 'vitest';
import { changelogDialect } from '../../../src/history/ask/dialect.ts';
import { defaultCosts, talliesByType } from '../../../src/history/count/counting-costs.ts';
import { type Facets, readFacets } from '../../../src/history/count/facets.ts';
import { type Histogram, readHistogram } from '../../../src/history/count/histogram.ts';
import { DictionaryCache } from '../../../src/history/names/dictionary-cache.ts';
import { partsOf } from '../../../src/history/page/query-parts.ts';
import { inQuerySnapshot, type QuerySnapshot, queryAt } from '../../../src/history/page/query-snapshot.ts';
import { dropPortion, readHorizon, setRetention } from '../../../src/history/retention/retention.ts';
import { foldHistory, foldPortion } from '../../../src/history/tallies/fold.ts';
import { inTransaction } from '../../../src/postgres/transaction.ts';
import { parseQuery } from '../../../src/query/parse.ts';
import type { Change } from '../../../src/recording/change.ts';
import { createRecorder, recordChange } from '../../../src/recording/record-change.ts';
import { Random } from '../../support/oracle/random.ts';
import { changeOf, openTestHistory, type TestHistory } from '../../support/server/history.ts';
import { withoutTalliesByType } from '../../support/server/tallies.ts';

const tenant = 'acme';
const minute = 60_000;
const day = 86_400_000;
const now = Date.UTC(2026, 8, 15, 10, 11, 12, 345);
const types = ['create', 'update', 'delete'] as const;
// How many steps the random history has; 1,000 by hand.
const steps = Number(process.env.ANNALS_DENSE_STEPS ?? 12);

const random = new Random();
let history: TestHistory;

beforeAll(async () => {
  history = await openTestHistory(tenant, () => now);
});

afterAll(() => history.close());

/** A few actors with most entries. Some of them have many kinds, others few. */
function someChanges(): Change[] {
  const count = [30, 300, 1_200][random.below(3)] ?? 30;
  const crowd = random.below(2) === 0 ? now - random.below(60 * day) : undefined;
  return Array.from({ length: count }, () => {
    const actor = `p${Math.floor(random.next() * random.next() * 6)}`;
    return changeOf({
      at:
        crowd === undefined
          ? now + minute - random.below(60 * day)
          : crowd - random.below([minute, day][random.below(2)] ?? day),
      actor,
      type: types[random.below(3)] ?? 'update',
      entity: `e${random.below(actor === 'p1' ? 2 : 40)}`,
    });
  });
}

/** Two transactions that meet a new actor at once give it two numbers. */
async function recordTwins(): Promise<Change[]> {
  const { db } = history.database;
  const twins = Array.from({ length: 160 }, (_none, index) =>
    changeOf({
      at: now - (index % 9) * day,
      actor: 'twin',
      entity: `e${index % 40}`,
      type: types[index % 3] ?? 'update',
    }),
  );
  await inTransaction(db, async (one) => {
    await inTransaction(db, async (other) => {
      for (const [index, change] of twins.entries())
        await recordChange(index % 3 === 0 ? one : other, tenant, change, now);
    });
  });
  return twins;
}

interface Asked {
  q: string;
  matches: (change: Change) => boolean;
}

const ofActors: Asked[] = [
  { q: 'actor:p0', matches: ({ actor }) => actor === 'p0' },
  { q: 'actor:p1', matches: ({ actor }) => actor === 'p1' },
  { q: 'actor:twin', matches: ({ actor }) => actor === 'twin' },
  { q: 'actor:(p0,p2,twin,nobody)', matches: ({ actor }) => ['p0', 'p2', 'twin'].includes(actor) },
  { q: 'actor:p*', matches: ({ actor }) => actor.startsWith('p') },
  { q: 'actor:nobody', matches: () => false },
];
const ofKinds: Asked[] = [
  { q: '', matches: () => true },
  { q: '', matches: () => true },
  { q: 'type:update', matches: ({ type }) => type === 'update' },
  { q: 'type:(create, delete)', matches: ({ type }) => type !== 'update' },
  { q: 'entity:(e0,e1,e2)', matches: ({ entity }) => ['e0', 'e1', 'e2'].includes(entity) },
  { q: 'entity:e1 type:delete', matches: ({ entity, type }) => entity === 'e1' && type === 'delete' },
];

function someQuery(): Asked {
  const actors = ofActors[random.below(ofActors.length)] ?? { q: '', matches: () => true };
  const kinds = ofKinds[random.below(ofKinds.length)] ?? { q: '', matches: () => true };
  const from = now - random.below(60 * day);
  const range = random.below(2) === 0;
  return {
    q: `${actors.q} ${kinds.q} ${range ? `occurredAt:>="${new Date(from).toISOString()}"` : ''}`.trim(),
    matches: (change) =>
      actors.matches(change) && kinds.matches(change) && change.at >= (range ? from : now - 30 * day),
  };
}

async function read<Answer>(
  q: string,
  reader: (snapshot: QuerySnapshot, most: number, costs: typeof defaultCosts) => Promise<Answer>,
  most: number,
): Promise<Answer> {
  const { database, regexes } = history;
  const reading = { pool: database.pool, db: database.db, regexes };
  const query = queryAt(tenant, parseQuery(q, changelogDialect), now);
  const names = await new DictionaryCache(database.pool).get(tenant);
  // By tallies, whatever they cost, or as it is cheaper.
  const costs = random.below(4) === 0 ? defaultCosts : { ...defaultCosts, entry: 1e9 };
  return await inQuerySnapshot(reading, query, names, (snapshot) => reader(snapshot, most, costs));
}

const readHistogramOf = (q: string, buckets: number): Promise<Histogram> =>
  read(q, (snapshot, maxBuckets, costs) => readHistogram(snapshot, { maxBuckets }, costs), buckets);

const readTypesOf = (q: string): Promise<Facets> =>
  read(q, (snapshot, size, costs) => readFacets(snapshot, { field: 'type', size }, costs), 3);

async function check(recorded: readonly Change[], horizon: number): Promise<void> {
  const { q, matches } = someQuery();
  const wanted = recorded.filter((change) => change.at >= horizon && matches(change));
  const found = await readHistogramOf(q, [1, 24, 60, 500][random.below(4)] ?? 60);
  const { at: first = 0 } = found.buckets[0] ?? {};
  const buckets = found.buckets.map(({ at }, index) => {
    const before = found.buckets[index + 1]?.at ?? found.to + 1;
    const own = wanted.filter((change) => change.at >= at && change.at < before);
    const [create = 0, update = 0, deleted = 0] = types.map((type) => own.filter((one) => one.type === type).length);
    return { at, count: own.length, create, update, delete: deleted };
  });
  expect(wanted.filter(({ at }) => at < first)).toEqual([]);
  if (wanted.length > 0)
    expect({ q, from: found.from }).toEqual({ q, from: Math.min(found.to, ...wanted.map(({ at }) => at)) });
  expect({ q, ...found }).toEqual({
    q,
    from: found.from,
    to: found.to,
    interval: found.interval,
    total: wanted.length,
    buckets,
    after: wanted.filter(({ at }) => at > found.to).length,
  });
  const counted = [...Map.groupBy(wanted, ({ type }) => type)].map(([value, own]) => ({ value, count: own.length }));
  counted.sort((one, other) => other.count - one.count || (one.value < other.value ? -1 : 1));
  expect({ q, ...(await readTypesOf(q)) }).toEqual({
    q,
    field: 'type',
    total: wanted.length,
    values: counted,
    others: 0,
  });
}

test('a histogram and facets by type of dense actors are a plain count, whatever was folded, and by which version', async () => {
  const { db, pool } = history.database;
  const record = createRecorder(db, tenant, () => now);
  const recorded = [...(await recordTwins())];
  let keepDays = 59;
  for (let step = 0; step < steps; step++) {
    const changes = someChanges();
    await record(changes);
    recorded.push(...changes);
    const act = random.below(8);
    if (act < 3) await foldHistory(db, tenant);
    else if (act < 5) await foldPortion(db, tenant, 1 + random.below(1_000));
    // The cells of actors as an earlier version left them: some of them stay so, others a fold writes anew.
    else if (act < 6) await withoutTalliesByType(pool, tenant);
    else if (act < 7 && step > steps / 2) {
      keepDays = Math.max(20, keepDays - 9);
      const { horizon } = await setRetention(db, tenant, keepDays, now);
      await dropPortion(db, tenant, horizon, { maxRows: 5_000 });
    }
    const horizon = await readHorizon(db, tenant, now);
    for (let asked = 0; asked < 3; asked++) await check(recorded, horizon);
  }
}, 600_000);

test('where an actor has tallies by type, those of its kinds are not read', async () => {
  const { db, pool } = history.database;
  const changes = Array.from({ length: 900 }, (_none, index) =>
    changeOf({
      at: now - (index % 300) * minute,
      actor: 'machine',
      entity: `e${index % 40}`,
      type: types[index % 3] ?? 'update',
    }),
  );
  await createRecorder(db, tenant, () => now)(changes);
  await foldHistory(db, tenant);
  const ofMachine = `tenant = '${tenant}' and actor = (select actor from change_actor where name = 'machine')`;
  const { rows } = await pool.query(
    `select level::integer from change_tally where ${ofMachine} and kind < 0 group by 1 order by 1`,
  );
  expect(rows).toEqual([{ level: 0 }, { level: 1 }, { level: 2 }, { level: 3 }]);
  const whole = await readHistogramOf('actor:machine', 24);
  expect(whole.total).toBe(900);
  await pool.query(
    `update change_tally set upto = array_fill(0::bigint, array[cardinality(upto)]) where ${ofMachine} and kind > 0`,
  );
  expect(await readHistogramOf('actor:machine', 24)).toEqual(whole);
  const values = types.map((value) => ({ value, count: 300 }));
  expect((await readTypesOf('actor:machine')).values).toEqual(
    values.toSorted((one, other) => (one.value < other.value ? -1 : 1)),
  );
});

test('of many actors and a type with many kinds, tallies by type are read where those by kind are too many', async () => {
  const { database, regexes } = history;
  const { db, pool } = database;
  const record = createRecorder(db, tenant, () => now);
  // 4 actors with 1,001 tallies each are more than a plan reads without a look at the entries.
  await record(
    Array.from({ length: 1_300 }, (_none, index) =>
      changeOf({ at: now - index * minute, actor: `many${index % 4}`, entity: `many${index % 1_000}` }),
    ),
  );
  await foldHistory(db, tenant);
  const query = parseQuery('actor:many* type:update', changelogDialect);
  const ask = async <Answer>(work: (snapshot: QuerySnapshot) => Promise<Answer>) => {
    const names = await new DictionaryCache(pool).get(tenant);
    return await inQuerySnapshot({ pool, db, regexes }, queryAt(tenant, query, now), names, work);
  };
  const tallied = await ask((snapshot) =>
    partsOf(snapshot, (selection) => talliesByType(selection, snapshot.dictionary)),
  );
  expect(tallied.search).toBeUndefined();
  expect(tallied.intervals).toHaveLength(1);
  expect((await ask((snapshot) => partsOf(snapshot))).intervals).toEqual([]);
  const found = await ask((snapshot) => readHistogram(snapshot, { maxBuckets: 60 }));
  expect(found).toMatchObject({ from: now - 1_299 * minute, total: 1_300, after: 0 });
  expect(found.buckets.reduce((sum, { update }) => sum + update, 0)).toBe(1_300);
  // Where an actor has 1,000 older entries of another type, the oldest is looked for among all.
  await record(
    Array.from({ length: 1_000 }, (_none, index) =>
      changeOf({ at: now - 5 * day - index, actor: 'many0', entity: 'many0', type: 'create' }),
    ),
  );
  expect(await ask((snapshot) => readHistogram(snapshot, { maxBuckets: 60 }))).toEqual(found);
});

test('the oldest entry of some kinds is looked for among 1,000 entries of an actor, or by tallies', async () => {
  const { db, pool } = history.database;
  const record = createRecorder(db, tenant, () => now);
  const begin = now - 10 * day;
  const updates = Array.from({ length: 999 }, (_none, index) =>
    changeOf({ at: begin + index, actor: 'slow', entity: 'x' }),
  );
  await record([...updates, changeOf({ at: begin + 2_000, actor: 'slow', entity: 'x', type: 'delete' })]);
  const ask = async (actors: string[], type: string) => {
    // One statement for each: a cluster joins no tables by anything but the tenant.
    const foundActors = await pool.query('select actor from change_actor where tenant = $1 and name = any ($2)', [
      tenant,
      actors,
    ]);
    const foundKinds = await pool.query(
      `select kind from change_kind where tenant = $1 and entity = 'x' and type = $2`,
      [tenant, type],
    );
    const { rows } = await pool.query('select oldest, decided from change_oldest($1, $2, $3, $4, null)', [
      tenant,
      foundActors.rows.map(({ actor }) => actor),
      foundKinds.rows.map(({ kind }) => kind),
      begin,
    ]);
    return rows;
  };
  expect(await ask(['slow'], 'delete')).toEqual([{ oldest: begin + 2_000, decided: true }]);
  await record([changeOf({ at: begin + 1_500, actor: 'slow', entity: 'x' })]);
  expect(await ask(['slow'], 'delete')).toEqual([{ oldest: null, decided: false }]);
  expect(await ask(['slow'], 'update')).toEqual([{ oldest: begin, decided: true }]);
  expect((await readHistogramOf('actor:slow type:delete', 60)).from).toBe(begin + 2_000);
  // One of another actor counts where it is older than the 1,000 that were looked at.
  await record([changeOf({ at: begin + 1_600, actor: 'late', entity: 'x', type: 'delete' })]);
  expect(await ask(['slow', 'late'], 'delete')).toEqual([{ oldest: begin + 1_600, decided: false }]);
  await record([changeOf({ at: begin + 1_400, actor: 'late', entity: 'x', type: 'delete' })]);
  expect(await ask(['slow', 'late'], 'delete')).toEqual([{ oldest: begin + 1_400, decided: true }]);
  expect((await readHistogramOf('actor:(slow,late) type:delete', 60)).from).toBe(begin + 1_400);
  // Of several selections the oldest counts, whichever comes first.
  const [late, slow] = ['(actor:late type:delete)', '(actor:slow type:update)'];
  for (const arms of [`(${late} OR ${slow})`, `(${slow} OR ${late})`]) {
    expect((await readHistogramOf(`compoundLogicalQuery:${arms}`, 60)).from).toBe(begin);
  }
});
