import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, inject, test } from 'vitest';
import { buildMetricsApp } from '../../src/app.ts';
import { measureDatabase } from '../../src/metrics/database-figures.ts';
import { metricDefinitions } from '../../src/metrics/definitions.ts';
import { type Figures, Metrics, textOf } from '../../src/metrics/metrics.ts';
import { takenObserver } from '../../src/metrics/recording.ts';
import { inTransaction } from '../../src/postgres/transaction.ts';
import { createBatchRecorder } from '../../src/recording/batches/record-batch.ts';
import { closeAfterAll } from '../support/close-after-all.ts';
import { takeDatabaseAway } from '../support/server/database-away.ts';
import { metricsOf, readInstallation, readMetrics, valuesOf } from '../support/server/metric-values.ts';
import { startTestServer } from '../support/server/server.ts';

const secret = 'sk-a-key-that-no-label-may-have';

const server = closeAfterAll(
  await startTestServer({ environment: { ANNALS_METRICS_PORT: '0', ANNALS_SHARED_PROVIDER_TOKEN: secret } }),
);
const app = closeAfterAll(
  await buildMetricsApp({
    logger: server.context.logger,
    readFigures: async () => {
      return [await metricsOf(server).read()];
    },
  }),
);
const url = await app.listen({ host: '127.0.0.1', port: 0 });

const read = (metrics = metricsOf(server)) => readMetrics(metrics);

test('requests count by the template of their route, and no label has what a client wrote', async () => {
  const token = await server.token('acme');
  const before = await read();
  expect((await server.call('/changelog/acme/changelogs?q=actor:Jane', { token })).status).toBe(200);
  expect((await server.call('/changelog/acme/changelogs')).status).toBe(401);
  await server.call(`/nothing/${secret}`);
  await fetch(`${server.baseUrl}/changelog/acme/changelogs`, { method: 'PROPFIND' });
  const after = await read();
  const grown = (name: string) => (after.get(name) ?? 0) - (before.get(name) ?? 0);
  const list = 'route="/changelog/:tenant/changelogs",method="GET"';
  expect(grown(`annals_http_requests_total{${list},status="200"}`)).toBe(1);
  expect(grown(`annals_http_requests_total{${list},status="401"}`)).toBe(1);
  expect(grown(`annals_http_request_duration_seconds_count{${list}}`)).toBe(2);
  expect(grown(`annals_http_request_duration_seconds_bucket{le="+Inf",${list}}`)).toBe(2);
  expect(grown('annals_http_requests_total{route="none",method="GET",status="404"}')).toBe(1);
  expect(grown('annals_http_requests_total{route="none",method="other",status="405"}')).toBe(1);
  expect(after.get('annals_http_requests_in_flight')).toBe(0);
  for (const key of after.keys()) expect(key).not.toMatch(/acme|Jane|PROPFIND|nothing|127\.0\.0\.1|postgres|sk-/);
});

test('a client that goes away counts, and its request is not in flight any more', async () => {
  const { port } = new URL(server.baseUrl);
  const token = await server.token('acme');
  const socket = connect(Number(port), '127.0.0.1');
  await once(socket, 'connect');
  socket.write(
    `POST /configuration/acme/configurations HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token}\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{`,
  );
  await expect.poll(async () => (await read()).get('annals_http_requests_in_flight')).toBe(1);
  const cut = (await read()).get('annals_http_answers_cut_total') ?? 0;
  socket.destroy();
  await expect.poll(async () => (await read()).get('annals_http_requests_in_flight')).toBe(0);
  expect((await read()).get('annals_http_answers_cut_total')).toBe(cut + 1);
});

test('the process, its connections and its shares are measured', async () => {
  const values = await read();
  const value = (name: string) => values.get(name) ?? Number.NaN;
  expect(value('annals_info{version="0.1.0"}')).toBe(1);
  expect(value('annals_process_cpu_seconds_total{mode="user"}')).toBeGreaterThan(0);
  expect(value('annals_process_resident_memory_bytes')).toBeGreaterThan(value('annals_process_heap_used_bytes'));
  expect(value('annals_event_loop_busy_seconds_total')).toBeGreaterThan(0);
  expect(value('annals_database_connections_max{pool="shared"}')).toBe(14);
  const opened = 'annals_database_connections{pool="vital",state=';
  expect(value(`${opened}"used"}`) + value(`${opened}"idle"}`)).toBeGreaterThan(0);
  expect(value('annals_share_places{share="connections for reading"}')).toBeGreaterThanOrEqual(8);
  const release = await server.context.pool.connect();
  release.release();
});

test('what only the database knows is read at most every 10 s, and left out while the database is away', async () => {
  const second = await startTestServer({ environment: { ANNALS_METRICS_PORT: '0' }, database: server.database });
  const { db, sealer } = second.context;
  const metrics = metricsOf(second);
  await inTransaction(db, async (transaction) => {
    const take = createBatchRecorder({ sealer, now: () => Date.now(), onRecorded: takenObserver(metrics) });
    const source = { position: 'line 1', line: () => undefined };
    await take(transaction, {
      tenant: 'acme',
      recordedBy: { way: 'relay', by: 'outbox' },
      strict: false,
      changes: [{ kind: 'rejected', reason: 'it is wrong', source }, { kind: 'ignored' }],
    });
  });
  const values = await read(metrics);
  expect(values.get('annals_database_up')).toBe(1);
  expect(values.get('annals_database_figures_missing')).toBe(0);
  expect(values.get('annals_rejected_changes')).toBe(1);
  expect(values.get('annals_changes_total{way="relay",outcome="rejected"}')).toBe(1);
  expect(values.get('annals_changes_total{way="relay",outcome="ignored"}')).toBe(1);
  expect(values.get('annals_jobs{type="EXPORT",state="waiting"}')).toBe(0);
  expect(values.get('annals_mails_waiting')).toBe(0);
  expect(values.get('annals_console_sessions')).toBe(0);
  expect(values.get('annals_pending_changes')).toBeGreaterThanOrEqual(0);
  expect(values.has('annals_capture_position_age_seconds')).toBe(false);

  // Its figures are a moment old, so the database is not queried again.
  const bringBack = await takeDatabaseAway(server.database.url);
  try {
    expect((await read(metrics)).get('annals_database_up')).toBe(1);
    // The figures of the first server are older, or a new one reads them now.
    const away = await readInstallation(server);
    expect(away.get('annals_database_up')).toBe(0);
    expect([...away.keys()].filter((name) => /^annals_(jobs|mails|pending|rejected|console)/.test(name))).toEqual([]);
  } finally {
    await bringBack();
  }
  await second.close();
});

test('what the database takes of the disk is measured, and what is left of the disk of the embedded one', async () => {
  const measured = async (dataDir: string | undefined) => {
    const values = await readInstallation(server, dataDir);
    return [...values].filter(([name]) => /^annals_database_(size|log|disk)/.test(name));
  };
  expect((await measured(undefined)).map(([name]) => name)).toEqual([
    'annals_database_size_bytes',
    'annals_database_log_bytes',
  ]);
  const embedded = new Map(await measured(inject('initialisedFolder')));
  const [total = 0, free = 0] = ['annals_database_disk_bytes', 'annals_database_disk_free_bytes'].map((name) =>
    embedded.get(name),
  );
  expect(free).toBeGreaterThan(0);
  expect(total).toBeGreaterThan(free);
});

test('a database that hangs stops no reading', async () => {
  const metrics = new Metrics();
  const never = new Promise<void>(() => {});
  const ends: boolean[] = [];
  measureDatabase(metrics, {
    up: 'annals_database_up',
    begin: async () => {},
    figures: [
      { names: ['annals_rejected_changes'], read: async (set) => set('annals_rejected_changes', {}, 7) },
      { names: ['annals_mails_waiting'], read: () => never },
      { names: ['annals_console_sessions'], read: async (set) => set('annals_console_sessions', {}, 1) },
    ],
    end: (isLate) => void ends.push(isLate),
    deadline: 30,
  });
  const values = await read(metrics);
  expect([...values]).toEqual([
    ['annals_rejected_changes', 7],
    ['annals_database_up', 1],
    ['annals_database_figures_missing', 2],
  ]);
  expect(ends).toEqual([true]);
});

test('a figure whose labels are gone is gone as well', async () => {
  const metrics = new Metrics();
  const types = ['EXPORT', 'AGENT_CHAT'];
  measureDatabase(metrics, {
    up: 'annals_database_up',
    begin: async () => {},
    figures: [
      {
        names: ['annals_jobs'],
        read: async (set) => set('annals_jobs', { type: types.shift() ?? '', state: 'waiting' }, 1),
      },
    ],
    end: () => {},
    every: 0,
  });
  await read(metrics);
  expect([...(await read(metrics)).keys()].filter((name) => name.startsWith('annals_jobs'))).toEqual([
    'annals_jobs{type="AGENT_CHAT",state="waiting"}',
  ]);
});

test('the figures of several processes become one: sums, and the maximum of what all of them see', async () => {
  const figures = await Promise.all(
    [1, 2].map(async (share): Promise<Figures> => {
      const metrics = new Metrics();
      metrics.count('annals_http_requests_total', { route: '/a', method: 'GET', status: '200' }, share);
      metrics.observe('annals_http_request_duration_seconds', { route: '/a', method: 'GET' }, share);
      metrics.set('annals_pending_changes', {}, share);
      metrics.set('annals_database_up', {}, share - 1);
      // As plain data, as it comes from another process.
      return JSON.parse(JSON.stringify(await metrics.read()));
    }),
  );
  const values = valuesOf(await textOf(figures));
  expect(values.get('annals_http_requests_total{route="/a",method="GET",status="200"}')).toBe(3);
  expect(values.get('annals_http_request_duration_seconds_sum{route="/a",method="GET"}')).toBe(3);
  expect(values.get('annals_http_request_duration_seconds_bucket{le="1",route="/a",method="GET"}')).toBe(1);
  expect(values.get('annals_pending_changes')).toBe(2);
  expect(values.get('annals_database_up')).toBe(0);
});

test('the port has GET /metrics alone', async () => {
  const answer = await fetch(`${url}/metrics`);
  expect(answer.status).toBe(200);
  expect(answer.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
  const text = await answer.text();
  for (const line of text.split('\n'))
    expect(line).toMatch(/^$|^# (HELP|TYPE) annals_|^annals_[a-z0-9_]+(\{.*\})? \S+$/);
  for (const name of valuesOf(text).keys()) {
    const [base = ''] = name.split('{');
    expect(Object.keys(metricDefinitions)).toContain(
      base in metricDefinitions ? base : base.replace(/_(bucket|sum|count)$/, ''),
    );
  }
  expect((await fetch(`${url}/metrics`, { method: 'HEAD' })).status).toBe(200);
  const post = await fetch(`${url}/metrics`, { method: 'POST' });
  expect([post.status, post.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
  expect((await fetch(`${url}/metrics`, { method: 'PUT', body: 'x'.repeat(2_000) })).status).toBe(413);
  for (const path of ['/', '/metrics/', '/health/live', '/changelog/acme/changelogs']) {
    expect((await fetch(`${url}${path}`)).status, path).toBe(404);
  }
  // The service's own port does not have it.
  expect((await server.call('/metrics')).status).toBe(404);
});

test('a client that takes nothing holds no memory of its own, and other scrapes continue', async () => {
  const { port } = new URL(url);
  const socket = connect(Number(port), '127.0.0.1');
  socket.pause();
  await once(socket, 'connect');
  socket.write('GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(500));
  expect((await fetch(`${url}/metrics`)).status).toBe(200);
  socket.destroy();
});
