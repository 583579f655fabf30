import { expect, test } from 'vitest';
import { doWork } from '../../../src/core/fairness/work.ts';
import { createPool } from '../../../src/postgres/connections/pool.ts';
import { createTenantPool, keptOf, type TenantPool } from '../../../src/postgres/connections/tenant-pool.ts';
import { WarmConnections } from '../../../src/postgres/connections/warm-connections.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { createSingleTestDatabase } from '../../support/server/database.ts';
import { eventually } from '../../support/server/patience.ts';
import { recordStatements, type Statement } from '../../support/server/statements.ts';

const preparation = { text: 'select $1::text as prepared', values: ['plan'] };

const database = closeAfterAll(await createSingleTestDatabase());

/** A pool for tenants, and the statements that were sent through it. */
function openPool(kept: number): { pool: TenantPool; prepared: () => number } {
  const pool = createTenantPool(database.url, { reads: 4, writes: 2, own: 2, kept });
  const statements: Statement[] = recordStatements(...pool.pools);
  return { pool, prepared: () => statements.filter(({ text }) => text === preparation.text).length };
}

const ask = (pool: TenantPool) => doWork({ tenant: 'acme' }, () => pool.query({ text: 'select 1 as answer' }));
const sizes = ([shared]: TenantPool['pools']) => [shared?.totalCount, shared?.idleCount];

test('as many connections are opened and prepared as are kept, once each', async () => {
  const { pool, prepared } = openPool(2);
  await ask(pool);
  expect(prepared()).toBe(0);
  await pool.warmUp([preparation]);
  expect(sizes(pool.pools)).toEqual([2, 2]);
  expect(prepared()).toBe(2);
  for (let round = 0; round < 5; round++) await Promise.all([ask(pool), ask(pool)]);
  expect(prepared()).toBe(2);
  await pool.end();
});

test('a connection that takes the place of a lost one is prepared when its caller has released it', async () => {
  const { pool, prepared } = openPool(1);
  await pool.warmUp([preparation]);
  const { rows } = await doWork({ tenant: 'acme' }, () =>
    pool.query<{ pid: number }>({ text: 'select pg_backend_pid() as pid' }),
  );
  await database.pool.query('select pg_terminate_backend($1)', [rows[0]?.pid]);
  await eventually(() => pool.pools[0]?.totalCount).toBe(0);
  expect((await ask(pool)).rows).toEqual([{ answer: 1 }]);
  await eventually(prepared).toBe(2);
  await eventually(() => sizes(pool.pools)).toEqual([1, 1]);
  await pool.end();
});

test('nothing is prepared where no connection is kept, nor behind a pooler', async () => {
  const { pool, prepared } = openPool(0);
  const pooled = createTenantPool(`${database.url}?pooler=transaction`, { kept: 2 });
  for (const each of [pool, pooled]) {
    await each.warmUp([preparation]);
    expect(sizes(each.pools)).toEqual([0, 0]);
    await ask(each);
    await each.end();
  }
  expect(prepared()).toBe(0);
});

test('connections of the process itself are not prepared', async () => {
  const { pool, prepared } = openPool(1);
  await pool.warmUp([preparation]);
  await pool.query({ text: 'select 1' });
  expect(prepared()).toBe(1);
  await pool.end();
});

test('a statement that fails costs no connection and is not tried again', async () => {
  const { pool } = openPool(2);
  const failing = { text: 'select no_such_column', values: [] };
  const statements = recordStatements(...pool.pools);
  await pool.warmUp([failing]);
  expect(sizes(pool.pools)).toEqual([2, 2]);
  await ask(pool);
  expect(statements.filter(({ text }) => text === failing.text)).toHaveLength(1);
  await pool.end();
});

test('a preparation that takes too long ends with its connection, and others are served until then', async () => {
  const pool = createPool(database.url, { maximum: 2, kept: 1 });
  const warm = new WarmConnections({ pool, kept: 1, limit: 200 });
  const client = await pool.connect();
  const isPreparing = new Promise<void>((resolve) => pool.once('acquire', () => setImmediate(resolve)));
  const opening = warm.open([{ text: 'select pg_sleep(600)', values: [] }]);
  await isPreparing;
  // While another one is being prepared, this one serves others as it is.
  warm.release(client, false);
  expect((await pool.query('select 1 as answer')).rows).toEqual([{ answer: 1 }]);
  await opening;
  await eventually(() => pool.totalCount).toBe(1);
  await pool.end();
});

test('where three connections are lost one after another, no more are prepared', async () => {
  const pool = createPool(database.url, { maximum: 1, kept: 1 });
  const slow = { text: 'select pg_sleep(600)', values: [] };
  const statements = recordStatements(pool);
  const tries = () => statements.filter(({ text }) => text === slow.text).length;
  const warm = new WarmConnections({ pool, kept: 1, limit: 50 });
  await warm.open([slow]);
  for (const expected of [2, 3, 3]) {
    warm.release(await pool.connect(), false);
    await eventually(() => pool.totalCount - pool.idleCount).toBe(0);
    expect(tries()).toBe(expected);
  }
  await pool.end();
});

test('while others wait for a connection, none is prepared', async () => {
  const pool = createPool(database.url, { maximum: 1, kept: 1 });
  const statements = recordStatements(pool);
  const prepared = () => statements.filter(({ text }) => text === preparation.text).length;
  const warm = new WarmConnections({ pool, kept: 1 });
  await warm.open([preparation]);
  warm.release(await pool.connect(), true);
  const cold = await pool.connect();
  const waiting = pool.connect();
  warm.release(cold, false);
  const next = await waiting;
  expect(prepared()).toBe(1);
  warm.release(next, false);
  await eventually(prepared).toBe(2);
  await pool.end();
});

test('kept connections stay open, and others do not', async () => {
  const pool = createPool(database.url, { maximum: 3, kept: 2 });
  expect(pool.options).toMatchObject({ min: 2, idleTimeoutMillis: 30_000 });
  await pool.end();
  expect([keptOf({ reads: 8 }), keptOf({ reads: 2 }), keptOf({ reads: 1 })]).toEqual([4, 1, 1]);
});
