import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { expect, inject, onTestFinished, test } from 'vitest';
import { doWork } from '../../../src/core/fairness/work.ts';
import { foldHistory } from '../../../src/history/upkeep/fold.ts';
import { createTenantPool } from '../../../src/postgres/connections/tenant-pool.ts';
import { madeIndexes } from '../../../src/postgres/indexes/build-index.ts';
import type { Change } from '../../../src/recording/change.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { callAgentic, putAgent } from '../../support/server/agents.ts';
import { moveTenant, placementOf } from '../../support/server/cluster.ts';
import { changeOf, changesOf, now } from '../../support/server/cluster-changes.ts';
import { annals } from '../../support/server/command.ts';
import type { TestDatabase } from '../../support/server/database.ts';
import { routinesOn } from '../../support/server/routines-on.ts';
import { startTestServer } from '../../support/server/server.ts';
import { startVendor } from '../../support/vendor/vendor-server.ts';

// This file runs where CITUS_DATABASE_URL and CITUS_WORKERS name a cluster of a coordinator and two workers.
const cluster = inject('cluster') ?? { url: '', workers: [] };
const tenants = ['alpha', 'beta', 'gamma'];
const vendor = closeAfterAll(await startVendor());
const server = closeAfterAll(
  await startTestServer({ environment: { OPENAI_BASE_URL: vendor.baseUrl }, clock: { now: () => now } }),
);
for (const tenant of tenants) await server.createTenant(tenant);

test('recording, folding, pages and a chat continue while a shard moves, forth and back, and nothing is lost', async () => {
  const tenant = 'moving';
  const { db, pool } = server.database;
  const token = await server.token(tenant);
  await putAgent(server, { tenant, token, id: 'desk' });
  const record = createRecorder(db, tenant, () => now);
  let recorded = 0;
  let over = false;
  const recording = (async () => {
    while (!over) {
      const outcomes = await record(changesOf(tenant, recorded, recorded % 60 === 0 ? 30 : 1));
      recorded += outcomes.filter((outcome) => outcome === 'recorded').length;
    }
  })();
  const folding = (async () => {
    while (!over) {
      await foldHistory(db, tenant);
      await sleep(20);
    }
  })();
  const totals: number[] = [];
  const always = encodeURIComponent('occurredAt:>="1970-01-01T00:00:00Z" entity:(e0, e1, e2, e3)');
  const total = async () => {
    const response = await server.call(`/changelog/${tenant}/changelogs?q=${always}`, { token });
    expect(response.status).toBe(200);
    const { totalElements } = (await response.json()) as { totalElements: number };
    return totalElements;
  };
  const reading = (async () => {
    while (!over) totals.push(await total());
  })();
  const statuses: number[] = [];
  const chatting = (async () => {
    while (!over) {
      const call = { tenant, token, path: '/chat' };
      statuses.push((await callAgentic(server, call, { agentId: 'desk', message: 'x' })).status);
    }
  })();
  const first = await placementOf(pool, tenant);
  await moveTenant(cluster, pool, tenant);
  expect((await placementOf(pool, tenant)).port).not.toBe(first.port);
  await moveTenant(cluster, pool, tenant);
  expect(await placementOf(pool, tenant)).toEqual(first);
  over = true;
  await Promise.all([recording, folding, reading, chatting]);

  expect(recorded).toBeGreaterThan(30);
  expect(totals).toEqual([...totals].sort((one, other) => one - other));
  expect(await total()).toBe(recorded);
  expect(new Set(statuses)).toEqual(new Set([200]));
  const { rows } = await pool.query<{ sequence: string; of: number }>(
    `select max(sequence)::text as sequence, count(distinct recorded_on::text) as of from change_entry where tenant = $1`,
    [tenant],
  );
  expect(Number.isSafeInteger(Number(rows[0]?.sequence))).toBe(true);
  expect(rows[0]?.of).toBeGreaterThan(1);
});

test('a move ends only after routines that write to the shard, and nothing writes to the old copy after it', async () => {
  const tenant = 'waited';
  const { db, pool } = server.database;
  await server.createTenant(tenant);
  const record = createRecorder(db, tenant, () => now);
  await record(changesOf(tenant, 0, 20));
  // A build waits for the transactions below, and a move waits for the build.
  for (const last of ['change_entry_terms', 'custom_instance_wide']) {
    const states = async () => (await madeIndexes(db, last)).map(({ state }) => state);
    await expect.poll(states, { timeout: 60_000 }).toEqual(['valid']);
  }
  const from = await placementOf(pool, tenant);
  const earlier = await routinesOn(server.database.url, from, tenant, 'begin isolation level repeatable read');
  const here = { schema: `annals_shard_${from.shard}`, copy: true };
  expect(await earlier.call('shard_routines')).toEqual(here);
  // Such a transaction has no id yet, so a move waits for its lock alone.
  const writer = await routinesOn(server.database.url, from, tenant, 'begin');
  expect(await writer.call('shard_routines_to_write')).toEqual(here);
  let ended = false;
  const moving = moveTenant(cluster, pool, tenant).finally(() => {
    ended = true;
  });
  moving.catch(() => {});
  const waiting = async () =>
    (
      await writer.client.query(
        "select from pg_locks where locktype = 'advisory' and mode = 'ExclusiveLock' and not granted",
      )
    ).rowCount;
  await expect.poll(waiting, { timeout: 30_000 }).toBeGreaterThan(0);
  expect(ended).toBe(false);
  await writer.client.query('commit');
  await moving;

  // The old copy is still there. The cluster drops it some seconds later.
  expect(await writer.call('shard_routines_to_write')).toEqual({ schema: null, copy: true });
  const there = await routinesOn(server.database.url, await placementOf(pool, tenant), tenant);
  expect(await there.call('shard_routines_to_write')).toEqual(here);
  // A snapshot from before the move may read the old copy, but not write to it.
  expect(await earlier.call('shard_routines')).toEqual(here);
  expect(await earlier.call('shard_routines_to_write')).toEqual({ schema: null, copy: true });
  expect(await record(changesOf(tenant, 20, 1))).toEqual(['recorded']);

  // A move back waits for readers of the old copy.
  let isBack = false;
  const back = moveTenant(cluster, pool, tenant).finally(() => {
    isBack = true;
  });
  back.catch(() => {});
  await sleep(3_000);
  expect(isBack).toBe(false);
  for (const { client } of [earlier, there]) await client.query('rollback');
  await back;
  expect(await placementOf(pool, tenant)).toEqual(from);
});

test('entries of one millisecond keep their order when some were recorded before a move and some after', async () => {
  const tenant = 'ordered';
  const { db, pool } = server.database;
  const token = await server.token(tenant);
  const record = createRecorder(db, tenant, () => now);
  const change = (n: number): Change => ({ ...changeOf(tenant, n), at: now - 5_000, name: `${n}` });
  for (let n = 0; n < 6; n += 1) {
    await record([change(n)]);
    if (n % 2 === 1) await moveTenant(cluster, pool, tenant);
  }
  const response = await server.call(`/changelog/${tenant}/changelogs`, { token });
  const { items } = (await response.json()) as { items: { name: string }[] };
  expect(items.map(({ name }) => name)).toEqual(['5', '4', '3', '2', '1', '0']);
});

test('what a worker says of a tenant that has left it counts as a move only after a move', async () => {
  const { pool } = server.database;
  const tenantPool = createTenantPool(server.database.url);
  onTestFinished(() => tenantPool.end());
  // Where nothing moved it is a mistake: the routine asks for a tenant of the other worker.
  const mistaken = {
    text: `select change_total($2, '{"{0}"}', '{"{0}"}', 0, null) from tenant where tenant = $1`,
    values: await apart(pool),
  };
  const ask = () => doWork({ tenant: mistaken.values[0] }, () => tenantPool.query(mistaken));
  const message = 'cannot execute a distributed query from a query on a shard';
  await pool.query('call citus_cleanup_orphaned_resources()');
  await expect(ask()).rejects.toMatchObject({ name: 'error', message });
  await moveTenant(cluster, pool, 'gamma');
  await moveTenant(cluster, pool, 'gamma');
  await expect(ask()).rejects.toMatchObject({ name: 'TenantMoved', cause: { message } });
});

/** Two tenants on two workers. */
async function apart(pool: TestDatabase['pool']): Promise<[string, string]> {
  const ports = await Promise.all(tenants.map(async (tenant) => (await placementOf(pool, tenant)).port));
  const elsewhere = tenants[ports.findIndex((port) => port !== ports[0])];
  return [tenants[0] ?? '', elsewhere ?? ''];
}

test('annals cluster move moves a tenant, says what moved along, and does nothing where it is there already', async () => {
  const { pool, url } = server.database;
  await server.createTenant('wanderer');
  const placeOf = async (tenant: string) => {
    const { host, port } = await placementOf(pool, tenant);
    return `${host}:${port}`;
  };
  const from = await placeOf('wanderer');
  const to = cluster.workers.find((worker) => worker !== from) ?? '';
  const environment = { DATABASE_URL: url, ANNALS_SECRET_KEY: Buffer.alloc(32, 7).toString('base64') };
  const moved = await annals(['cluster', 'move', 'wanderer', to], environment);
  expect(moved).toMatchObject({ code: 0, stderr: '' });
  expect(JSON.parse(moved.stdout)).toEqual({ tenant: 'wanderer', from, to, others: expect.any(Number) });
  expect(await placeOf('wanderer')).toBe(to);
  const again = await annals(['cluster', 'move', 'wanderer', to], environment);
  expect(JSON.parse(again.stdout)).toMatchObject({ from: to, to });
  const nowhere = await annals(['cluster', 'move', 'wanderer', '127.0.0.1:1'], environment);
  expect(nowhere).toMatchObject({ code: 1, stdout: '' });
  expect(nowhere.stderr).toContain(`there is no worker 127.0.0.1:1; there is ${cluster.workers[0]}`);
  const unknown = await annals(['cluster', 'move', 'nobody', to], environment);
  expect(unknown).toMatchObject({ code: 1, stdout: '' });
  expect(unknown.stderr).toContain('there is no tenant nobody');
});

test('a move that the cluster cannot finish says why and where the tenant is, without a stack', async () => {
  const { pool, url } = server.database;
  await server.createTenant('stayer');
  const { shard, host, port } = await placementOf(pool, 'stayer');
  const from = `${host}:${port}`;
  const to = cluster.workers.find((worker) => worker !== from) ?? '';
  const target = new URL(url);
  target.host = to;
  const client = new pg.Client(target.href);
  await client.connect();
  onTestFinished(() => client.end());
  await pool.query('call citus_cleanup_orphaned_resources()');
  // The move drops a table that has the name of its copy, and fails at a view.
  await client.query('set citus.enable_ddl_propagation = off');
  await client.query(`create view tenant_${shard} as select 1 as one`);
  const environment = { DATABASE_URL: url, ANNALS_SECRET_KEY: Buffer.alloc(32, 7).toString('base64') };
  const { code, stdout, stderr } = await annals(['cluster', 'move', 'stayer', to], environment);
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).toMatch(/^annals: the cluster could not move stayer \(.*\)\. It is on .*\n$/);
  expect(stderr).toContain(`It is on ${from}. Check that ${from} and ${to} run, then repeat the command`);
  expect(await placementOf(pool, 'stayer')).toEqual({ shard, host, port });
});
