import { expect, inject, onTestFinished, test } from 'vitest';
import { foldHistory } from '../../../src/history/upkeep/fold.ts';
import { createPool } from '../../../src/postgres/connections/pool.ts';
import { createDatabase } from '../../../src/postgres/database.ts';
import { distribute } from '../../../src/postgres/migrate/distribute.ts';
import { migrate } from '../../../src/postgres/migrate/migrate.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { createClusterDatabase, onAllNodes, workerUrlOf } from '../../support/server/cluster.ts';
import { changesOf, now } from '../../support/server/cluster-changes.ts';
import { startTestServer } from '../../support/server/server.ts';

// This file runs where CITUS_DATABASE_URL and CITUS_WORKERS name a cluster of a coordinator and two workers.
const cluster = inject('cluster') ?? { url: '', workers: [] };
const server = closeAfterAll(await startTestServer({ clock: { now: () => now } }));
await server.createTenant('alpha');

test('a database with tenants is distributed with all that they have, and a second call changes nothing', async () => {
  const name = `test_distributed_${process.pid}`;
  const url = await createClusterDatabase(cluster, name);
  const pool = createPool(url, { maximum: 2 });
  onTestFinished(async () => {
    if (!pool.ended) await pool.end();
    await onAllNodes(cluster, `drop database if exists ${name} with (force)`);
  });
  await migrate(pool);
  const db = createDatabase(pool);
  await pool.query("insert into tenant (tenant) values ('before')");
  const record = createRecorder(db, 'before', () => now);
  await record(changesOf('before', 0, 50));
  const { tables, shards, shardsWithRoutines, workers } = await distribute(pool, { shards: 2 });
  expect(tables).toContain('change_entry');
  expect({ shards, shardsWithRoutines, workers }).toEqual({
    shards: 2,
    shardsWithRoutines: 2,
    workers: [...cluster.workers].sort(),
  });
  expect(await distribute(pool, { shards: 8 })).toMatchObject({ tables: [], shards: 2 });
  expect(await migrate(pool)).toEqual([]);
  expect(await record(changesOf('before', 40, 20))).toEqual([
    ...Array.from({ length: 10 }, () => 'duplicate'),
    ...Array.from({ length: 10 }, () => 'recorded'),
  ]);
  expect(await foldHistory(db, 'before')).toBe(60);
  // Rows of before have lower numbers than those of after.
  const { rows } = await pool.query<{ ordered: boolean }>(
    `select max(sequence) filter (where recorded_on is null) < min(sequence) filter (where recorded_on is not null) as ordered
       from change_entry where tenant = 'before'`,
  );
  expect(rows).toEqual([{ ordered: true }]);
});

test('a worker is no coordinator, and neither is a server without the cluster', async () => {
  const worker = createPool(await workerUrlOf(server.database.url, server.database.pool, 'alpha'), { maximum: 2 });
  onTestFinished(() => worker.end());
  await expect(distribute(worker)).rejects.toThrow('names a worker of the Citus cluster');
  const plain = createPool(cluster.url, { maximum: 2 });
  onTestFinished(() => plain.end());
  await expect(distribute(plain)).rejects.toThrow('names no coordinator of a Citus cluster');
});
