import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs, promisify } from 'node:util';
import { createClient } from '../../src/access/oauth/clients.ts';
import { scopes } from '../../src/http/scopes.ts';
import { createPool } from '../../src/postgres/connections/pool.ts';
import { createDatabase } from '../../src/postgres/database.ts';
import { freePort } from '../../src/postgres/embedded/free-port.ts';
import { distribute } from '../../src/postgres/migrate/distribute.ts';
import { createTenant } from '../../src/postgres/tenants/tenants.ts';
import {
  clusterOfEnvironment,
  createClusterDatabase,
  moveTenant,
  onAllNodes,
  placementOf,
} from '../../test/support/server/cluster.ts';
import { startVendor } from '../../test/support/vendor/vendor-server.ts';
import { watchReport } from '../metrics/panels.ts';
import { watchMetrics, watchQuietly } from '../metrics/prometheus.ts';
import { chat, exportHistory, Session } from '../soak/clients.ts';
import { Outcomes } from '../soak/outcomes.ts';
import { Kept } from '../soak/processes.ts';
import { Answers, isSuccess, p99Of, statusesOf } from './answers.ts';
import { checkTenant } from './check.ts';
import { type Probed, probeAll, type Seen } from './probes.ts';

// Recorders, readers, writers, chats and exports of four tenants on two workers, while shards move and workers are killed. At the
// end what was acknowledged is compared with what is there.
const { values: settings } = parseArgs({
  options: {
    moves: { type: 'string', default: '20' },
    kills: { type: 'string', default: '20' },
    /** Shell commands. HOST and PORT name the worker. */
    kill: { type: 'string' },
    start: { type: 'string' },
    /** Keeps the database after the run, for inspection. */
    keep: { type: 'boolean', default: false },
  },
});
const cluster = clusterOfEnvironment(process.env);
if (cluster === undefined) throw new Error('CITUS_DATABASE_URL and CITUS_WORKERS must name a cluster');
const kills = Number(settings.kills);
if (kills > 0 && (settings.kill === undefined || settings.start === undefined)) {
  throw new Error('--kill and --start are needed, or --kills 0');
}

const say = (line: string) => process.stdout.write(`${new Date().toISOString().slice(11, 19)} ${line}\n`);
const name = `annals_bench_cluster_${process.pid}`;
const url = await createClusterDatabase(cluster, name);
const pool = createPool(url, { maximum: 4 });
pool.on('error', () => {});
const { workers } = await distribute(pool, { shards: 8 });
const db = createDatabase(pool);
const vendor = await startVendor();
const messages = new Outcomes();
const environment = {
  DATABASE_URL: url,
  ANNALS_SECRET_KEY: randomBytes(32).toString('base64'),
  LOG_LEVEL: 'warn',
  OPENAI_BASE_URL: vendor.baseUrl,
  ANNALS_SELF_HOSTED_ALLOW: '127.0.0.0/8',
};
const onLine = (line: string) => messages.add('log', messageOf(line));
const targets = { service: `127.0.0.1:${await freePort()}`, recorder: `127.0.0.1:${await freePort()}` };
const service = new Kept(['serve'], { ...environment, ANNALS_METRICS_PORT: targets.service }, onLine);
const recorder = new Kept(['recorder'], { ...environment, ANNALS_METRICS_PORT: targets.recorder }, onLine);
const urls = await Promise.all([service.start(), recorder.start()]);

const folder = await mkdtemp(join(tmpdir(), 'annals-cluster-'));
const watch = await watchMetrics(folder, targets);
const over = new AbortController();
const outcomes = new Outcomes();
const answers = new Answers();
const tenants = await chooseTenants();
const known = new Map<string, { seen: Seen; caller: Probed; chats: number }>();
const loads: Promise<unknown>[] = [];
for (const tenant of tenants) await startLoad(tenant);
say(`begun with ${tenants.join(', ')} on ${workers.join(' and ')}`);
await sleep(5_000);
const quiet = performance.now();
await sleep(20_000);
say(`quiet: ${statusesOf(answers.between(tenants, quiet, performance.now()))}, p99 ${p99In(tenants, quiet)} ms`);
watch?.begin('moves');
await moveShards(Number(settings.moves));
watch?.begin('kills');
await killWorkers(kills);
watch?.begin('after');
await sleep(5_000);
await watchQuietly(watch, 85);
over.abort();
await Promise.all(loads);
say('the load is over; checking');
for (const line of [...(await check()), ...(await watchReport(watch))]) process.stdout.write(`${line}\n`);
await watch?.close();
await rm(folder, { recursive: true, force: true });
await Promise.all([recorder.stop(), service.stop()]);
process.stdout.write(
  `\nAnswers to chats and exports:\n${outcomes.lines.join('\n')}\n\nLog:\n${messages.lines.join('\n')}\n`,
);
await vendor.close();
await db.destroy();
if (!settings.keep) await onAllNodes(cluster, `drop database if exists ${name} with (force)`);

/** Two tenants on each of two workers. */
async function chooseTenants(): Promise<string[]> {
  const chosen = new Map<string, string[]>();
  for (let n = 0; chosen.size < 2 || [...chosen.values()].some(({ length }) => length < 2); n++) {
    const tenant = `tenant${String.fromCharCode(97 + (n % 26)).repeat(1 + Math.floor(n / 26))}`;
    const worker = await workerOf(tenant);
    const there = chosen.get(worker) ?? [];
    if (there.length < 2) chosen.set(worker, [...there, tenant]);
  }
  return [...chosen.values()].flat();
}

async function workerOf(tenant: string): Promise<string> {
  const { host, port } = await placementOf(pool, tenant);
  return `${host}:${port}`;
}

async function startLoad(tenant: string): Promise<void> {
  await createTenant(db, tenant);
  const client = await createClient(db, { tenant, scope: scopes.join(' '), name: 'Cluster' });
  const basic = `Basic ${Buffer.from(`${client.clientId}:${client.clientSecret}`).toString('base64')}`;
  const [serviceUrl, recorderUrl] = urls;
  const caller = { tenant, service: serviceUrl, recorder: recorderUrl, basic, outcomes, over: over.signal, answers };
  const seen: Seen = { changes: [], keys: [], unknownKeys: [], foreign: [] };
  const session = new Session(caller);
  const desk = {
    name: { en: 'Desk' },
    llmConfig: { provider: 'openai', model: 'gpt-5.4-mini', apiKey: 'sk-cluster' },
  };
  const path = `/ai-service/${tenant}/agentic/agents/desk`;
  await session.call('prepare', path, { method: 'PUT', body: JSON.stringify(desk) });
  const granted = await fetch(`${serviceUrl}/oauth/token`, {
    method: 'POST',
    headers: { authorization: basic },
    body: new URLSearchParams({ grant_type: 'client_credentials' }),
  });
  const { access_token: token = '' } = (await granted.json()) as { access_token?: string };
  const acknowledged = { changes: [], writes: 0, unknownWrites: 0, chats: 0, unknownChats: 0, exports: 0 };
  known.set(tenant, { seen, caller, chats: 0 });
  loads.push(
    probeAll(caller, seen, token),
    chat(caller, acknowledged).then(() => known.set(tenant, { seen, caller, chats: acknowledged.chats })),
    exportHistory(caller, acknowledged),
  );
}

async function moveShards(times: number): Promise<void> {
  if (cluster === undefined) return;
  for (let move = 1; move <= times; move++) {
    const tenant = tenants[move % tenants.length] ?? '';
    const begun = performance.now();
    const failure = await moveTenant(cluster, pool, tenant).then(
      () => '',
      (error: Error) => `FAILED: ${error.message}`,
    );
    const seconds = ((performance.now() - begun) / 1000).toFixed(1);
    await sleep(1_000);
    const during = answers.between(tenants, begun, performance.now());
    say(`move ${move} of ${tenant} in ${seconds} s ${failure}: ${statusesOf(during)}, p99 ${p99In(tenants, begun)} ms`);
  }
}

async function killWorkers(times: number): Promise<void> {
  for (let kill = 1; kill <= times; kill++) {
    await sleep(2_000 + Math.random() * 2_000);
    const worker = workers[Math.floor(Math.random() * workers.length)] ?? '';
    const places = await Promise.all(tenants.map(async (tenant) => ({ tenant, worker: await workerOf(tenant) })));
    const hit = places.filter((place) => place.worker === worker).map(({ tenant }) => tenant);
    const others = tenants.filter((tenant) => !hit.includes(tenant));
    const killed = performance.now();
    await run(settings.kill, worker);
    await sleep(3_000 + Math.random() * 4_000);
    await run(settings.start, worker);
    const back = performance.now();
    const recovered = await Promise.all(hit.map((tenant) => firstSuccessesAfter(tenant, back)));
    const end = performance.now();
    const slowest = Math.max(0, ...recovered) / 1000;
    say(
      `kill ${kill} of ${worker}, away ${((back - killed) / 1000).toFixed(1)} s; its tenants ${hit.join(', ') || 'none'}: ${statusesOf(
        answers.between(hit, killed, end),
      )}, all operations again ${slowest.toFixed(1)} s after; others: ${statusesOf(answers.between(others, killed, end))}, p99 ${p99In(others, killed)} ms`,
    );
  }
}

/** Milliseconds from a moment until each operation of the tenant has succeeded in a call that began after it. */
async function firstSuccessesAfter(tenant: string, moment: number): Promise<number> {
  const operations = new Set(answers.all.map(({ operation }) => operation));
  for (;;) {
    const after = answers.between([tenant], moment, Number.POSITIVE_INFINITY).filter(isSuccess);
    const firsts = [...operations].map((operation) => after.find((answer) => answer.operation === operation));
    const ends = firsts.map((answer) => (answer === undefined ? Number.NaN : answer.begun + answer.took - moment));
    if (!ends.some(Number.isNaN)) return Math.max(...ends);
    if (performance.now() > moment + 120_000) return Number.POSITIVE_INFINITY;
    await sleep(50);
  }
}

function p99In(of: readonly string[], begin: number): string {
  return p99Of(answers.between(of, begin, performance.now())).toFixed(0);
}

async function run(command: string | undefined, worker: string): Promise<void> {
  const { hostname: HOST, port: PORT } = new URL(`http://${worker}`);
  await promisify(execFile)('sh', ['-c', command ?? ''], { env: { ...process.env, HOST, PORT } });
}

async function check(): Promise<string[]> {
  const lines: string[] = [];
  for (const [tenant, { seen, caller, chats }] of known) {
    const always = encodeURIComponent('occurredAt:>="1970-01-01T00:00:00Z"');
    const session = new Session(caller);
    const answer = await session.call('total', `/changelog/${tenant}/changelogs?size=1&q=${always}`);
    const { totalElements: total } = JSON.parse(answer?.text ?? '{}') as { totalElements: number };
    lines.push(...(await checkTenant({ pool, db, tenant, seen, total })));
    const logged = await pool.query('select from agent_request_log where tenant = $1', [tenant]);
    const count = logged.rowCount ?? 0;
    lines.push(`${count >= chats ? 'ok' : 'FAILED'} ${tenant}: ${chats} chats answered, ${count} in the log`);
  }
  const dishonest = answers.all.filter(({ status }) => status !== 503 && (status >= 400 || status === 0));
  lines.push(
    `${dishonest.length === 0 ? 'ok' : 'FAILED'} answers that are neither a success nor 503: ${statusesOf(dishonest) || 'none'}`,
  );
  return lines;
}

function messageOf(line: string): string {
  try {
    const { level, msg, err } = JSON.parse(line) as { level: string; msg: string; err?: { message: string } };
    return `${level} ${msg}${err === undefined ? '' : `: ${err.message.slice(0, 80)}`}`;
  } catch {
    return line.slice(0, 160);
  }
}
