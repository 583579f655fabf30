import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { expect, onTestFinished, test, vi } from 'vitest';
import { AgeOfOldest } from '../../src/context/installation-figures.ts';
import { measureConnections } from '../../src/metrics/database-figures.ts';
import { Metrics } from '../../src/metrics/metrics.ts';
import { formatVerifierKey, signatureTypes } from '../../src/proof/log/note.ts';
import { makeProofKey } from '../../src/proof/log/signer.ts';
import { signerOf } from '../history/proof/signers.ts';
import { closeAfterAll } from '../support/close-after-all.ts';
import { lockTables } from '../support/server/locked-tables.ts';
import { metricsOf, readInstallation, readMetrics } from '../support/server/metric-values.ts';
import { eventually } from '../support/server/patience.ts';
import { startTestServer } from '../support/server/server.ts';
import { hour, passTime, recordUpdates, subscriptionsOf } from '../support/server/subscriptions.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { startReceiver } from '../support/vendor/receiver.ts';

// Each figure beside what it counts: the service and the database are real, and both sides of a figure are seen.

const tenant = 'acme';
const folder = temporaryFolder();
const [key, policy] = [join(folder, 'key'), join(folder, 'policy')];
makeProofKey(key);
// Nothing listens there.
const witness = signerOf('witness.example/away', signatureTypes.cosignature);
await writeFile(policy, `witness away ${formatVerifierKey(witness)} http://127.0.0.1:1\nquorum away\n`);
const receiver = closeAfterAll(await startReceiver());
const server = closeAfterAll(
  await startTestServer({
    environment: {
      ANNALS_METRICS_PORT: '0',
      ANNALS_DELIVERY_ALLOW: `${tenant}=127.0.0.0/8`,
      ANNALS_PROOF_KEY_FILE: key,
      ANNALS_PROOF_POLICY: policy,
      ANNALS_BASE_URL: 'https://annals.example',
    },
  }),
);
const token = await server.token(tenant);

const ofProcess = async (name: string) => (await readMetrics(metricsOf(server))).get(name);
const ofDatabase = async (name: string) => (await readInstallation(server)).get(name);

test('positions are unsealed until they have a checkpoint, and a history is altered once a check says so', async () => {
  const { pool } = server.database;
  // The first change starts the log, which is signed at most once a minute from then on.
  await recordUpdates(server, tenant, ['e']);
  const unsealed = async () => {
    const values = await readInstallation(server);
    return ['positions', 'oldest_seconds'].map((what) => values.get(`annals_unsealed_${what}`));
  };
  await eventually(unsealed).toEqual([0, 0]);
  await recordUpdates(server, tenant, ['f', 'g']);
  await eventually(async () => (await unsealed())[0]).toBeGreaterThanOrEqual(2);
  expect((await unsealed())[1]).toBeGreaterThan(0);

  const check = (isRight: boolean | null) =>
    pool.query('update proof_log set check_right = $2 where tenant = $1', [tenant, isRight]);
  for (const [isRight, altered] of [
    [null, undefined],
    [true, 0],
    [false, 1],
  ] as const) {
    await check(isRight);
    expect(await ofDatabase('annals_altered_histories')).toBe(altered);
  }
  expect(await ofDatabase('annals_set_back_histories')).toBe(0);
});

test('memory, start and delays of the process are in bytes and seconds', async () => {
  const value = async (name: string) => (await ofProcess(name)) ?? Number.NaN;
  expect(await value('annals_process_start_time_seconds')).toBeCloseTo(performance.timeOrigin / 1000, 0);
  expect(await value('annals_process_heap_limit_bytes')).toBeGreaterThan(await value('annals_process_heap_used_bytes'));
  expect(await value('annals_process_external_memory_bytes')).toBeGreaterThan(0);
  await eventually(() => value('annals_event_loop_delay_max_seconds')).toBeGreaterThanOrEqual(0);
  const values = await readMetrics(metricsOf(server));
  const delays = ['p50', 'p99', 'max'].map((part) => values.get(`annals_event_loop_delay_${part}_seconds`) ?? -1);
  expect(delays).toEqual(delays.toSorted((a, b) => a - b));
  expect(delays[0]).toBeGreaterThanOrEqual(0);
});

test('requests that wait for the database take places of a share, and others wait for one', async () => {
  const share = 'share="connections for reading"';
  const places = async () => [
    (await ofProcess(`annals_share_used{${share}}`)) ?? 0,
    (await ofProcess(`annals_share_waiting{${share}}`)) ?? 0,
  ];
  const locked = await lockTables(server.database, ['change_entry']);
  const reads = Array.from({ length: 30 }, () => server.call(`/changelog/${tenant}/changelogs?q=entity:x`, { token }));
  try {
    await eventually(async () => (await places()).map((count) => count > 0)).toEqual([true, true]);
  } finally {
    await locked.release();
  }
  for (const answer of await Promise.all(reads)) await answer.arrayBuffer();
  await eventually(places).toEqual([0, 0]);
});

test('the connections of a pool are idle or used, and beyond its maximum callers wait', async () => {
  const [first, second] = [1, 1].map((max) => new pg.Pool({ connectionString: server.database.url, max }));
  if (first === undefined || second === undefined) throw new Error('there are two pools');
  const metrics = new Metrics();
  // Two pools of one name count together.
  measureConnections(metrics, { shared: [first, second] });
  const figures = async () => {
    const values = await readMetrics(metrics);
    const of = (name: string) => values.get(`annals_database_connections${name}`);
    return [of('{pool="shared",state="idle"}'), of('{pool="shared",state="used"}'), of('_waiting{pool="shared"}')];
  };
  expect(await figures()).toEqual([0, 0, 0]);
  const client = await first.connect();
  expect(await figures()).toEqual([0, 1, 0]);
  const next = first.connect();
  expect(await figures()).toEqual([0, 1, 1]);
  client.release();
  (await next).release();
  (await second.connect()).release();
  expect(await figures()).toEqual([2, 0, 0]);
  expect((await readMetrics(metrics)).get('annals_database_connections_max{pool="shared"}')).toBe(2);
  await Promise.all([first.end(), second.end()]);
});

test('a database that only reads takes no writes', async () => {
  const { pool, url } = server.database;
  const name = new URL(url).pathname.slice(1);
  expect(await ofDatabase('annals_database_writable')).toBe(1);
  // Of connections from now on.
  await pool.query(`alter database ${name} set default_transaction_read_only = on`);
  try {
    expect(await ofDatabase('annals_database_writable')).toBe(0);
    expect(await ofDatabase('annals_database_up')).toBe(1);
  } finally {
    await pool.query(`alter database ${name} reset default_transaction_read_only`);
  }
  expect(await ofDatabase('annals_database_writable')).toBe(1);
});

test('changes are folded by the upkeep, and counted', async () => {
  const [folds, changes] = [
    (await ofProcess('annals_folds_total')) ?? 0,
    (await ofProcess('annals_folded_changes_total')) ?? 0,
  ];
  await recordUpdates(server, tenant, ['a', 'b', 'c']);
  await eventually(() => ofDatabase('annals_pending_changes')).toBe(0);
  await eventually(
    async () => ((await ofProcess('annals_folded_changes_total')) ?? 0) - changes,
  ).toBeGreaterThanOrEqual(3);
  expect(await ofProcess('annals_folds_total')).toBeGreaterThan(folds);
  expect(await ofDatabase('annals_pending_oldest_seconds')).toBe(0);
});

test('a fold that fails counts, and its changes stay pending until the next one', async () => {
  const { pool } = server.database;
  const failures = (await ofProcess('annals_fold_failures_total')) ?? 0;
  await pool.query('alter table change_tally rename to change_tally_away');
  try {
    await recordUpdates(server, tenant, ['d']);
    await eventually(() => ofProcess('annals_fold_failures_total')).toBeGreaterThan(failures);
    expect(await ofDatabase('annals_pending_changes')).toBeGreaterThanOrEqual(1);
  } finally {
    await pool.query('alter table change_tally_away rename to change_tally');
  }
  await eventually(() => ofDatabase('annals_pending_changes')).toBe(0);
});

test('the age of the oldest row counts from when it was first seen, and ends with it', () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const age = new AgeOfOldest();
  const [first, second] = [
    { tenant: 'one', oldest: 1 },
    { tenant: 'two', oldest: 1 },
  ];
  expect(age.seconds([first])).toBe(0);
  vi.advanceTimersByTime(5_000);
  expect(age.seconds([first, second])).toBe(5);
  vi.advanceTimersByTime(2_000);
  // Another row is the oldest of the first tenant now.
  expect(age.seconds([{ ...first, oldest: 2 }, second])).toBe(2);
  vi.advanceTimersByTime(1_000);
  expect(age.seconds([])).toBe(0);
  expect(age.seconds([second])).toBe(0);
});

test('a witness that cannot be reached counts as such', async () => {
  await eventually(() => ofProcess('annals_cosignatures_total{outcome="failed"}')).toBeGreaterThan(0);
});

test('a job counts as open while it runs, and by its status when it has ended', async () => {
  const open = async (state: string) => (await ofDatabase(`annals_jobs{type="EXPORT",state="${state}"}`)) ?? Number.NaN;
  const locked = await lockTables(server.database, ['change_entry']);
  try {
    const response = await server.call(`/ai-service/${tenant}/jobs`, {
      token,
      json: { type: 'EXPORT', q: '', format: 'NDJSON' },
    });
    expect(response.status).toBe(201);
    await eventually(() => open('running')).toBe(1);
    expect(await ofDatabase('annals_job_oldest_seconds{type="EXPORT",state="running"}')).toBeGreaterThan(0);
    expect(await open('waiting')).toBe(0);
  } finally {
    await locked.release();
  }
  await eventually(() => open('running')).toBe(0);
  expect(await ofDatabase('annals_job_oldest_seconds{type="EXPORT",state="running"}')).toBe(0);
  await eventually(() => ofProcess('annals_jobs_ended_total{type="EXPORT",status="success"}')).toBe(1);
});

test('a subscription is behind while its target fails, and what it gives up is parked', async () => {
  const acme = subscriptionsOf(server, tenant, token);
  const figures = async () => {
    const values = await readInstallation(server);
    const of = (name: string) => values.get(`annals_delivery_${name}{target="webhook"}`);
    return { positions: of('lag_positions'), seconds: of('lag_seconds'), parked: of('parked_changes') };
  };
  const delivered = (outcome: string) => ofProcess(`annals_deliveries_total{target="webhook",outcome="${outcome}"}`);
  const { id } = await acme.make({ q: 'entity:product', target: { type: 'webhook', url: receiver.url } });
  expect(await ofDatabase('annals_subscriptions{target="webhook",state="active"}')).toBe(1);
  await eventually(figures).toEqual({ positions: 0, seconds: 0, parked: 0 });

  receiver.answer = ({ body }, response) => void response.writeHead(body.includes('"bad"') ? 500 : 204).end();
  await recordUpdates(server, tenant, ['bad', 'good']);
  await eventually(() => acme.counts(id)).toMatchObject({ delivered: 1, pending: 1 });
  expect(await figures()).toMatchObject({ positions: 2, seconds: expect.any(Number), parked: 0 });
  expect((await figures()).seconds).toBeGreaterThan(0);
  expect(await delivered('delivered')).toBe(1);
  expect(await delivered('failed')).toBeGreaterThanOrEqual(1);

  const failures = () => receiver.received.filter(({ body }) => body.includes('"bad"')).length;
  for (let attempts = 1; attempts < 11; attempts += 1) {
    await eventually(failures).toBe(attempts);
    // A success between keeps the subscription from being suspended.
    await recordUpdates(server, tenant, ['good']);
    await eventually(() => acme.counts(id)).toMatchObject({ delivered: 1 + attempts });
    await passTime(server, id, 30 * hour);
  }
  await eventually(figures).toEqual({ positions: 0, seconds: 0, parked: 1 });
  await acme.call('DELETE', `/${id}`);
  expect((await readInstallation(server)).has('annals_subscriptions{target="webhook",state="active"}')).toBe(false);
});
