import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { fillPortion, fillPositionsOfTenants } from '../../../src/history/positions/fill-positions.ts';
import { givePositions } from '../../../src/history/positions/give-positions.ts';
import { fingerprintAt, firstKept, lastPosition, readPlaces } from '../../../src/history/positions/position-store.ts';
import { dropPortion, setRetention } from '../../../src/history/retention/retention.ts';
import { foldHistory } from '../../../src/history/tallies/fold.ts';
import { migrate } from '../../../src/postgres/migrate/migrate.ts';
import { createTenant } from '../../../src/postgres/tenants/tenants.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { createTestDatabase, type TestDatabase } from '../../support/server/database.ts';
import { changeOf } from '../../support/server/history.ts';
import { lookAtOnce } from '../../support/server/look-at-once.ts';
import { eventually } from '../../support/server/patience.ts';
import { expectDense, keyOf, placesOf } from '../../support/server/positions.ts';
import { createReleaseDatabase, releaseData } from '../../support/server/release.ts';
import { startTestServer } from '../../support/server/server.ts';

const now = Date.now();
const day = 86_400_000;
const today = Math.floor(now / day) * day;

let database: TestDatabase;
let tenants = 0;

beforeAll(async () => {
  database = await createTestDatabase();
});

afterAll(() => database.drop());

async function record(tenant: string, ats: readonly number[], of = database): Promise<void> {
  await createRecorder(of.db, tenant, () => now)(ats.map((at) => changeOf({ at })));
}

const from = (at: number, count: number) => Array.from({ length: count }, (_none, i) => at + i);

/** A tenant whose changes look as an earlier version recorded them: those of `folded` are folded, the others are not. */
async function olderTenant(folded: readonly number[], others: readonly number[] = []): Promise<string> {
  tenants += 1;
  const tenant = `older${tenants}`;
  await createTenant(database.db, tenant);
  if (folded.length > 0) await record(tenant, folded);
  await foldHistory(database.db, tenant);
  if (others.length > 0) await record(tenant, others);
  const { pool } = database;
  await pool.query('delete from change_position where tenant = $1', [tenant]);
  await pool.query(`update change_delta set position = 0, sequences = '{}', transaction = null where tenant = $1`, [
    tenant,
  ]);
  await pool.query('insert into change_position_backlog (tenant) values ($1)', [tenant]);
  return tenant;
}

const atsOf = async (tenant: string, after = 0) => (await placesOf(database.db, tenant, after)).map(({ at }) => at);

test('an upgraded database has 1 to N for the entries that it has, the oldest first, whatever is recorded meanwhile', async () => {
  const tenant = 'acme';
  const old = await createReleaseDatabase('2a90738');
  onTestFinished(old.drop);
  const [data, later] = await releaseData(1_600);
  await old.pool.query(data);
  await old.pool.query(`select change_fold('${tenant}')`);
  await old.pool.query(later);
  const horizon = 1_700_006_400_000 + 12 * day;
  await old.pool.query('update change_retention set horizon = $2 where tenant = $1', [tenant, horizon]);
  // Retention is under way: some of what is before the horizon is deleted, some is not yet.
  await old.pool.query(
    `delete from change_entry where tenant = $1 and at < (select min(at) from change_entry) + 300000000`,
    [tenant],
  );
  await migrate(old.pool);
  const { db } = old;
  const kept = await old.pool.query<{ at: number; sequence: number }>(
    'select at, sequence from change_entry where tenant = $1 and at >= $2 order by at, sequence',
    [tenant, horizon],
  );
  const count = kept.rows.length;
  const before = await old.pool.query('select from change_entry where tenant = $1', [tenant]);
  expect(before.rowCount).toBeGreaterThan(count);
  const drop = () => dropPortion(db, tenant, horizon, { maxRows: 100 });
  expect(await drop()).toEqual({ dropped: 0, reached: 0 });

  // New ones and late ones, before anything is counted, folded and not.
  await record(tenant, [now, horizon + 1, horizon + 5_000_000], old);
  expect(await lastPosition(db, tenant)).toMatchObject({ position: count + 3 });
  const cursor = await fingerprintAt(db, tenant, count);
  expect(cursor).toBeTypeOf('number');
  expect(await readPlaces(db, tenant, 0)).toEqual([]);
  expect((await readPlaces(db, tenant, count)).map(({ position }) => position)).toEqual(
    [1, 2, 3].map((n) => count + n),
  );
  await foldHistory(db, tenant);
  let portions = 0;
  while (await fillPortion(db, tenant, 60)) {
    portions += 1;
    await record(tenant, [now + portions, horizon + portions * 7, horizon + 30_000_000_000 + portions], old);
    if (portions % 3 === 1) await givePositions(db, tenant);
    if (portions % 3 === 2) await foldHistory(db, tenant);
    expect(await drop()).toEqual({ dropped: 0, reached: 0 });
    const filled = await readPlaces(db, tenant, 0);
    expect(filled.length).toBeLessThan(count);
    expect(filled.map(keyOf)).toEqual(kept.rows.slice(0, filled.length).map(keyOf));
  }
  expect(portions).toBeGreaterThan(10);
  await givePositions(db, tenant);
  while ((await drop()).dropped > 0);
  const places = await expectDense(old, tenant);
  expect(places.slice(0, count).map(keyOf)).toEqual(kept.rows.map(keyOf));
  expect(places).toHaveLength(count + 3 + 3 * portions);
  expect(places[count - 1]?.fingerprint).toBe(cursor);
  expect(places[0]?.recorded).toBe(places[0]?.at);
  expect(await firstKept(db, tenant, horizon)).toBe(1);
});

test('deltas that wait at the upgrade are folded, and their entries are among the first', async () => {
  const tenant = await olderTenant(from(now, 30), from(now - 500, 20));
  expect(await foldHistory(database.db, tenant)).toBe(20);
  while (await fillPortion(database.db, tenant));
  expect(await atsOf(tenant)).toEqual([...from(now - 500, 20), ...from(now, 30)]);
  await expectDense(database, tenant);
});

test('a tenant without entries, or with expired ones alone, begins at 1', async () => {
  const tenant = await olderTenant(from(now - 3 * day, 10));
  await setRetention(database.db, tenant, 1, now);
  await record(tenant, [now]);
  await givePositions(database.db, tenant);
  expect(await lastPosition(database.db, tenant)).toMatchObject({ position: 1 });
  expect(await fillPortion(database.db, tenant)).toBe(false);
  while ((await dropPortion(database.db, tenant, today - day, { maxRows: 100 })).dropped > 0);
  await expectDense(database, tenant);
  const empty = await olderTenant([]);
  expect(await lastPosition(database.db, empty)).toEqual({ position: 0, fingerprint: 0 });
  expect(await fillPortion(database.db, empty)).toBe(false);
});

test('where entries are dropped after they were counted, the last positions have none', async () => {
  const tenant = await olderTenant(from(now, 50));
  await givePositions(database.db, tenant);
  await database.pool.query('delete from change_entry where tenant = $1 and at < $2', [tenant, now + 20]);
  while (await fillPortion(database.db, tenant, 9));
  expect(await atsOf(tenant)).toEqual([...from(now + 20, 30), ...Array(20).fill(-1)]);
  expect(await firstKept(database.db, tenant, 0)).toBe(1);
  await record(tenant, [now + 90]);
  await givePositions(database.db, tenant);
  expect(await atsOf(tenant, 49)).toEqual([-1, now + 90]);
  await expectDense(database, tenant);
});

test('while positions are filled in, the first that is kept is told only where it is certain', async () => {
  const tenant = await olderTenant(from(now, 50));
  await record(tenant, [now + 90]);
  await givePositions(database.db, tenant);
  expect(await firstKept(database.db, tenant, 0)).toBeUndefined();
  expect(await fillPortion(database.db, tenant, 10)).toBe(true);
  expect(await firstKept(database.db, tenant, now + 5)).toBe(6);
  expect(await firstKept(database.db, tenant, now + 30)).toBeUndefined();
  while (await fillPortion(database.db, tenant, 10));
  expect(await firstKept(database.db, tenant, now + 30)).toBe(31);
  expect(await firstKept(database.db, tenant, now + 60)).toBe(51);
});

test('two processes fill at once: each entry once', async () => {
  const tenant = await olderTenant(from(now, 200));
  const filling = async () => {
    const { rows } = await database.pool.query(
      'select filled is distinct from until as filling from change_position_backlog where tenant = $1',
      [tenant],
    );
    return rows[0].filling;
  };
  while (await filling()) await Promise.all(Array.from({ length: 4 }, () => fillPortion(database.db, tenant, 7)));
  expect(await atsOf(tenant)).toEqual(from(now, 200));
});

test('a portion that is cut off leaves nothing, and the next one goes on', async () => {
  const tenant = await olderTenant(from(now, 60));
  expect(await fillPortion(database.db, tenant, 20)).toBe(true);
  const lock = await database.pool.connect();
  await lock.query('begin; lock table change_position in exclusive mode');
  const cut = fillPortion(database.db, tenant, 20).catch((error: Error) => error);
  const killed = async () =>
    (
      await database.pool.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
           where datname = current_database() and query like '%change_position_fill%' and wait_event_type = 'Lock'`,
      )
    ).rowCount;
  await eventually(killed).toBe(1);
  expect(await cut).toBeInstanceOf(Error);
  await lock.query('commit');
  lock.release();
  expect(await atsOf(tenant)).toEqual(from(now, 20));
  // The server may still be ending the transaction of the one that was cut off.
  const filled = async () => {
    await fillPortion(database.db, tenant, 20);
    return await atsOf(tenant);
  };
  await eventually(filled).toEqual(from(now, 60));
  await expectDense(database, tenant);
});

test('more entries than were counted are an error, and keep no other tenant from its positions', async () => {
  const wrong = await olderTenant(from(now, 50));
  const right = await olderTenant(from(now, 50));
  await givePositions(database.db, wrong);
  await database.pool.query('update change_position_backlog set until = 49 where tenant = $1', [wrong]);
  const errors: unknown[] = [];
  await fillPositionsOfTenants(database.db, {
    signal: new AbortController().signal,
    findTenants: lookAtOnce(database.db),
    rest: async () => {},
    onError: (error) => errors.push(error),
  });
  expect(errors).toMatchObject([{ message: `${wrong} has more entries than positions were kept for them` }]);
  await expectDense(database, right);
  expect(await atsOf(wrong)).toEqual([]);
  await database.pool.query('delete from change_position_backlog where tenant = $1', [wrong]);
});

test('a server that listens gives positions to older entries and to new ones', async () => {
  const tenant = await olderTenant(from(now, 50), from(now + 50, 5));
  const server = await startTestServer({ database });
  try {
    await eventually(async () => (await placesOf(database.db, tenant)).length).toBe(55);
    await record(tenant, [now + 60]);
    await eventually(async () => (await placesOf(database.db, tenant)).length).toBe(56);
  } finally {
    await server.close();
  }
});
