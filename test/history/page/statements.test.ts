import type pg from 'pg';
import { expect, test } from 'vitest';
import { createHistoryReads } from '../../../src/history/history-reads.ts';
import { createFindPage } from '../../../src/history/search/find-page.ts';
import { changelogDialect } from '../../../src/history/search/plan/dialect.ts';
import { createPool } from '../../../src/postgres/connections/pool.ts';
import { createDatabase } from '../../../src/postgres/database.ts';
import { parseQuery } from '../../../src/query/parse.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { changeOf, openTestHistory } from '../../support/server/history.ts';

const tenant = 'acme';
const day = 86_400_000;
const now = Date.UTC(2026, 8, 15, 10, 11, 12, 345);

/** The statements of a read. */
const statements: { text: string; values: unknown[] }[] = [];

const paths = '{"price":{"before":1,"after":2}}';

const history = closeAfterAll(await openTestHistory(tenant, () => now));
// The oldest entries are more than the first look takes.
const old = Array.from({ length: 400 }, (_none, place) => changeOf({ at: now - 20 * day + place, paths }));
const news = Array.from({ length: 10 }, (_none, place) => changeOf({ at: now - day + place, paths }));
await createRecorder(history.database.db, tenant, () => now)([...old, ...news]);

test('a page of a search that joins nothing asks for no estimate, and one that joins rows does', async () => {
  const texts = async (q: string) => {
    await watched(async (means) => {
      const page = { skip: 0, size: 20 };
      expect((await createFindPage(means)(tenant, parseQuery(q, changelogDialect), page)).total).toBe(410);
    });
    return statements.map(({ text }) => text);
  };
  const isEstimate = (text: string) => text.includes('explain');
  expect((await texts('path:price')).filter(isEstimate)).toHaveLength(0);
  expect((await texts('path:price actor:"Jane Doe"')).filter(isEstimate)).toHaveLength(0);
  expect((await texts('path:price entity:order entityId:*')).filter(isEstimate)).toHaveLength(1);
});

test('few entries with a path are read by one statement and counted, and many are counted by others', async () => {
  const counted = async (q: string, total: number) => {
    await watched(async (means) => {
      const reads = createHistoryReads(means);
      const query = parseQuery(q, changelogDialect);
      const histogram = await reads.histogram(tenant, query, { maxBuckets: 60 });
      expect({ q, total: histogram.total }).toEqual({ q, total });
      const facets = await reads.facets(tenant, query, { field: 'path', size: 20 });
      expect({ q, ...facets }).toMatchObject({ q, total, values: [{ value: 'price', count: total }], others: 0 });
    });
    const pages = statements.filter(({ text }) => text.includes('change_page_paths')).length;
    return { pages, searches: statements.some(({ text }) => text.includes('as oldest')) };
  };
  const from = new Date(now - 2 * day).toISOString();
  expect(await counted(`path:price occurredAt:>="${from}"`, 10)).toEqual({ pages: 2, searches: false });
  expect(await counted('path:price', 410)).toEqual({ pages: 2, searches: true });
});

type Means = Parameters<typeof createFindPage>[0];

/** Runs the work with a connection of its own, and notes its statements. */
async function watched(work: (means: Means) => Promise<void>): Promise<void> {
  const pool = createPool(history.database.url, { maximum: 1 });
  pool.on('connect', (client) => {
    const query: (...args: unknown[]) => unknown = client.query.bind(client);
    Object.assign(client, {
      query(...args: [unknown, ...unknown[]]) {
        const [statement, values] = args;
        const config: pg.QueryConfig =
          typeof statement === 'string' ? { text: statement } : (statement as pg.QueryConfig);
        statements.push({ text: config.text, values: config.values ?? (Array.isArray(values) ? values : []) });
        return query(...args);
      },
    });
  });
  const db = createDatabase(pool);
  statements.length = 0;
  try {
    await work({ pool, db, regexes: history.regexes, now: () => now });
  } finally {
    await db.destroy();
  }
}
