import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { analyseChanged } from '../../../src/history/upkeep/statistics.ts';
import { buildIndex } from '../../../src/postgres/indexes/build-index.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { createTestDatabase } from '../../support/server/database.ts';
import { eventually } from '../../support/server/patience.ts';

const index = { name: 'thing_late', table: 'thing', definition: sql`(number)` };

const database = closeAfterAll(await createTestDatabase());
await database.pool.query('create table thing (number integer) with (autovacuum_enabled = off)');
await database.pool.query('insert into thing select generate_series(1, 1000)');

async function state(): Promise<{ valid: boolean; oid: number } | undefined> {
  const { rows } = await database.pool.query(
    `select indisvalid as valid, indexrelid::integer as oid from pg_index where indexrelid = to_regclass('thing_late')`,
  );
  return rows[0];
}

test('an index is built once, by several processes at a time as well', async () => {
  await Promise.all(
    [buildIndex(database.db, index), buildIndex(database.db, index)].map((build) => build.catch(() => {})),
  );
  await buildIndex(database.db, index);
  const built = await state();
  expect(built).toMatchObject({ valid: true });
  await buildIndex(database.db, index);
  expect(await state()).toEqual(built);
});

test('an index whose build broke off is rebuilt', async () => {
  await database.pool.query('drop index thing_late');
  const broken = database.pool.query('create unique index concurrently thing_late on thing ((number % 7))');
  await expect(broken).rejects.toThrow('could not create unique index');
  expect(await state()).toMatchObject({ valid: false });
  // The failed statement may count as under way for a moment after its error. The upkeep asks again as well.
  await eventually(async () => {
    await buildIndex(database.db, index);
    return (await state())?.valid;
  }).toBe(true);
});

test('a table is analysed and vacuumed when more than 2,000 rows and a tenth of it have changed', async () => {
  const analysed = async () => {
    await database.pool.query('select pg_stat_force_next_flush()');
    await analyseChanged(database.db, ['thing']);
    const { rows } = await database.pool.query(
      `select n_mod_since_analyze as changed from pg_stat_user_tables where relname = 'thing'`,
    );
    return rows[0].changed === 0;
  };
  const add = async (count: number) => {
    const client = await database.pool.connect();
    await client.query('insert into thing select generate_series(1, $1::integer)', [count]);
    await client.query('select pg_stat_force_next_flush()');
    client.release();
  };
  await database.pool.query('analyze thing');
  await database.pool.query('truncate thing; select pg_stat_force_next_flush()');
  await database.pool.query('analyze thing');
  await add(1_000);
  expect(await analysed()).toBe(false);
  await add(3_000);
  const vacuums = async () => {
    const { rows } = await database.pool.query(
      "select vacuum_count as vacuums from pg_stat_user_tables where relname = 'thing'",
    );
    return rows[0].vacuums;
  };
  expect(await vacuums()).toBe(0);
  expect(await analysed()).toBe(true);
  expect(await vacuums()).toBe(1);
});
