import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { readNews } from '../../../src/history/feed/follower.ts';
import { givePositions } from '../../../src/history/feed/positions.ts';
import { foldHistory } from '../../../src/history/upkeep/fold.ts';
import { createPool } from '../../../src/postgres/connections/pool.ts';
import { createDatabase } from '../../../src/postgres/database.ts';
import { createTenant } from '../../../src/postgres/tenants/tenants.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { createSingleTestDatabase, createTestDatabaseForThisTest } from '../../support/server/database.ts';
import { changeOf } from '../../support/server/history.ts';
import { expectDense } from '../../support/server/positions.ts';

const tenant = 'acme';
const now = Date.UTC(2026, 8, 15);
const changes = 400;

/** Rows and entries of indexes that a statement reads of the deltas and the positions, dead ones among them. */
const readBy = `
  select coalesce(sum(pg_stat_get_xact_tuples_returned(c.oid)), 0)::integer as read
    from pg_class c where c.relname ~ '^change_(delta|position)'`;

test('neither a round nor a look for news reads what an old snapshot keeps: numbered and folded deltas', async () => {
  // The counters of one server.
  const { db, pool, url } = await createTestDatabaseForThisTest(createSingleTestDatabase);
  await createTenant(db, tenant);
  const old = new pg.Client(url);
  await old.connect();
  // One connection has the counters of one transaction.
  const counted = createPool(url, { maximum: 1 });
  onTestFinished(async () => {
    await old.end();
    await counted.end();
  });
  // They are those of its process: what a parallel worker reads is not among them.
  await counted.query('set max_parallel_workers_per_gather = 0');
  // A sequential scan counts live rows alone. The planner prefers it once autovacuum has analysed the table.
  await counted.query('set enable_seqscan = off');
  await old.query('begin isolation level repeatable read');
  await old.query('select count(*) from change_delta');
  // An open transaction of before does the same to transaction ids.
  await old.query('select pg_current_xact_id()');
  const record = createRecorder(db, tenant, () => now);
  for (let change = 0; change < changes; change += 1) {
    await record([changeOf({ at: now + change })]);
    if (change % 10 === 9) await givePositions(db, tenant);
  }
  expect(await foldHistory(db, tenant)).toBe(changes);
  const readDuring = async (statement: () => Promise<unknown>) => {
    await counted.query('begin');
    const before = (await counted.query(readBy)).rows[0].read;
    const rows = await statement();
    const read = (await counted.query(readBy)).rows[0].read - before;
    await counted.query('commit');
    return { read, rows };
  };
  const rowsOf = (text: string) => async () => (await counted.query(text)).rows;
  const all = await readDuring(
    rowsOf(`select count(*)::integer as live from change_delta where tenant = '${tenant}' and delta > 0`),
  );
  expect(all.rows).toEqual([{ live: 0 }]);
  // They are there: whoever looks at all reads them.
  expect(all.read).toBeGreaterThanOrEqual(changes);

  const news = await readDuring(() => readNews(createDatabase(counted), [tenant], false));
  expect(news.rows).toMatchObject([{ isDue: false }]);
  expect(news.read).toBeLessThan(20);
  const round = rowsOf(`select change_position_give('${tenant}')::integer as given`);
  const nothing = await readDuring(round);
  expect(nothing.rows).toEqual([{ given: 0 }]);
  expect(nothing.read).toBeLessThan(20);
  for (let change = 0; change < 3; change += 1) await record([changeOf({ at: now + changes + change })]);
  const some = await readDuring(round);
  expect(some.rows).toEqual([{ given: 3 }]);
  expect(some.read).toBeLessThan(60);
  await old.query('commit');
  await expectDense({ db, pool }, tenant);
});
