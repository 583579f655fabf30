import { expect, test } from 'vitest';
import { createFindPage } from '../../../src/history/search/find-page.ts';
import { changelogDialect } from '../../../src/history/search/plan/dialect.ts';
import { foldHistory } from '../../../src/history/upkeep/fold.ts';
import { createPool } from '../../../src/postgres/connections/pool.ts';
import { createDatabase } from '../../../src/postgres/database.ts';
import { parseQuery } from '../../../src/query/parse.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { changeOf, openTestHistory } from '../../support/server/history.ts';

const tenant = 'acme';
const now = Date.UTC(2026, 8, 15, 10, 11, 12, 345);

const history = closeAfterAll(await openTestHistory(tenant, () => now));

// All changes of one transaction of a source have one time. A row of the page is then found by its time and its number, and an index that has
// the time alone would read all of that moment for each of them.
test('a page of a moment that most entries share reads none of them by an index of times alone', async () => {
  const pool = createPool(history.database.url, { applicationName: 'annals test moment', maximum: 1 });
  const db = createDatabase(pool);
  try {
    const findPage = createFindPage({ pool, db, regexes: history.regexes, now: () => now });
    const record = createRecorder(db, tenant, () => now);
    for (let batch = 0; batch < 10; batch += 1) {
      await record(
        Array.from({ length: 2_000 }, (_, index) =>
          changeOf({ at: now - 1_000, entity: 'line', entityId: `${index % 7}`, actor: `p${index % 3}` }),
        ),
      );
    }
    for (let batch = 0; batch < 8; batch += 1) {
      await record(
        Array.from({ length: 2_000 }, (_, index) =>
          changeOf({ at: now - 20_000_000 + batch * 2_000 + index, entity: 'other' }),
        ),
      );
    }
    await foldHistory(db, tenant);
    await pool.query('analyze change_entry');
    const readByTimes = async () => {
      await pool.query('select pg_stat_force_next_flush()');
      const { rows } = await pool.query<{ entries: string }>(
        `select idx_tup_read as entries from pg_stat_user_indexes where indexrelname = 'change_entry_identity'`,
      );
      return rows[0]?.entries;
    };
    const before = await readByTimes();
    for (const q of ['', 'entity:line', 'entity:line entityId:3', 'actor:p1', 'actor:p*']) {
      for (const skip of [0, 1_000, 2_400]) {
        await findPage(tenant, parseQuery(q, changelogDialect), { skip, size: 20 });
      }
    }
    expect(await readByTimes()).toBe(before);
  } finally {
    await pool.end();
  }
});

// With many moments in the statistics and most entries in one of them, PostgreSQL preferred the index of identities and an incremental sort:
// 100 rows took 120 s. It depends on costs that nearly tie, so the setting is what can be tested.
test('the routines that find a row by its time and its number sort only where nothing else will do', async () => {
  const { rows } = await history.database.pool.query<{ name: string }>(
    `select proname as name from pg_proc
      where pronamespace = 'public'::regnamespace and proname in ('change_read', 'change_read_documents', 'change_read_paths', 'change_oldest')
        and 'enable_incremental_sort=off' = any (proconfig) and 'enable_sort=off' = any (proconfig) order by 1`,
  );
  expect(rows.map(({ name }) => name)).toEqual([
    'change_oldest',
    'change_read',
    'change_read_documents',
    'change_read_paths',
  ]);
});
