import pg from 'pg';
import { beforeEach, expect, inject, onTestFinished, test } from 'vitest';
import { Quota } from '../../../src/desk/completions/quota.ts';
import { dropExpired, setRetention } from '../../../src/history/retention/retention.ts';
import { createLogger } from '../../../src/http/logger.ts';
import { madeIndexes } from '../../../src/postgres/indexes/build-index.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { createValueIndex, valueIndexName } from '../../../src/tenants/custom-entities/value-index.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { callStart, reserveTokens } from '../../support/server/calls.ts';
import { placementOf, workerUrlOf } from '../../support/server/cluster.ts';
import { takeDatabaseAway } from '../../support/server/database-away.ts';
import { cancelIndexBuilds } from '../../support/server/index-builds.ts';
import { endOfJob, startExport } from '../../support/server/jobs.ts';
import { lookAtOnce } from '../../support/server/look-at-once.ts';
import { startTestServer } from '../../support/server/server.ts';
import { startVendor } from '../../support/vendor/vendor-server.ts';

// This file runs where CITUS_DATABASE_URL and CITUS_WORKERS name a cluster of a coordinator and two workers.
const day = 86_400_000;
const { signal } = new AbortController();
const logger = createLogger('silent');

/** Two tenants on two workers. The worker of the first one goes away. */
let first: string;
let second: string;
const tokens = new Map<string, string>();

expect(inject('cluster')).not.toBeNull();
const vendor = closeAfterAll(await startVendor());
const server = closeAfterAll(await startTestServer({ environment: { OPENAI_BASE_URL: vendor.baseUrl } }));
// Ended on purpose.
server.database.pool.on('error', () => {});

let pairs = 0;

beforeEach(async () => {
  pairs += 1;
  first = `first${pairs}`;
  const { port } = await placementOf(server.database.pool, first);
  for (let n = 0; ; n += 1) {
    second = `other${pairs}x${n}`;
    if ((await placementOf(server.database.pool, second)).port !== port) break;
  }
  for (const tenant of [first, second]) tokens.set(tenant, await server.token(tenant));
});

interface Work {
  /** Makes something that is due. */
  prepare: (tenant: string) => Promise<unknown>;
  upkeep: () => Promise<unknown>;
  isDone: (tenant: string) => Promise<boolean>;
}

/**
 * Does the upkeep while a worker is away, and again when it is back. What is due of the other tenant is done at once.
 */
async function checkUpkeep({ prepare, upkeep, isDone }: Work) {
  await prepare(first);
  const bringBack = await takeDatabaseAway(await workerUrlOf(server.database.url, server.database.pool, first));
  try {
    // Only now: the server has an upkeep of its own.
    await prepare(second);
    await upkeep();
    expect(await isDone(second)).toBe(true);
    await expect(isDone(first)).rejects.toThrow();
  } finally {
    await bringBack();
  }
  await upkeep();
  expect(await isDone(first)).toBe(true);
}

async function hasRows(statement: string, tenant: string): Promise<boolean> {
  const { rowCount } = await server.database.pool.query(statement, [tenant]);
  return rowCount !== 0;
}

test('reservations of dead processes of all others are charged while a worker is away', async () => {
  const { pool, db } = server.database;
  const quota = new Quota({ pool, db, logger });
  await checkUpkeep({
    // The lease has ended at once.
    prepare: async (tenant) => {
      const reservation = await reserveTokens(quota, {
        tenant,
        call: callStart(),
        input: 10,
        output: 20,
        maxDuration: -60_000,
      });
      await reservation.send();
    },
    upkeep: () => quota.upkeep(lookAtOnce(db)),
    isDone: (tenant) => hasRows('select from completion_reservation where tenant = $1 and charged', tenant),
  });
  for (const tenant of [first, second]) {
    expect(await quota.state(tenant)).toMatchObject({ used: { input: 10, output: 20 }, reserved: { output: 0 } });
  }
});

test('retention deletes the entries of all others while a worker is away', async () => {
  const { db } = server.database;
  const now = Date.now();
  const prepare = async (tenant: string) => {
    await createRecorder(
      db,
      tenant,
      () => now,
    )([
      {
        at: now - 9 * day,
        type: 'update',
        entity: 'e',
        entityId: 'd',
        actor: 'a',
        related: [],
        paths: '{}',
        identity: Buffer.alloc(16, 1),
      },
    ]);
    await setRetention(db, tenant, 3, now);
  };
  await checkUpkeep({
    prepare,
    upkeep: () => dropExpired(db, { now: () => now, maxRows: 100, signal, rest: async () => {}, onError: () => {} }),
    isDone: async (tenant) => !(await hasRows('select from change_entry where tenant = $1', tenant)),
  });
});

test('jobs of all others run while a worker is away, and those of dead processes are free again', async () => {
  const { pool } = server.database;
  const callOf =
    (tenant: string) =>
    (path: string, init: RequestInit = {}) =>
      server.call(path, { ...init, token: tokens.get(tenant) ?? '' });
  const exported = async (tenant: string) => {
    const id = await startExport(callOf(tenant), tenant, { q: '', format: 'CSV' });
    return await endOfJob(callOf(tenant), tenant, id);
  };
  // Their process is dead, and the lease ends while the worker is away.
  for (const tenant of [first, second]) {
    await pool.query(
      `insert into job (tenant, id, type, status, document, fields, input, held_until)
         values ($1, 'left', 'EXPORT', 'in_progress', '{}', '{}', '{}', now() + interval '1 s')`,
      [tenant],
    );
  }
  const isFree = (tenant: string) =>
    hasRows("select from job where tenant = $1 and id = 'left' and (held_until is null or attempt > 0)", tenant);
  const bringBack = await takeDatabaseAway(await workerUrlOf(server.database.url, pool, first));
  try {
    expect((await exported(second)).status).toBe('success');
    await expect.poll(() => isFree(second)).toBe(true);
    await expect(exported(first)).rejects.toThrow('no export: 503');
  } finally {
    await bringBack();
  }
  await expect.poll(() => isFree(first)).toBe(true);
  expect((await exported(first)).status).toBe('success');
});

/** Drops the index for filters, and has it built until one worker waits for a transaction that only this worker has. */
async function buildOnWorkers() {
  const { pool, db, url } = server.database;
  const state = async () => (await madeIndexes(db, valueIndexName))[0]?.state;
  // The service builds it after its start.
  await expect.poll(state).toBe('valid');
  await pool.query(`drop index ${valueIndexName}`);
  const worker = new pg.Client(await workerUrlOf(url, pool, first));
  onTestFinished(() => worker.end());
  await worker.connect();
  const { shard } = await placementOf(pool, first, 'custom_instance');
  await worker.query(
    `begin; set local citus.enable_manual_changes_to_shards = on; lock table custom_instance_${shard} in row exclusive mode`,
  );
  const build = createValueIndex(db).catch((error: unknown) => error);
  const builds = 'select from pg_stat_progress_create_index where datname = current_database()';
  await expect
    .poll(async () => {
      // A transaction sees the progress of others as it was at its first look.
      await worker.query('select pg_stat_clear_snapshot()');
      return (await worker.query(builds)).rowCount;
    })
    .toBe(1);
  // The coordinator's own part is complete.
  expect((await pool.query(builds)).rowCount).toBe(0);
  return { build, state, release: () => worker.query('rollback') };
}

test('while the workers build an index, no other process drops or restarts it', async () => {
  const { db } = server.database;
  const { build, state, release } = await buildOnWorkers();
  expect(await state()).toBe('building');
  expect(await createValueIndex(db)).toBe(false);
  expect(await state()).toBe('building');
  await release();
  expect(await build).toBe(true);
  expect(await state()).toBe('valid');
});

test('an index whose build broke off on a worker is rebuilt', async () => {
  const { pool, db } = server.database;
  const { build, state, release } = await buildOnWorkers();
  await cancelIndexBuilds(pool);
  expect(await build).toMatchObject({ message: 'canceling statement due to user request' });
  await release();
  await expect.poll(state).toBe('invalid');
  expect(await createValueIndex(db)).toBe(true);
  expect(await state()).toBe('valid');
});

test('looking for work opens no connection to a worker again and again', async () => {
  const { db, pool, url } = server.database;
  const worker = new pg.Client({ connectionString: await workerUrlOf(url, pool, first) });
  await worker.connect();
  onTestFinished(() => worker.end());
  const opened = async () => {
    const { rows } = await worker.query<{ sessions: number }>(
      'select sessions::integer from pg_stat_database where datname = current_database()',
    );
    return rows[0]?.sessions ?? Number.NaN;
  };
  const before = await opened();
  const looks = 50;
  for (let n = 0; n < looks; n += 1) await lookAtOnce(db)({ table: 'job', condition: 'true' });
  // The service beside it opens some of its own.
  expect((await opened()) - before).toBeLessThan(looks / 2);
});
