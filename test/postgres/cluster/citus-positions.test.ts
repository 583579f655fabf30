import { expect, inject, test } from 'vitest';
import { createTenant } from '../../../src/postgres/tenants/tenants.ts';
import { givePositions } from '../../../src/recording/positions.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { moveTenant } from '../../support/server/cluster.ts';
import { changesOf, now } from '../../support/server/cluster-changes.ts';
import { createTestDatabase } from '../../support/server/database.ts';
import { expectDense } from '../../support/server/positions.ts';

// This file runs where CITUS_DATABASE_URL and CITUS_WORKERS name a cluster of a coordinator and two workers.
const cluster = inject('cluster') ?? { url: '', workers: [] };
const database = closeAfterAll(await createTestDatabase());

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
