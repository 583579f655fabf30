import { expect, test } from 'vitest';
import { createHistoryReads } from '../../src/history/history-reads.ts';
import { createFindPage } from '../../src/history/search/find-page.ts';
import { changelogDialect } from '../../src/history/search/plan/dialect.ts';
import { foldHistory } from '../../src/history/upkeep/fold.ts';
import { settingsOfReads, warmUpStatements } from '../../src/history/warm-up.ts';
import { createPool } from '../../src/postgres/connections/pool.ts';
import { createDatabase } from '../../src/postgres/database.ts';
import { createTenant } from '../../src/postgres/tenants/tenants.ts';
import { parseQuery } from '../../src/query/parse.ts';
import { RegexMatcherPool } from '../../src/query/regex-pool.ts';
import { createRecorder } from '../../src/recording/record-change.ts';
import { closeAfterAll } from '../support/close-after-all.ts';
import { createSingleTestDatabase } from '../support/server/database.ts';
import { changeOf } from '../support/server/history.ts';

const tenant = 'acme';
const now = Date.UTC(2026, 8, 15, 10, 11, 12, 345);
const minute = 60_000;
const types = ['create', 'update', 'delete'] as const;
const regexes = new RegexMatcherPool();

const database = closeAfterAll(await createSingleTestDatabase());
await createTenant(database.db, tenant);
const changes = Array.from({ length: 6_000 }, (_none, index) =>
  changeOf({
    at: now - index * 5 * minute,
    actor: `p${index % 3}`,
    entity: `e${index % 40}`,
    type: types[index % 3] ?? 'update',
  }),
);
await createRecorder(database.db, tenant, () => now)(changes);
await foldHistory(database.db, tenant);
await database.pool.query('analyze');

/** Cached plans, on a connection after some work, of routines that read entries or tallies. */
async function plansAfter(statements: ReturnType<typeof warmUpStatements>, ask: boolean): Promise<Set<string>> {
  const pool = createPool(database.url, { maximum: 1 });
  const db = createDatabase(pool);
  const options = { pool, db, regexes, now: () => now };
  const reads = createHistoryReads(options);
  const findPage = createFindPage(options);
  for (const statement of statements) await pool.query(statement);
  for (const q of ask ? ['', 'actor:p1', 'actor:p1 type:update', 'entity:e1', 'type:update'] : []) {
    const query = parseQuery(q, changelogDialect);
    await findPage(tenant, query, { skip: 0, size: 20 });
    await reads.histogram(tenant, query, { maxBuckets: 60 });
    for (const field of ['entity', 'type', 'actor'] as const) await reads.facets(tenant, query, { field, size: 20 });
  }
  const { rows } = await pool.query<{ text: string }>(
    `select ident as text from pg_backend_memory_contexts where name = 'CachedPlan' and ident ~ 'change_(tally|entry)'`,
  );
  await db.destroy();
  return new Set(rows.map(({ text }) => text));
}

test('after the warm-up, a first page, histogram and facet find cached plans', async () => {
  const prepared = await plansAfter(warmUpStatements(), false);
  const cold = await plansAfter([], true);
  const missing = [...cold].filter((text) => !prepared.has(text));
  expect(missing).toEqual([]);
  expect(cold.size).toBeGreaterThan(10);
});

test('the warm-up plans with the settings under which pages are read', async () => {
  const { rows } = await database.pool.query<{ settings: string[] }>(
    `select proconfig as settings from pg_proc where proname = 'change_read'`,
  );
  const settings = Object.entries(settingsOfReads).map(([name, value]) => `${name}=${value}`);
  expect(settings.toSorted()).toEqual(rows[0]?.settings.toSorted());
  for (const { text } of warmUpStatements().slice(1)) {
    for (const [name, value] of Object.entries(settingsOfReads)) expect(text).toContain(`'${name}', '${value}'`);
  }
});

test('the warm-up reads no entries, even if there is a history', async () => {
  const [page, ...others] = warmUpStatements();
  const { rows } = await database.pool.query<{ page: string }>(page ?? { text: '' });
  const [total, , entries] = rows[0]?.page.split(String.fromCharCode(0x1e)) ?? [];
  expect([total, entries]).toEqual(['0', '0']);
  for (const statement of others) {
    const answer = await database.pool.query<{ entries: number }>(statement);
    expect([statement.text, answer.rows[0]?.entries]).toEqual([statement.text, 0]);
  }
});
