import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { AnnalsError } from '../../../src/core/errors.ts';
import { doWork } from '../../../src/core/fairness/work.ts';
import { Quota } from '../../../src/desk/completions/quota.ts';
import { createFindPage } from '../../../src/history/search/find-page.ts';
import { changelogDialect } from '../../../src/history/search/plan/dialect.ts';
import { createLogger } from '../../../src/http/logger.ts';
import { createPool } from '../../../src/postgres/connections/pool.ts';
import { createTenantPool } from '../../../src/postgres/connections/tenant-pool.ts';
import { createDatabase } from '../../../src/postgres/database.ts';
import { parseQuery } from '../../../src/query/parse.ts';
import { RegexMatcherPool } from '../../../src/query/regex-pool.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { callStart, endedCall } from '../../support/server/calls.ts';
import { placementOf, workerUrlOf } from '../../support/server/cluster.ts';
import { changesOf, now } from '../../support/server/cluster-changes.ts';
import { takeDatabaseAway } from '../../support/server/database-away.ts';
import { startTestServer } from '../../support/server/server.ts';

// This file runs where CITUS_DATABASE_URL and CITUS_WORKERS name a cluster of a coordinator and two workers.
const tenants = ['alpha', 'beta', 'gamma'];
const logger = createLogger('error', { write: () => {} });
const server = closeAfterAll(await startTestServer({ clock: { now: () => now } }));
for (const tenant of tenants) await server.createTenant(tenant);

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

test('a page of each kind is one statement for the worker', async () => {
  const tenant = 'pages';
  await server.createTenant(tenant);
  const pool = createPool(server.database.url, { maximum: 1 });
  const db = createDatabase(pool);
  const regexes = new RegexMatcherPool();
  onTestFinished(async () => {
    await db.destroy();
  });
  const sent: string[] = [];
  pool.on('connect', (client) => {
    client.on('notice', ({ message }) => sent.push(message ?? ''));
  });
  await createRecorder(db, tenant, () => now)(changesOf(tenant, 0, 100));
  const findPage = createFindPage({ pool, db, regexes, now: () => now });
  const ask = (q: string) => findPage(tenant, parseQuery(q, changelogDialect), { skip: 0, size: 20 });
  await ask('');
  await pool.query('set citus.log_remote_commands = on');
  for (const [q, routine] of [
    ['', 'change_page'],
    ['entity:e1', 'change_page'],
    ['actor:(a1, a2)', 'change_page'],
    ['entity:e1 actor:(a1, a5)', 'change_page'],
    ['entity:e1 entityId:d1', 'change_page_documents'],
    ['related.entity:x related.entityId:y1', 'change_page_documents'],
  ] as const) {
    sent.length = 0;
    expect((await ask(q)).total, q).toBeGreaterThan(0);
    expect(sent).toEqual([expect.stringMatching(new RegExp(`^issuing SELECT page FROM \\S*\\b${routine}\\(`))]);
  }
});

test('two processes give away the quota of a tenant to the last token, and no more', async () => {
  const tenant = 'beta';
  const pools = [createPool(server.database.url), createPool(server.database.url)];
  onTestFinished(async () => {
    for (const pool of pools) await pool.end();
  });
  const quotas = pools.map((pool) => new Quota({ pool, db: createDatabase(pool), logger, maxWait: 20_000 }));
  const call = async (n: number) => {
    const reservation = await quotas[n % 2]?.reserve({
      tenant,
      call: callStart(),
      input: { tokens: 10, images: 0 },
      output: 70_000,
      maxDuration: 60_000,
    });
    expect(await reservation?.send()).toBe(true);
    await reservation?.settle(endedCall({ inputTokens: 10, outputTokens: reservation.output }));
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

test('while a worker is away its tenants get 503 everywhere, and all others continue', async () => {
  const { db, pool } = server.database;
  const names = [...tenants, 'delta', 'epsilon', 'zeta'];
  const [first = ''] = names;
  const { port } = await placementOf(pool, first);
  let second = '';
  for (const name of names) if ((await placementOf(pool, name)).port !== port) second = name;
  const clients = new Map(
    await Promise.all([first, second].map(async (name) => [name, await server.createClient(name)] as const)),
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
    expect(await calls(second)).toEqual(served);
    const record = createRecorder(db, second, () => now);
    expect(await record(changesOf(second, 9_000, 30))).toEqual(Array.from({ length: 30 }, () => 'recorded'));
    // The upkeep of the server itself folds them.
    const waiting = async () => (await pool.query('select from change_delta where tenant = $1', [second])).rowCount;
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
