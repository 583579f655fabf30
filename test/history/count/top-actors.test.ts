import { CompiledQuery } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { changelogDialect } from '../../../src/history/ask/dialect.ts';
import { defaultCosts } from '../../../src/history/count/counting-costs.ts';
import { readFacets } from '../../../src/history/count/facets.ts';
import { DictionaryCache } from '../../../src/history/names/dictionary-cache.ts';
import { inQuerySnapshot, queryAt } from '../../../src/history/page/query-snapshot.ts';
import { setRetention } from '../../../src/history/retention/retention.ts';
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
// How many facets are compared with a plain count; 2,000 by hand.
const asked = Number(process.env.ANNALS_FACETS ?? 40);

const random = new Random();
let history: TestHistory;

beforeAll(async () => {
  history = await openTestHistory(tenant, () => now);
});

afterAll(() => history.close());

/** Some actors have most entries, and many have as many as others. */
function someChanges(): Change[] {
  const count = [20, 300, 900][random.below(3)] ?? 20;
  const crowd = random.below(2) === 0 ? now - random.below(60 * day) : undefined;
  const actors = [3, 40, 300][random.below(3)] ?? 3;
  return Array.from({ length: count }, () =>
    changeOf({
      at:
        crowd === undefined
          ? now - random.below(60 * day)
          : crowd - random.below([minute, day][random.below(2)] ?? day),
      actor: `p${Math.floor(random.next() * random.next() * actors)}`,
    }),
  );
}

/** Two transactions that meet the same new actors at once give each of them two numbers. */
async function recordTwins(round: number): Promise<void> {
  const { db } = history.database;
  await inTransaction(db, async (one) => {
    await inTransaction(db, async (other) => {
      for (const [transaction, count] of [
        [one, 70],
        [other, 3],
      ] as const) {
        for (let index = 0; index < count; index++) {
          const change = changeOf({ at: now - (index % 9) * day, actor: `twin ${round}` });
          await recordChange(transaction, tenant, change, now);
        }
      }
    });
  });
}

function someRange(): { q: string; where: string } {
  const to = now - random.below(30 * day);
  const from = to - (random.below(2) === 0 ? random.below(30 * day) : random.below(3 * minute));
  const [since, before] = [from, to].map((time) => new Date(time).toISOString());
  const someActors = { q: 'actor:~[02468]$', where: `a.name ~ '[02468]$'` };
  const everybody = { q: '', where: 'true' };
  const { q, where } = random.below(3) === 0 ? someActors : everybody;
  if (random.below(3) === 0) return { q, where: `${where} and e.at >= ${now - 30 * day}` };
  if (random.below(2) === 0) return { q: `${q} occurredAt:>="${since}"`, where: `${where} and e.at >= ${from}` };
  return {
    q: `${q} occurredAt:(>="${since}" AND <"${before}")`,
    where: `${where} and e.at >= ${from} and e.at < ${to}`,
  };
}

test(
  'the actors with most entries are those of a plain count, ties, twins and what is not folded included',
  async () => {
    const { database, regexes } = history;
    const { db, pool } = database;
    const dictionaries = new DictionaryCache(pool);
    const record = createRecorder(db, tenant, () => now);
    const statements = recordStatements(pool);
    let compared = 0;
    // A range without entries needs no count.
    let empty = 0;
    for (let round = 0; compared < asked; round++) {
      for (let batch = 0; batch < 3; batch++) await record(someChanges());
      if (round < 3) await recordTwins(round);
      if (random.below(3) > 0) await foldPortion(db, tenant, 200);
      if (random.below(3) > 0) await foldHistory(db, tenant);
      if (round === 4) await setRetention(db, tenant, 20, now);
      for (let query = 0; query < 8; query++) {
        const { q, where } = someRange();
        const size = [1, 3, 20, 100][random.below(4)] ?? 20;
        const known = await dictionaries.get(tenant);
        await inQuerySnapshot(
          { pool, db, regexes },
          queryAt(tenant, parseQuery(q.trim(), changelogDialect), now),
          known,
          async (snapshot) => {
            const { rows } = await snapshot.transaction.executeQuery<{ value: string; count: number }>(
              CompiledQuery.raw(
                `select a.name as value, count(*) as count from change_entry e join change_actor a using (tenant, actor)
               where e.tenant = $1 and e.at >= $2 and ${where} group by 1 order by 2 desc, 1`,
                [tenant, snapshot.since],
              ),
            );
            if (rows.length === 0) empty += 1;
            const found = await readFacets(snapshot, { field: 'actor', size }, { ...defaultCosts, bound: 0 });
            const sum = (values: readonly { count: number }[]) => values.reduce((all, { count }) => all + count, 0);
            expect({ q, size, ...found }).toEqual({
              q,
              size,
              field: 'actor',
              total: sum(rows),
              values: rows.slice(0, size),
              others: sum(rows.slice(size)),
            });
          },
        );
        compared += 1;
      }
    }
    expect(statements.filter(({ text }) => text.includes('change_top_actors')).length).toBeGreaterThanOrEqual(
      compared - empty,
    );
  },
  180_000 + asked * 5_000,
);
