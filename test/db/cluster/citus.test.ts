import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, expect, inject, onTestFinished, test } from 'vitest';
import { createExportHistory } from '../../../src/changelog/export/export-history.ts';
import { foldHistory } from '../../../src/changelog/fold/fold.ts';
import { DictionaryCache } from '../../../src/changelog/names/dictionary-cache.ts';
import { createQuota } from '../../../src/completions/quota.ts';
import { doWork } from '../../../src/concurrency/work.ts';
import { distribute } from '../../../src/db/cluster/distribute.ts';
import { createPool } from '../../../src/db/connections/pool.ts';
import { createTenantPool } from '../../../src/db/connections/tenant-pool.ts';
import { createDatabase } from '../../../src/db/database.ts';
import { openEmbeddedDatabase } from '../../../src/db/embedded/open-embedded-database.ts';
import { migrate } from '../../../src/db/migrate.ts';
import { AnnalsError } from '../../../src/errors.ts';
import { createLogger } from '../../../src/http/logger.ts';
import type { ExportPiece, ExportRequest } from '../../../src/ports/export-history.ts';
import { RegexMatcherPool } from '../../../src/query/regex-pool.ts';
import type { Change } from '../../../src/recording/change.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { callAgentic, putAgent } from '../../support/server/agents.ts';
import {
  createClusterDatabase,
  moveTenant,
  onAllNodes,
  type Placement,
  placementOf,
  workerUrlOf,
} from '../../support/server/cluster.ts';
import { makeDataFolder, removeDataFolder } from '../../support/server/data-folder.ts';
import type { TestDatabase } from '../../support/server/database.ts';
import { takeDatabaseAway } from '../../support/server/database-away.ts';
import { startTestServer, type TestServer } from '../../support/server/server.ts';
import { startVendor, type Vendor } from '../../support/vendor/vendor-server.ts';

// This file runs where CITUS_DATABASE_URL and CITUS_WORKERS name a cluster of a coordinator and two workers.
const cluster = inject('cluster') ?? { url: '', workers: [] };
const now = Date.UTC(2026, 8, 15);
const tenants = ['alpha', 'beta', 'gamma'];

let vendor: Vendor;
let server: TestServer;
let regexes: RegexMatcherPool;
const logger = createLogger('error', { write: () => {} });

beforeAll(async () => {
  vendor = await startVendor();
  regexes = new RegexMatcherPool();
  server = await startTestServer({ environment: { OPENAI_BASE_URL: vendor.baseUrl }, clock: { now: () => now } });
  for (const tenant of tenants) await server.createTenant(tenant);
});

afterAll(async () => {
  await server.close();
  await regexes.close();
  await vendor.close();
});

/** A change that tells by its number all that it is. */
function changeOf(tenant: string, n: number): Change {
  const at = now - 1_000 - (n % 97) * 3_600_000 - Math.floor(n / 7);
  return {
    at,
    type: (['create', 'update', 'delete'] as const)[n % 3] ?? 'update',
    entity: `e${n % 4}`,
    entityId: `d${n % 50}`,
    actor: `a${n % 11}`,
    related: n % 5 === 0 ? [{ entity: 'x', entityId: `y${n % 9}` }] : [],
    paths: JSON.stringify({ '/a': { before: n, after: n + 1 } }),
    identity: Buffer.from(`${tenant} ${n}`.padEnd(16, '.').slice(0, 16)),
    ...(n % 3 === 0 ? {} : { name: `name ${n}` }),
  };
}

const changesOf = (tenant: string, from: number, count: number) =>
  Array.from({ length: count }, (_, index) => changeOf(tenant, from + index));

const queries = [
  '',
  'entity:e1',
  'actor:a3',
  'entity:e1 actor:(a1, a2)',
  'entityId:d7',
  'entity:e2 entityId:d*',
  'related.entityId:y3',
  'related:elemMatch(entity:x entityId:y3)',
  'type:update',
  'compoundLogicalQuery:((entity:e1) OR (actor:a5))',
  'compoundLogicalQuery:((entityId:d3) OR (type:delete actor:a2))',
  'actor:~^a[1-3]$',
  'entity:e1 entityId:~7$',
  'occurredAt:<"2026-09-13T00:00:00Z"',
  'entity:none',
  'entity:* entityId:*4*',
];

/** The answers to a fixed list of calls, without generated ids and cursors. */
async function answersOf(on: TestServer, tenant: string): Promise<string[]> {
  const token = await on.token(tenant);
  const record = createRecorder(on.context.db, tenant, () => now);
  // So many that facets count by tallies.
  for (let from = 0; from < 4_000; from += 2_000) await record(changesOf(tenant, from, 2_000));
  await foldHistory(on.context.db, tenant);
  await record(changesOf(tenant, 4_000, 200));
  const answers: string[] = [];
  const call = async (method: string, path: string, body?: unknown) => {
    const headers = body === undefined ? {} : { 'content-type': 'application/json' };
    const init = { token, method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
    const response = await on.call(path, init);
    answers.push(`${method} ${path} ${response.status} ${withoutGenerated(await response.text())}`);
  };
  for (const query of queries) {
    const q = `q=${encodeURIComponent(query)}`;
    const history = `/changelog/${tenant}`;
    for (const page of ['', '&page=3&size=7', '&size=100', '&page=40&size=20']) {
      await call('GET', `${history}/changelogs?${q}${page}`);
    }
    await call('GET', `${history}/histogram?${q}`);
    for (const field of ['entity', 'type', 'actor']) await call('GET', `${history}/facets?field=${field}&${q}`);
  }
  const types = `/schema/${tenant}/custom-entities`;
  await call('POST', types, { id: 'NOTE', name: { en: 'Note' } });
  for (let n = 0; n < 6; n += 1) await call('POST', `${types}/NOTE/instances`, { id: `i${n}`, n, text: `x${n}` });
  await call('GET', `${types}/NOTE/instances?sort=n:DESC&pageSize=3`);
  await call('GET', `${types}/NOTE/instances?q=${encodeURIComponent('n:>2')}`);
  await call('DELETE', `${types}/NOTE/instances/i2`);
  await call('GET', `${types}/NOTE/instances/i2`);
  await call('POST', `/configuration/${tenant}/configurations`, [{ key: 'a', value: 1 }]);
  await call('GET', `/configuration/${tenant}/configurations`);
  await call('GET', `/changelog/${tenant}/documents?entity=e1&entityId=d1`);
  await call('GET', `/ai-service/${tenant}/agentic/agents`);
  return answers;
}

function withoutGenerated(text: string): string {
  return text
    .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, 'ID')
    .replaceAll(/"(ref|next|previous)":"[^"]*"/g, '"$1":""');
}

async function openOneServer(): Promise<TestDatabase> {
  const dataDir = await makeDataFolder();
  const embedded = await openEmbeddedDatabase({ dataDir, log: () => {}, durability: 'none' });
  const pool = createPool(embedded.url);
  await migrate(pool);
  return {
    url: embedded.url,
    pool,
    db: createDatabase(pool),
    async drop() {
      await pool.end();
      await embedded.release();
      await removeDataFolder(dataDir);
    },
  };
}

test('three tenants on two workers answer a list of calls byte for byte as one server does', async () => {
  const places = await Promise.all(tenants.map((tenant) => placementOf(server.database.pool, tenant)));
  expect(new Set(places.map(({ port }) => port)).size).toBe(2);
  const database = await openOneServer();
  const one = await startTestServer({ database, clock: { now: () => now } });
  try {
    for (const tenant of tenants) {
      const expected = await answersOf(one, tenant);
      expect(expected.filter((answer) => / 200 /.test(answer)).length).toBeGreaterThan(100);
      expect(await answersOf(server, tenant)).toEqual(expected);
    }
  } finally {
    await one.close();
    await database.drop();
  }
});

/** Exports the history in small pieces. A first piece takes the place of all that came before. */
function exporterOf(tenant: string) {
  const { db, pool } = server.database;
  const exports = createExportHistory({
    db,
    regexes,
    now: () => now,
    dictionaries: new DictionaryCache(pool),
    pieceBytes: 500,
  });
  return async (before: readonly ExportPiece[], cut = Number.POSITIVE_INFINITY): Promise<ExportPiece[]> => {
    let pieces = [...before];
    const last = pieces.at(-1);
    const resume: ExportRequest['resume'] = last && { ...last.of, after: last.last };
    let taken = 0;
    const { signal } = new AbortController();
    const run = exports.run({ tenant, q: '', format: 'NDJSON', askedAt: now, resume, signal }, async (piece) => {
      pieces = piece.isFirst ? [piece] : [...pieces, piece];
      taken += 1;
      if (taken >= cut) throw new Error('cut');
    });
    if (cut === Number.POSITIVE_INFINITY) await run;
    else await expect(run).rejects.toThrow('cut');
    return pieces;
  };
}

const textOf = (pieces: readonly ExportPiece[]) => pieces.map(({ text }) => text).join('');

test('an export that was cut off has the entries of its snapshot alone, and begins anew after a move, forth and back', async () => {
  const tenant = 'exported';
  const { db, pool } = server.database;
  await server.createTenant(tenant);
  const record = createRecorder(db, tenant, () => now);
  // The transaction ids of the first worker are then far higher than those of the other one.
  const worker = new pg.Client(await workerUrlOf(server.database.url, pool, tenant));
  await worker.connect();
  await worker.query(
    `do $$ begin for n in 1..20000 loop begin perform pg_current_xact_id(); create temp table t (); raise 'no';
       exception when others then null; end; end loop; end $$`,
  );
  await worker.end();
  await record(changesOf(tenant, 0, 60));
  const run = exporterOf(tenant);

  const whole = textOf(await run([]));
  const begun = await run([], 2);
  await record(changesOf(tenant, 60, 10));
  expect(textOf(await run(begun))).toBe(whole);

  let cut = begun;
  for (let move = 0; move < 2; move += 1) {
    await moveTenant(cluster, pool, tenant);
    // Not the snapshot of the first worker, though the tenant is there again after the second move.
    const resumed = await run(cut);
    expect(textOf(resumed)).toBe(textOf(await run([])));
    // Entries of the other worker belong to a snapshot of this one.
    const here = await run([], 2);
    const expected = textOf(await run([]));
    await record(changesOf(tenant, 70 + 10 * move, 10));
    expect(textOf(await run(here))).toBe(expected);
    cut = here;
  }
});

test('recording, folding, pages and a chat go on while a shard moves, forth and back, and nothing is lost', async () => {
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

/** Asks a worker which routines it would use for a tenant, and whether it has a table of the tenant's shard. */
async function routinesOn({ host, port }: Placement, tenant: string, begin = 'select') {
  const url = new URL(server.database.url);
  url.host = `${host}:${port}`;
  const client = new pg.Client(url.href);
  await client.connect();
  onTestFinished(() => client.end());
  await client.query(begin);
  const call = async (routine: 'shard_routines' | 'shard_routines_to_write') => {
    const { rows } = await client.query<{ schema: string | null; copy: boolean }>(
      `select ${routine}($1) as schema,
              to_regclass(shard_name('tenant', get_shard_id_for_distribution_column('tenant', $1::text))) is not null as copy`,
      [tenant],
    );
    return rows[0];
  };
  return { client, call };
}

test('pages are the same from the routines of a shard and from those of all shards, and a new call of distribute makes what lacks', async () => {
  const tenant = 'routines';
  const { db, pool } = server.database;
  const token = await server.token(tenant);
  const pages = async () => {
    const paths = queries.map(
      (query) => `/changelog/${tenant}/changelogs?page=1&size=7&q=${encodeURIComponent(query)}`,
    );
    const responses = await Promise.all(paths.map((path) => server.call(path, { token })));
    return await Promise.all(responses.map((response) => response.text()));
  };
  const totalOf = (page = ''): unknown => JSON.parse(page).totalElements;
  const record = createRecorder(db, tenant, () => now);
  await record(changesOf(tenant, 0, 500));
  await foldHistory(db, tenant);
  await record(changesOf(tenant, 500, 1));
  const ofShard = await pages();
  expect(totalOf(ofShard[0])).toBe(501);
  const { shard } = await placementOf(pool, tenant);
  // A horizon beyond all entries shows that the shard's own routine answers.
  await pool.query(
    `create or replace function annals_shard_${shard}.change_horizon(of_tenant text, now bigint) returns bigint
       language plpgsql stable as 'begin return 9223372036854775806; end'`,
  );
  expect(totalOf((await pages())[0])).toBe(0);
  await pool.query(`drop schema annals_shard_${shard} cascade`);
  expect(await pages()).toEqual(ofShard);
  await record(changesOf(tenant, 501, 20));
  await foldHistory(db, tenant);
  expect(totalOf((await pages())[0])).toBe(521);
  const { shards, shardsWithRoutines } = await distribute(pool);
  expect(shardsWithRoutines).toBe(shards);
  const routines = await routinesOn(await placementOf(pool, tenant), tenant);
  expect(await routines.call('shard_routines')).toEqual({ schema: `annals_shard_${shard}`, copy: true });
  await record(changesOf(tenant, 521, 20));
  await foldHistory(db, tenant);
  expect(totalOf((await pages())[0])).toBe(541);
});

test('a move ends only after a routine that writes to the shard, and nobody writes to the old copy after it', async () => {
  const tenant = 'waited';
  const { db, pool } = server.database;
  await server.createTenant(tenant);
  const record = createRecorder(db, tenant, () => now);
  await record(changesOf(tenant, 0, 20));
  const from = await placementOf(pool, tenant);
  const earlier = await routinesOn(from, tenant, 'begin isolation level repeatable read');
  const here = { schema: `annals_shard_${from.shard}`, copy: true };
  expect(await earlier.call('shard_routines')).toEqual(here);
  // Such a transaction has no id yet, so a move waits for its lock alone.
  const writer = await routinesOn(from, tenant, 'begin');
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
  const there = await routinesOn(await placementOf(pool, tenant), tenant);
  expect(await there.call('shard_routines_to_write')).toEqual(here);
  // A snapshot from before the move may read the old copy, but not write to it.
  expect(await earlier.call('shard_routines')).toEqual(here);
  expect(await earlier.call('shard_routines_to_write')).toEqual({ schema: null, copy: true });
  expect(await record(changesOf(tenant, 20, 1))).toEqual(['recorded']);
});

test('entries of one millisecond keep their order when some were recorded before a move and some after', async () => {
  const tenant = 'ordered';
  const { db, pool } = server.database;
  const token = await server.token(tenant);
  const record = createRecorder(db, tenant, () => now);
  const one = (n: number): Change => ({ ...changeOf(tenant, n), at: now - 5_000, name: `${n}` });
  for (let n = 0; n < 6; n += 1) {
    await record([one(n)]);
    if (n % 2 === 1) await moveTenant(cluster, pool, tenant);
  }
  const response = await server.call(`/changelog/${tenant}/changelogs`, { token });
  const { items } = (await response.json()) as { items: { name: string }[] };
  expect(items.map(({ name }) => name)).toEqual(['5', '4', '3', '2', '1', '0']);
});

test('a statement over its limit, and one whose caller has gone, end on the worker too', async () => {
  const tenant = 'alpha';
  const pool = createTenantPool(server.database.url, { statementLimit: 400 });
  const worker = new pg.Client(await workerUrlOf(server.database.url, server.database.pool, tenant));
  await worker.connect();
  onTestFinished(async () => {
    await worker.end();
    await pool.end();
  });
  const statement = { text: 'select pg_sleep(60) from tenant where tenant = $1', values: [tenant] };
  const running = async () => {
    const { rows } = await worker.query<{ running: string }>(
      `select count(*) as running from pg_stat_activity
         where state = 'active' and query like '%pg_sleep%' and pid <> pg_backend_pid()`,
    );
    return Number(rows[0]?.running);
  };
  const { signal } = new AbortController();
  const limited = doWork({ tenant, signal, stepLimit: 60_000 }, () => pool.query(statement));
  await expect(limited).rejects.toMatchObject({ code: '57014' });
  await expect.poll(running).toBe(0);

  const patient = createTenantPool(server.database.url);
  onTestFinished(() => patient.end());
  const gone = new AbortController();
  const left = doWork({ tenant, signal: gone.signal, stepLimit: 60_000 }, () => patient.query(statement));
  left.catch(() => {});
  await expect.poll(running).toBe(1);
  gone.abort(new Error('gone'));
  await expect(left).rejects.toThrow('gone');
  await expect.poll(running).toBe(0);
});

test('what a worker says of a tenant that has left it counts as a move only after a move', async () => {
  const { pool } = server.database;
  const tenantPool = createTenantPool(server.database.url);
  onTestFinished(() => tenantPool.end());
  // Where nothing moved it is a mistake: the routine asks for a tenant of the other worker.
  const mistaken = {
    text: "select change_pending($2, '{0}', '{0}') from tenant where tenant = $1",
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
  const other = tenants[ports.findIndex((port) => port !== ports[0])];
  return [tenants[0] ?? '', other ?? ''];
}

test('two processes give away the quota of a tenant to the last token, and no more', async () => {
  const tenant = 'beta';
  const pools = [createPool(server.database.url), createPool(server.database.url)];
  onTestFinished(async () => {
    for (const pool of pools) await pool.end();
  });
  const quotas = pools.map((pool) => createQuota({ pool, db: createDatabase(pool), logger, maxWait: 20_000 }));
  const call = async (n: number) => {
    const reservation = await quotas[n % 2]?.reserve({ tenant, input: 10, output: 70_000, maxDuration: 60_000 });
    await reservation?.settle({ inputTokens: 10, outputTokens: reservation.output });
    return reservation?.output ?? 0;
  };
  const outcomes = await Promise.allSettled(Array.from({ length: 40 }, (_, n) => call(n)));
  const granted = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
  expect(granted.reduce((sum, output) => sum + output, 0)).toBe(1_000_000);
  for (const outcome of outcomes) {
    if (outcome.status === 'rejected') expect(outcome.reason).toBeInstanceOf(AnnalsError);
  }
  expect(await quotas[0]?.state(tenant)).toMatchObject({ used: { output: 1_000_000 }, reserved: { output: 0 } });
});

test('while a worker is away its tenants get 503 everywhere, and all others go on', async () => {
  const { db, pool } = server.database;
  const names = [...tenants, 'delta', 'epsilon', 'zeta'];
  const [first = ''] = names;
  const { port } = await placementOf(pool, first);
  let other = '';
  for (const name of names) if ((await placementOf(pool, name)).port !== port) other = name;
  const clients = new Map(
    await Promise.all([first, other].map(async (name) => [name, await server.createClient(name)] as const)),
  );
  const tokens = new Map<string, string>();
  for (const [name, client] of clients) tokens.set(name, await server.tokenOf(client));

  const calls = async (tenant: string) => {
    const client = clients.get(tenant);
    const form = new URLSearchParams({
      grant_type: 'client_credentials',
      client_id: client?.clientId ?? '',
      client_secret: client?.clientSecret ?? '',
    });
    const token = tokens.get(tenant) ?? '';
    const body = JSON.stringify([{ key: `k${Math.random()}`, value: 1 }]);
    const headers = { 'content-type': 'application/json' };
    const responses = await Promise.all([
      server.call('/oauth/token', { method: 'POST', body: form }),
      server.call(`/changelog/${tenant}/changelogs`, { token }),
      server.call(`/changelog/${tenant}/histogram`, { token }),
      server.call(`/schema/${tenant}/custom-entities`, { token }),
      server.call(`/configuration/${tenant}/configurations`, { token }),
      server.call(`/configuration/${tenant}/configurations`, { token, method: 'POST', headers, body }),
      server.call(`/ai-service/${tenant}/agentic/agents`, { token }),
    ]);
    return responses.map(({ status }) => status);
  };
  const served = [200, 200, 200, 200, 200, 201, 200];
  const bringBack = await takeDatabaseAway(await workerUrlOf(server.database.url, pool, first));
  try {
    for (let round = 0; round < 2; round += 1) expect(await calls(first)).toEqual(served.map(() => 503));
    expect(await calls(other)).toEqual(served);
    const record = createRecorder(db, other, () => now);
    expect(await record(changesOf(other, 9_000, 30))).toEqual(Array.from({ length: 30 }, () => 'recorded'));
    // The upkeep of the server itself folds them.
    const waiting = async () => (await pool.query('select from change_delta where tenant = $1', [other])).rowCount;
    await expect.poll(waiting, { timeout: 30_000 }).toBe(0);
  } finally {
    await bringBack();
  }
  await expect.poll(() => calls(first), { timeout: 30_000 }).toEqual(served);
  expect(await createRecorder(db, first, () => now)(changesOf(first, 9_000, 3))).toEqual([
    'recorded',
    'recorded',
    'recorded',
  ]);
});

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
