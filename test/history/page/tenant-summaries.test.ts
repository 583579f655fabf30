import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { setRetention } from '../../../src/history/retention/retention.ts';
import { type HistorySummary, summariseTenants } from '../../../src/history/search/history-summary.ts';
import { foldHistory } from '../../../src/history/upkeep/fold.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { createTestDatabaseForThisTest } from '../../support/server/database.ts';
import { changeOf } from '../../support/server/history.ts';

const now = Date.UTC(2026, 8, 15, 10, 11, 12);
const day = 86_400_000;

test('the summaries of all tenants equal those of each tenant, folded or not, with retention or without', async () => {
  const { db } = await createTestDatabaseForThisTest();
  const tenants = ['empty', 'folded', 'kept', 'limited', 'mixed'];
  for (const tenant of tenants) await sql`insert into tenant (tenant) values (${tenant})`.execute(db);
  const changes = (from: number, count: number) =>
    Array.from({ length: count }, (_, n) => changeOf({ at: now - (from + n) * day, entityId: `${from + n}` }));
  for (const tenant of tenants.slice(1)) await createRecorder(db, tenant, () => now)(changes(0, 100));
  for (const tenant of ['folded', 'limited', 'mixed']) await foldHistory(db, tenant);
  await createRecorder(db, 'mixed', () => now)(changes(2_000, 7));
  for (const tenant of ['kept', 'limited']) await setRetention(db, tenant, 30, now);

  const found = await Array.fromAsync(summariseTenants(db, now));
  expect(found.map(({ name }) => name)).toEqual(tenants);
  for (const { name, createdAt, ...summary } of found) {
    expect(createdAt).toBeInstanceOf(Date);
    const { rows } = await sql<HistorySummary>`
      select entries, oldest, newest from change_summary(${name}, ${now}::bigint)`.execute(db);
    expect({ name, ...summary }).toEqual({ name, ...rows[0] });
  }
  expect(found.map(({ entries }) => entries)).toEqual([0, 100, 31, 31, 107]);
});
