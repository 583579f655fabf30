import { expect, test } from 'vitest';
import { createExportHistory } from '../../../src/history/export/export-history.ts';
import { createFindPage } from '../../../src/history/search/find-page.ts';
import { DictionaryCache } from '../../../src/history/search/names/dictionary-cache.ts';
import { changelogDialect } from '../../../src/history/search/plan/dialect.ts';
import { createPool } from '../../../src/postgres/connections/pool.ts';
import { createDatabase } from '../../../src/postgres/database.ts';
import { createTenant } from '../../../src/postgres/tenants/tenants.ts';
import { parseQuery } from '../../../src/query/parse.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { changeOf, openTestHistory } from '../../support/server/history.ts';

const now = Date.UTC(2026, 8, 15, 10, 11, 12, 345);
const entries = 3_000;

const history = closeAfterAll(await openTestHistory('known', () => now));

test('of a tenant that the statistics do not know, a query reads each row a few times and not once for each entry', async () => {
  const { url, pool: others, db: theirs } = history.database;
  // One connection, so that its own count of what it reads is complete.
  const pool = createPool(url, { applicationName: 'annals test plans', maximum: 1 });
  const db = createDatabase(pool);
  const { regexes } = history;
  try {
    await record('known');
    await others.query('vacuum analyze change_entry, change_related, change_kind, change_actor');
    await createTenant(theirs, 'unknown');
    await record('unknown');
    const findPage = createFindPage({ pool, db, regexes, now: () => now });
    const exports = createExportHistory({ db, regexes, now: () => now, dictionaries: new DictionaryCache(pool) });
    for (const [q, total] of [
      ['related.entityId:*', entries],
      ['related.entityId:~[05]$', entries / 5],
      ['related.entityId:(c-7, c-8) actor:*', 2],
      ['compoundLogicalQuery:((related.entityId:*7) OR (entity:order entityId:*8))', entries / 5],
    ] as const) {
      const before = await rowsRead();
      const page = await findPage('unknown', parseQuery(q, changelogDialect), { skip: 0, size: 20 });
      expect({ q, total: page.total }).toEqual({ q, total });
      const between = await rowsRead();
      expect({ q, few: between - before < 20 * entries }).toEqual({ q, few: true });
      let exported = 0;
      await exports.run(
        { tenant: 'unknown', q, format: 'NDJSON', askedAt: now, signal: new AbortController().signal },
        async (piece) => {
          exported += piece.entries;
        },
      );
      expect({ q, exported }).toEqual({ q, exported: total });
      expect({ q, few: (await rowsRead()) - between < 20 * entries }).toEqual({ q, few: true });
    }
  } finally {
    await pool.end();
  }

  async function record(tenant: string): Promise<void> {
    const recorder = createRecorder(theirs, tenant, () => now);
    for (let done = 0; done < entries; done += 1_000) {
      await recorder(
        Array.from({ length: 1_000 }, (_none, place) => {
          const number = done + place;
          const related = [{ entity: 'customer', entityId: `c-${number}` }];
          return changeOf({ at: now - number * 1_000, entityId: `o-${number}`, related });
        }),
      );
    }
  }

  /** The rows that this connection has read from the tables of the history. */
  async function rowsRead(): Promise<number> {
    await pool.query('select pg_stat_force_next_flush()');
    const { rows } = await pool.query<{ read: number }>(
      `select (sum(idx_tup_read) + (select sum(seq_tup_read) from pg_stat_user_tables where relname in ('change_entry', 'change_related')))::bigint as read
         from pg_stat_user_indexes where relname in ('change_entry', 'change_related')`,
    );
    return rows[0]?.read ?? 0;
  }
});
