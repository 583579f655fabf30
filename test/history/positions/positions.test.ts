import { CompiledQuery } from 'kysely';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { dropPortion } from '../../../src/history/retention/retention.ts';
import { foldHistory, unfolded } from '../../../src/history/upkeep/fold.ts';
import type { DatabaseTransaction } from '../../../src/postgres/database.ts';
import { deleteTenant } from '../../../src/postgres/tenants/delete-tenant.ts';
import { createTenant } from '../../../src/postgres/tenants/tenants.ts';
import {
  fingerprintAt,
  firstKept,
  givePositions,
  givePositionsOfTenants,
  lastPosition,
  readPlaces,
} from '../../../src/recording/positions.ts';
import { createRecorder, recordChanges } from '../../../src/recording/record-change.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { createTestDatabase } from '../../support/server/database.ts';
import { changeOf } from '../../support/server/history.ts';
import { lookAtOnce } from '../../support/server/look-at-once.ts';
import { expectDense, placesOf } from '../../support/server/positions.ts';

const now = Date.UTC(2026, 8, 15, 10, 11, 12, 345);
const day = 86_400_000;

let tenants = 0;

const database = closeAfterAll(await createTestDatabase());
const { db } = database;

async function newTenant(): Promise<string> {
  tenants += 1;
  const tenant = `acme${tenants}`;
  await createTenant(db, tenant);
  return tenant;
}

/** Records changes in one transaction, a millisecond apart. */
async function record(tenant: string, count: number, at = now): Promise<void> {
  await createRecorder(db, tenant, () => now)(Array.from({ length: count }, (_none, i) => changeOf({ at: at + i })));
}

/** A transaction that stays open until `commit`. */
async function openTransaction(): Promise<{
  record(tenant: string, at: number): Promise<void>;
  run(statement: string): Promise<void>;
  commit(): Promise<void>;
}> {
  const { promise: commitRequested, resolve: end } = Promise.withResolvers<void>();
  const { promise: begun, resolve: begin } = Promise.withResolvers<DatabaseTransaction>();
  const ended = db.transaction().execute(async (open) => {
    begin(open);
    await commitRequested;
  });
  const transaction = await begun;
  const commit = async () => {
    end();
    await ended;
  };
  onTestFinished(commit);
  return {
    record: async (tenant, at) =>
      void (await recordChanges(transaction, tenant, [changeOf({ at })], now, { way: 'import' })),
    run: async (statement) => void (await transaction.executeQuery(CompiledQuery.raw(statement))),
    commit,
  };
}

const atsOf = async (tenant: string) => (await placesOf(db, tenant)).map(({ at }) => at);

test('when the lower number commits later, nothing is lost or repeated', async () => {
  const tenant = await newTenant();
  const [one, other] = [await openTransaction(), await openTransaction()];
  await one.record(tenant, now + 1);
  await other.record(tenant, now + 2);
  await other.commit();
  expect(await givePositions(db, tenant)).toBe(1);
  expect(await atsOf(tenant)).toEqual([now + 2]);
  await one.commit();
  await record(tenant, 1, now + 3);
  expect(await givePositions(db, tenant)).toBe(2);
  expect(await atsOf(tenant)).toEqual([now + 2, now + 1, now + 3]);
  expect(await givePositions(db, tenant)).toBe(0);
  await expectDense(database, tenant);
});

test('an open transaction blocks no other, and gets positions after its commit, without rolled back changes', async () => {
  const tenant = await newTenant();
  const open = await openTransaction();
  await open.record(tenant, now + 1);
  await open.run('savepoint one');
  await open.record(tenant, now + 2);
  await open.run('savepoint two');
  await open.record(tenant, now + 3);
  await open.run('rollback to savepoint one');
  await open.record(tenant, now + 4);
  await open.run('savepoint three');
  await open.record(tenant, now + 5);
  await open.run('release savepoint three');
  for (let others = 0; others < 20; others += 1) {
    await record(tenant, 1, now + 100 + others);
    expect(await givePositions(db, tenant)).toBe(1);
    if (others === 10) expect(await foldHistory(db, tenant)).toBe(11);
  }
  await open.commit();
  expect(await givePositions(db, tenant)).toBe(3);
  expect((await atsOf(tenant)).slice(20)).toEqual([now + 1, now + 4, now + 5]);
  expect(await foldHistory(db, tenant)).toBe(12);
  await expectDense(database, tenant);
});

test('within a transaction positions follow the order of recording, whatever the times', async () => {
  const tenant = await newTenant();
  await db.transaction().execute(async (transaction) => {
    for (const at of [5, 3, 9]) {
      const changes = [at, at - 1, at + 1].map((one) => changeOf({ at: now + one }));
      await recordChanges(transaction, tenant, changes, now, { way: 'service' });
    }
  });
  await givePositions(db, tenant);
  expect(await atsOf(tenant)).toEqual([5, 4, 6, 3, 2, 4, 9, 8, 10].map((at) => now + at));
});

test('a fold skips a delta without a position, and totals stay exact', async () => {
  const tenant = await newTenant();
  await record(tenant, 70);
  await givePositions(db, tenant);
  await record(tenant, 5);
  await record(tenant, 90, now + day);
  const fold = async () =>
    (await database.pool.query('select change_fold($1) as folded', [tenant])).rows[0].folded as number;
  await database.pool.query('begin; set transaction isolation level repeatable read; commit');
  expect(await fold()).toBe(70);
  const total = async () =>
    (await database.pool.query(`select change_total($1, '{"{0}"}', '{"{0}"}', 0, null) as total`, [tenant])).rows[0]
      .total;
  expect(await total()).toBe(165);
  expect(await fold()).toBe(0);
  expect(await foldHistory(db, tenant)).toBe(95);
  expect(await total()).toBe(165);
  await expectDense(database, tenant);
});

test('a cell that becomes dense does not count a delta in the middle without a position', async () => {
  const tenant = await newTenant();
  const open = await openTransaction();
  await open.record(tenant, now);
  // Too few for a tally of their minute, which the next fold builds from its entries.
  await record(tenant, 30, now + 1);
  expect(await foldHistory(db, tenant)).toBe(30);
  await record(tenant, 170, now + 100);
  await givePositions(db, tenant);
  // Committed, with a lower number than the folded deltas, but without a position.
  await open.commit();
  await database.pool.query('select change_fold($1)', [tenant]);
  const total = async () =>
    (
      await database.pool.query(`select change_total($1, '{"{0}"}', '{"{0}"}', $2, null) as total`, [
        tenant,
        now - 2_000,
      ])
    ).rows[0].total;
  expect(await total()).toBe(201);
  expect(await foldHistory(db, tenant)).toBe(1);
  expect(await total()).toBe(201);
});

test('positions stay when retention drops entries, and the first kept one is reported', async () => {
  const tenant = await newTenant();
  await record(tenant, 10, now - 3 * day);
  await record(tenant, 5, now);
  await record(tenant, 10, now - 3 * day + 10);
  await record(tenant, 5, now + 5);
  expect(await foldHistory(db, tenant)).toBe(30);
  const before = await placesOf(db, tenant);
  while ((await dropPortion(db, tenant, Math.floor(now / day) * day, { maxRows: 7 })).dropped > 0);
  expect(await placesOf(db, tenant)).toEqual(before);
  expect(await firstKept(db, tenant, Math.floor(now / day) * day)).toBe(11);
  expect(await firstKept(db, tenant, now + 5)).toBe(26);
  expect(await firstKept(db, tenant, now + day)).toBeUndefined();
  await record(tenant, 1);
  await givePositions(db, tenant);
  expect((await lastPosition(db, tenant)).position).toBe(31);
});

test('of concurrent calls one assigns the positions; the others find nothing and do not wait', async () => {
  const tenant = await newTenant();
  for (let round = 0; round < 20; round += 1) {
    await record(tenant, 3);
    const counts = await Promise.all(Array.from({ length: 4 }, () => givePositions(db, tenant)));
    expect(counts.reduce((sum, count) => sum + count)).toBe(3);
  }
  await record(tenant, 3);
  await db.transaction().execute(async (giving) => {
    expect(await givePositions(giving, tenant)).toBe(3);
    await record(tenant, 1);
    const client = await database.pool.connect();
    await client.query("set lock_timeout = '5s'");
    expect((await client.query('select change_position_give($1) as given', [tenant])).rows).toEqual([{ given: null }]);
    client.release(true);
  });
  expect(await givePositions(db, tenant)).toBe(1);
  await expectDense(database, tenant);
});

test('an entry of an unknown transaction gets its position too', async () => {
  const tenant = await newTenant();
  await record(tenant, 1);
  await givePositions(db, tenant);
  await record(tenant, 1, now + 1);
  const forget = 'update change_delta set transaction = null where tenant = $1 and position is null';
  await database.pool.query(forget, [tenant]);
  expect(await givePositions(db, tenant)).toBe(1);
  await expectDense(database, tenant);
});

test('a call with a snapshot older than its lock assigns nothing twice', async () => {
  const tenant = await newTenant();
  await record(tenant, 3);
  const client = new pg.Client(database.url);
  await client.connect();
  onTestFinished(() => client.end());
  await client.query('begin isolation level repeatable read');
  await client.query('select 1 from tenant limit 1');
  expect(await givePositions(db, tenant)).toBe(3);
  await expect(client.query('select change_position_give($1)', [tenant])).rejects.toMatchObject({ code: '40001' });
  await client.query('rollback');
  await expectDense(database, tenant);
});

test('rows are blocks of 4096, 256 and 16, whatever the portions', async () => {
  const tenant = await newTenant();
  let total = 0;
  for (const count of [1, 1, 13, 3, 300, 1, 1, 1, 200, 1800, 1800, 16, 9000, 5, 5, 5, 5, 256]) {
    await record(tenant, count, now + total);
    total += await givePositions(db, tenant, 5_000);
  }
  const { rows } = await database.pool.query(
    `select first, cardinality(fingerprints) as entries, oldest, newest, ats = '{}' as packed from change_position
       where tenant = $1 order by first`,
    [tenant],
  );
  expect(rows.map(({ first }) => first - 1).filter((first) => first % 4096 === 0)).toEqual([0, 4096, 8192, 12288]);
  expect(rows.length).toBeLessThan(8);
  for (const { first, entries, oldest, newest, packed } of rows) {
    expect(Math.floor((first - 1) / 4096)).toBe(Math.floor((first + entries - 2) / 4096));
    expect(packed).toBe((first + entries - 1) % 4096 === 0);
    expect([oldest, newest]).toEqual([now + first - 1, now + first + entries - 2]);
  }
  const places = await expectDense(database, tenant);
  expect(places.map(({ at }) => at)).toEqual(Array.from({ length: total }, (_none, i) => now + i));
  expect(new Set(places.map(({ fingerprint }) => fingerprint)).size).toBeGreaterThan(15);
});

test('a reader gets at most 10,000 positions, from any place, identified by fingerprints', async () => {
  const tenant = await newTenant();
  await record(tenant, 9_000);
  await givePositions(db, tenant);
  await record(tenant, 3_000, now + 9_000);
  await givePositions(db, tenant);
  const all = await placesOf(db, tenant, 0, 1_000);
  expect(await readPlaces(db, tenant, 0, 50_000)).toEqual(all.slice(0, 10_000));
  expect(await readPlaces(db, tenant, 4_095, 2)).toEqual(all.slice(4_095, 4_097));
  expect(await readPlaces(db, tenant, 11_999)).toEqual(all.slice(11_999));
  expect(await readPlaces(db, tenant, 12_000)).toEqual([]);
  expect(all.every(({ recorded }) => recorded === now)).toBe(true);
  expect(all[8_999]?.fingerprint).not.toBe(all[9_000]?.fingerprint);
  expect(await lastPosition(db, tenant)).toEqual({ position: 12_000, fingerprint: all.at(-1)?.fingerprint });
  for (const { position, fingerprint } of [all[0], all[4_095], all[4_096], all[9_000]].flatMap((one) => one ?? [])) {
    expect(await fingerprintAt(db, tenant, position)).toBe(fingerprint);
  }
  expect(await fingerprintAt(db, tenant, 12_001)).toBeUndefined();
  expect(await fingerprintAt(db, tenant, 0)).toBe(0);
});

test('a tenant deleted and created again starts over, with other fingerprints', async () => {
  const tenant = await newTenant();
  await record(tenant, 20);
  await givePositions(db, tenant);
  await record(tenant, 20, now + 20);
  const before = await fingerprintAt(db, tenant, 20);
  await deleteTenant(db, tenant);
  const { rows } = await database.pool.query('select from change_position where tenant = $1', [tenant]);
  expect(rows).toEqual([]);
  // A late round cannot leave positions to the next tenant of this name.
  await expect(
    database.pool.query(
      `select change_position_write($1, 1, '{1}', '{1}', '{1}', '{1}', pg_current_snapshot(), null)`,
      [tenant],
    ),
  ).rejects.toMatchObject({ code: '23503' });
  await createTenant(db, tenant);
  expect(await lastPosition(db, tenant)).toEqual({ position: 0, fingerprint: 0 });
  await record(tenant, 20);
  expect(await givePositions(db, tenant)).toBe(20);
  expect(await fingerprintAt(db, tenant, 20)).not.toBe(before);
  await expectDense(database, tenant);
});

test('a tenant that fails is reported, and does not keep others from their positions', async () => {
  // A delta that its tenant's deletion was too early for.
  await database.pool.query(
    `insert into change_delta (tenant, ats, sequences, kinds, actors) values ('aghost', '{1}', '{1}', '{1}', '{1}')`,
  );
  const tenant = await newTenant();
  await record(tenant, 3);
  const errors: unknown[] = [];
  const options = { findTenants: lookAtOnce(db), work: unfolded, onError: (error: unknown) => errors.push(error) };
  await givePositionsOfTenants(db, { ...options, signal: AbortSignal.abort() });
  expect(await lastPosition(db, tenant)).toMatchObject({ position: 0 });
  await givePositionsOfTenants(db, { ...options, signal: new AbortController().signal });
  expect(errors).toMatchObject([{ code: '23503' }]);
  expect(await lastPosition(db, tenant)).toMatchObject({ position: 3 });
  await database.pool.query(`delete from change_delta where tenant = 'aghost'`);
});

test('a round resumes where the limit of the last one left off', async () => {
  const tenant = await newTenant();
  await record(tenant, 1);
  await givePositions(db, tenant);
  for (let batch = 0; batch < 12; batch += 1) await record(tenant, 3, now + 10 * batch);
  const round = async () =>
    (await database.pool.query('select change_position_give($1, 7) as given', [tenant])).rows[0].given;
  expect([await round(), await round(), await round()]).toEqual([9, 9, 9]);
  await record(tenant, 1, now + 500);
  expect([await round(), await round()]).toEqual([9, 1]);
  await expectDense(database, tenant);
});
