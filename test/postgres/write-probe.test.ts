import { expect, onTestFinished, test } from 'vitest';
import { WriteProbe } from '../../src/postgres/write-probe.ts';
import { createTestDatabaseForThisTest } from '../support/server/database.ts';

/** As PostgreSQL reports it. */
const failure = (code: string) => Object.assign(new Error(code), { code });

test.each([
  ['53100', false],
  ['58030', false],
  ['25006', false],
  ['54000', false],
  // The role may not make temporary tables; the server ends; the statement was too slow.
  ['42501', true],
  ['57P01', true],
  ['57014', true],
])('an error with SQLSTATE %s says whether writes succeed: %s', async (code, takes) => {
  const probe = new WriteProbe({ run: () => Promise.reject(failure(code)) });
  expect(await probe.takesWrites()).toBe(takes);
});

test('however often it is called, it writes once while its answer is fresh, and tries a failing database sooner', async () => {
  let writes = 0;
  let error: Error | undefined;
  const run = async () => {
    writes += 1;
    if (error !== undefined) throw error;
  };
  const probe = new WriteProbe({ run, maxAge: { good: Number.POSITIVE_INFINITY, bad: 0 } });
  expect(await Promise.all(Array.from({ length: 50 }, () => probe.takesWrites()))).toEqual(Array(50).fill(true));
  for (let n = 0; n < 50; n += 1) await probe.takesWrites();
  expect(writes).toBe(1);

  error = failure('53100');
  const failing = new WriteProbe({ run, maxAge: { good: Number.POSITIVE_INFINITY, bad: 0 } });
  expect(await failing.takesWrites()).toBe(false);
  error = undefined;
  expect(await failing.takesWrites()).toBe(true);
  expect(writes).toBe(3);
});

test('it makes a file and leaves nothing behind, and tells a transaction that may only read', async () => {
  const { pool } = await createTestDatabaseForThisTest();
  const client = await pool.connect();
  onTestFinished(() => client.release());
  const probe = new WriteProbe({ run: (text) => client.query(text), maxAge: { good: 0, bad: 0 } });
  const before = await client.query('select pg_current_xact_id()::text::bigint as id');
  expect(await probe.takesWrites()).toBe(true);
  const { rows } = await client.query('select pg_current_xact_id()::text::bigint as id');
  expect(rows[0].id).toBeGreaterThan(before.rows[0].id + 1);
  expect((await client.query(`select from pg_class where relname = 'annals_write_probe'`)).rowCount).toBe(0);
  await client.query('set default_transaction_read_only = on');
  expect(await probe.takesWrites()).toBe(false);
  await client.query('set default_transaction_read_only = off');
  expect(await probe.takesWrites()).toBe(true);
});
