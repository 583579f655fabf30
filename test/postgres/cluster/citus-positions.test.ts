import { setTimeout as sleep } from 'node:timers/promises';
import { expect, inject, test } from 'vitest';
import { givePositions, readPlaces } from '../../../src/history/feed/positions.ts';
import { foldHistory } from '../../../src/history/upkeep/fold.ts';
import { createTenant } from '../../../src/postgres/tenants/tenants.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { moveTenant, placementOf } from '../../support/server/cluster.ts';
import { changesOf, now } from '../../support/server/cluster-changes.ts';
import { createTestDatabase } from '../../support/server/database.ts';
import { expectDense, keyOf } from '../../support/server/positions.ts';

// This file runs where CITUS_DATABASE_URL and CITUS_WORKERS name a cluster of a coordinator and two workers.
const cluster = inject('cluster') ?? { url: '', workers: [] };
const database = closeAfterAll(await createTestDatabase());

test('positions are given by two processes while the tenant moves, forth and back: dense, each entry once', async () => {
  const tenant = 'moving';
  const { db, pool } = database;
  await createTenant(db, tenant);
  const record = createRecorder(db, tenant, () => now);
  let over = false;
  let recorded = 0;
  const whileMoving = async (once: () => Promise<unknown>) => {
    while (!over) {
      await once();
      await sleep(5);
    }
  };
  const read: string[] = [];
  const work = [
    whileMoving(async () => {
      recorded += (await record(changesOf(tenant, recorded, recorded % 50 === 0 ? 40 : 1))).length;
    }),
    whileMoving(() => givePositions(db, tenant)),
    whileMoving(() => givePositions(db, tenant)),
    whileMoving(async () => {
      await foldHistory(db, tenant);
      await sleep(20);
    }),
    whileMoving(async () => {
      read.push(...(await readPlaces(db, tenant, read.length)).map(keyOf));
    }),
  ];
  const from = await placementOf(pool, tenant);
  for (let moves = 0; moves < 3; moves += 1) {
    await moveTenant(cluster, pool, tenant);
    await sleep(300);
  }
  expect((await placementOf(pool, tenant)).port).not.toBe(from.port);
  over = true;
  await Promise.all(work);
  await givePositions(db, tenant);
  const places = await expectDense(database, tenant);
  expect(places).toHaveLength(recorded);
  expect(read.length).toBeGreaterThan(50);
  expect(places.slice(0, read.length).map(keyOf)).toEqual(read);
  const { rows } = await pool.query(
    'select count(distinct placement::text)::integer as places from change_position where tenant = $1',
    [tenant],
  );
  // The newest row alone counts, and it is of the place where the tenant is now.
  expect(rows[0].places).toBeGreaterThan(0);
});

test('what was committed on the worker that a tenant has left gets its position on the other, and no id of the first counts', async () => {
  const tenant = 'left';
  const { db, pool } = database;
  await createTenant(db, tenant);
  const record = createRecorder(db, tenant, () => now);
  await record(changesOf(tenant, 0, 20));
  await givePositions(db, tenant);
  // The ids of the other worker may be below those that the last call saw.
  await pool.query(`update change_position set snapshot = '900000000:900000000:' where tenant = $1`, [tenant]);
  await record(changesOf(tenant, 20, 5));
  await moveTenant(cluster, pool, tenant);
  await record(changesOf(tenant, 25, 5));
  expect(await givePositions(db, tenant)).toBe(10);
  await record(changesOf(tenant, 30, 5));
  expect(await givePositions(db, tenant)).toBe(5);
  await moveTenant(cluster, pool, tenant);
  await record(changesOf(tenant, 35, 5));
  expect(await givePositions(db, tenant)).toBe(5);
  expect(await expectDense(database, tenant)).toHaveLength(40);
});
