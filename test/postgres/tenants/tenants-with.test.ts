import { beforeEach, expect, test } from 'vitest';
import { createTenant } from '../../../src/postgres/tenants/tenants.ts';
import { sharedLook, type TenantWork, tenantsWith } from '../../../src/postgres/tenants/tenants-with.ts';
import { inTransaction } from '../../../src/postgres/transaction.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { createTestDatabase } from '../../support/server/database.ts';

const used: TenantWork = { table: 'usage_count', condition: 'amount > 0' };
const tenants: TenantWork = { table: 'tenant', condition: 'true' };

const database = closeAfterAll(await createTestDatabase());
for (const tenant of ['umbrella', 'acme', 'globex']) await createTenant(database.db, tenant);

beforeEach(async () => {
  await database.pool.query('delete from usage_count');
  await database.pool.query('delete from found_work');
});

const use = (tenant: string, requests: number) =>
  database.pool.query("insert into usage_count values ($1, 1, 'requests', $2)", [tenant, requests]);
const age = (fresh: string, looked = '0 s') =>
  database.pool.query('update found_work set fresh_for = $1, looked_at = looked_at + $2::interval', [fresh, looked]);

/** Each call is one of another process. */
const lookOfProcess = (work: TenantWork) => sharedLook(database.db, [tenants, used])(work);

test('a look finds the tenants with rows that match, each once, by name', async () => {
  await use('umbrella', 1);
  await use('acme', 2);
  await use('globex', 0);
  expect(await tenantsWith(database.db, used)).toEqual(['acme', 'umbrella']);
  expect(await tenantsWith(database.db, tenants)).toEqual(['acme', 'globex', 'umbrella']);
});

test('one look answers the questions of all processes until its answers are old', async () => {
  expect(await lookOfProcess(used)).toEqual([]);
  expect(await lookOfProcess(tenants)).toEqual(['acme', 'globex', 'umbrella']);
  await age('1 h');
  await use('acme', 1);
  expect(await lookOfProcess(used)).toEqual([]);
  await age('0 s');
  expect(await lookOfProcess(used)).toEqual(['acme']);
});

test('answers are fresh for half a second at least', async () => {
  await lookOfProcess(used);
  const { rows } = await database.pool.query("select fresh_for >= interval '0.5 s' as fresh from found_work");
  expect(rows).toEqual([{ fresh: true }]);
});

test('answers of a moment that has not come are old, because a clock has gone back', async () => {
  await lookOfProcess(used);
  await age('1 h', '1 min');
  await use('acme', 1);
  expect(await lookOfProcess(used)).toEqual(['acme']);
});

test('a process that comes while another one looks takes the answers of before, and does not wait', async () => {
  await use('acme', 1);
  await lookOfProcess(used);
  await age('0 s');
  await use('globex', 1);
  await inTransaction(database.db, async (looking) => {
    await looking
      .selectFrom('found_work' as never)
      .selectAll()
      .forUpdate()
      .execute();
    expect(await lookOfProcess(used)).toEqual(['acme']);
  });
  expect(await lookOfProcess(used)).toEqual(['acme', 'globex']);
});

test('versions that ask other questions do not take each other’s answers', async () => {
  expect(await sharedLook(database.db, [used])(used)).toEqual([]);
  expect(await sharedLook(database.db, [tenants])(tenants)).toEqual(['acme', 'globex', 'umbrella']);
  await expect(sharedLook(database.db, [tenants])(used)).rejects.toThrow('usage_count');
});
