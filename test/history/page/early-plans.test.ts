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

// To skip through the index of documents costs nothing while there is little in it, and the plans that are made then are
// kept: after an import each such step would go through all of what it has brought.
test('what is planned while the history is small uses no index of documents unless it asks for documents', async () => {
  // One connection, so that its plans are made before there is much, and its own count of what it uses is complete.
  const pool = createPool(history.database.url, { applicationName: 'annals test plans', maximum: 1 });
  const db = createDatabase(pool);
  try {
    const findPage = createFindPage({ pool, db, regexes: history.regexes, now: () => now });
    const record = createRecorder(db, tenant, () => now);
    const usesOfDocuments = async () => {
      await pool.query('select pg_stat_force_next_flush()');
      const { rows } = await pool.query<{ uses: number }>(
        `select idx_scan as uses from pg_stat_user_indexes where indexrelname = 'change_entry_document'`,
      );
      return rows[0]?.uses;
    };
    const ask = async () => {
      for (const q of [
        '',
        'entity:type1',
        'actor:p1',
        'actor:p*',
        'entity:type1 actor:p*',
        'compoundLogicalQuery:((entity:type1 actor:p*) OR (entity:type2))',
        `entity:type1 occurredAt:(>="${new Date(now - 9e8).toISOString()}" AND <"${new Date(now - 2e8).toISOString()}")`,
      ]) {
        for (const skip of [0, 0, 20, 250, 270, 1]) {
          await findPage(tenant, parseQuery(q, changelogDialect), { skip, size: 20 });
        }
      }
    };
    await ask();
    for (const count of [30, 2_000]) {
      await record(
        Array.from({ length: count }, (_, index) =>
          changeOf({ at: now - index * 450_000, entity: `type${index % 3}`, actor: `p${index % 11}` }),
        ),
      );
      await ask();
      await foldHistory(db, tenant);
      const before = await usesOfDocuments();
      await ask();
      expect({ count, uses: await usesOfDocuments() }).toEqual({ count, uses: before });
    }
  } finally {
    await pool.end();
  }
});
