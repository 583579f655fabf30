import { once } from 'node:events';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { socketOf } from '../../../src/postgres/connections/connection-socket.ts';
import { createJustReleased } from '../../../src/postgres/connections/just-released.ts';
import { createPool } from '../../../src/postgres/connections/pool.ts';
import { createTestDatabase, type TestDatabase } from '../../support/server/database.ts';
import { eventually } from '../../support/server/patience.ts';

let database: TestDatabase;
let pool: pg.Pool;

beforeAll(async () => {
  database = await createTestDatabase();
  pool = createPool(database.url, { maximum: 2 });
});

afterAll(async () => {
  await pool.end();
  await database.drop();
});

test('a connection goes to the next caller of the same turn, else back to its pool', async () => {
  const { keep, take } = createJustReleased((client, destroy) => client.release(destroy));
  expect(take()).toBeUndefined();
  const [one, other] = [await pool.connect(), await pool.connect()];
  keep(one);
  keep(other);
  expect(take()).toBe(other);
  expect(pool.idleCount).toBe(0);
  await nextTurn();
  expect(take()).toBeUndefined();
  expect(pool.idleCount).toBe(1);
  keep(other);
  await nextTurn();
  expect(pool.idleCount).toBe(2);
});

test('a connection that is lost meanwhile goes to nobody', async () => {
  const { keep, take } = createJustReleased((client, destroy) => client.release(destroy));
  const lost = await pool.connect();
  keep(lost);
  const closed = once(socketOf(lost), 'close');
  socketOf(lost).destroy();
  expect(take()).toBeUndefined();
  await closed;
  await nextTurn();
  await eventually(() => pool.totalCount).toBe(1);
  expect((await pool.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
});
