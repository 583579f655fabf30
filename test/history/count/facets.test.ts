import { CompiledQuery } from 'kysely';
import { expect, test } from 'vitest';
import { dropPortion, setRetention } from '../../../src/history/retention/retention.ts';
import { type Facets, readFacets } from '../../../src/history/search/facets.ts';
import { readHistogram } from '../../../src/history/search/histogram.ts';
import { DictionaryCache } from '../../../src/history/search/names/dictionary-cache.ts';
import { changelogDialect } from '../../../src/history/search/plan/dialect.ts';
import { inQuerySnapshot, queryAt } from '../../../src/history/search/snapshot.ts';
import { foldHistory, foldPortion } from '../../../src/history/upkeep/fold.ts';
import { inTransaction } from '../../../src/postgres/transaction.ts';
import { parseQuery } from '../../../src/query/parse.ts';
import type { Change } from '../../../src/recording/change.ts';
import { createRecorder, recordChange } from '../../../src/recording/record-change.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { Random } from '../../support/oracle/random.ts';
import { trials } from '../../support/oracle/trials.ts';
import { changeOf, openTestHistory } from '../../support/server/history.ts';

const tenant = 'acme';
const minute = 60_000;
const day = 86_400_000;
const now = Date.UTC(2026, 8, 15, 10, 11, 12, 345);
const types = ['create', 'update', 'delete'] as const;
/** Number of facets compared with a plain count. */
const comparisons = trials(10);

const random = new Random();
const history = closeAfterAll(await openTestHistory(tenant, () => now));

/** Some entity types have most entries, and many have as many as others. Each actor favours one. */
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

/** Two concurrent transactions that register the same new kind and actor give each of them two numbers. */
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
    { q: 'entity:~[0-4]$', where: `k.entity ~ '[0-4]$'` },
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

const columns = { entity: 'k.entity', type: 'k.type', actor: 'a.name' } as const;
const fields = ['entity', 'type', 'actor'] as const;

/** The values of a field and a plain count, from one snapshot. */
async function ask(
  dictionaries: DictionaryCache,
  { q, where, size, field }: { q: string; where: string; size: number; field: (typeof fields)[number] },
): Promise<{ found: Facets; counted: { value: string; count: number }[] }> {
  const { database, regexes } = history;
  const { db, pool } = database;
  const known = await dictionaries.get(tenant);
  const query = queryAt(tenant, parseQuery(q.trim(), changelogDialect), now);
  return await inQuerySnapshot({ pool, db, regexes }, query, known, async (snapshot) => {
    const { rows } = await snapshot.transaction.executeQuery<{ value: string; count: number }>(
      CompiledQuery.raw(
        `select ${columns[field]} as value, count(*) as count
           from change_entry e join change_actor a using (tenant, actor) join change_kind k using (tenant, kind)
           where e.tenant = $1 and e.at >= $2 and ${where} group by 1 order by 2 desc, 1`,
        [tenant, snapshot.since],
      ),
    );
    const found = await readFacets(snapshot, { field, size });
    return { found, counted: rows };
  });
}

const sumOf = (values: readonly { count: number }[]) => values.reduce((all, { count }) => all + count, 0);

test(
  'the values with most entries, of some actors or of all, are those of a plain count, ties, twins and what is not folded included',
  async () => {
    const { db, pool } = history.database;
    const dictionaries = new DictionaryCache(pool);
    const record = createRecorder(db, tenant, () => now);
    let compared = 0;
    for (let round = 0; compared < comparisons; round++) {
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
        const size = random.pick([1, 3, 20, 100]);
        const field = random.pick(fields);
        const { found, counted } = await ask(dictionaries, { ...range, size, field });
        expect({ ...range, size, ...found }).toEqual({
          ...range,
          size,
          plan: found.plan,
          field,
          total: sumOf(counted),
          values: counted.slice(0, size),
          others: sumOf(counted.slice(size)),
        });
        compared += 1;
      }
    }
  },
  180_000 + comparisons * 5_000,
);

async function firstTimeOf(q: string): Promise<number> {
  const { pool, db } = history.database;
  const known = await new DictionaryCache(pool).get(tenant);
  const query = queryAt(tenant, parseQuery(q, changelogDialect), now);
  const reading = { pool, db, regexes: history.regexes };
  const { from } = await inQuerySnapshot(reading, query, known, (snapshot) =>
    readHistogram(snapshot, { maxBuckets: 60 }),
  );
  return from;
}

test('the oldest entry of some kinds is looked for among 1,000 entries of an actor, or by tallies', async () => {
  const { db, pool } = history.database;
  const record = createRecorder(db, tenant, () => now);
  const begin = now - 10 * day;
  const updates = Array.from({ length: 999 }, (_none, index) =>
    changeOf({ at: begin + index, actor: 'slow', entity: 'x' }),
  );
  await record([...updates, changeOf({ at: begin + 2_000, actor: 'slow', entity: 'x', type: 'delete' })]);
  const askOldest = async (actors: string[], type: string) => {
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
  expect(await askOldest(['slow'], 'delete')).toEqual([{ oldest: begin + 2_000, decided: true }]);
  await record([changeOf({ at: begin + 1_500, actor: 'slow', entity: 'x' })]);
  expect(await askOldest(['slow'], 'delete')).toEqual([{ oldest: null, decided: false }]);
  expect(await askOldest(['slow'], 'update')).toEqual([{ oldest: begin, decided: true }]);
  expect(await firstTimeOf('actor:slow type:delete')).toBe(begin + 2_000);
  // An entry of another actor counts if it is older than the 1,000 examined.
  await record([changeOf({ at: begin + 1_600, actor: 'late', entity: 'x', type: 'delete' })]);
  expect(await askOldest(['slow', 'late'], 'delete')).toEqual([{ oldest: begin + 1_600, decided: false }]);
  await record([changeOf({ at: begin + 1_400, actor: 'late', entity: 'x', type: 'delete' })]);
  expect(await askOldest(['slow', 'late'], 'delete')).toEqual([{ oldest: begin + 1_400, decided: true }]);
  expect(await firstTimeOf('actor:(slow,late) type:delete')).toBe(begin + 1_400);
  // The oldest of several selections counts, in any order.
  const [late, slow] = ['(actor:late type:delete)', '(actor:slow type:update)'];
  for (const arms of [`(${late} OR ${slow})`, `(${slow} OR ${late})`]) {
    expect(await firstTimeOf(`compoundLogicalQuery:${arms}`)).toBe(begin);
  }
});
