import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import http from 'node:http';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { createClient } from '../../src/access/oauth/clients.ts';
import { createPool } from '../../src/postgres/connections/pool.ts';
import { createDatabase } from '../../src/postgres/database.ts';
import { createTenant } from '../../src/postgres/tenants/tenants.ts';
import { createRecorder } from '../../src/recording/record-change.ts';
import { startAnnals } from '../../test/support/server/command.ts';
import { changeOf } from '../../test/support/server/history.ts';
import { startServer } from '../positions/server.ts';
import type { WriterTask } from './writer.ts';

// Milliseconds from the commit of a change to a client of server-sent events: one tenant with changes, others that are followed too.
const { values: settings } = parseArgs({
  options: {
    rate: { type: 'string', default: '2000' },
    seconds: { type: 'string', default: '30' },
    /** Followed tenants, the busy one included, each by one reader. */
    tenants: { type: 'string', default: '1000' },
    /** Readers of the busy tenant, all of one query. */
    readers: { type: 'string', default: '1' },
    /** Readers of the busy tenant who take nothing: from the oldest change on with `--behind`, else from now on. */
    slow: { type: 'string', default: '0' },
    behind: { type: 'boolean', default: false },
    /** A transaction that has recorded a change of the busy tenant stays open, and a snapshot. */
    open: { type: 'boolean', default: false },
  },
});
const [tenants, readers, slow] = [Number(settings.tenants), Number(settings.readers), Number(settings.slow)];
const busy = 'busy';
const clock = () => performance.timeOrigin + performance.now();

const server = await startServer();
const environment = {
  DATABASE_URL: server.url,
  ANNALS_SECRET_KEY: randomBytes(32).toString('base64'),
  LOG_LEVEL: 'warn',
  PORT: '0',
};
const service = startAnnals(['serve'], environment);
const pool = createPool(server.url, { maximum: 4 });
const db = createDatabase(pool);
try {
  const baseUrl = await service.firstLine;
  const seen = new Map<number, number>();
  const names = [busy, ...Array.from({ length: tenants - 1 }, (_none, number) => `quiet${number + 1}`)];
  const tokens: string[] = [];
  for (const name of names) {
    await createTenant(db, name);
    const { clientId, clientSecret } = await createClient(db, {
      tenant: name,
      scope: 'changelog.changelog_read',
      name,
    });
    const form = new URLSearchParams({
      grant_type: 'client_credentials',
      client_id: clientId,
      client_secret: clientSecret,
    });
    const response = await fetch(`${baseUrl}/oauth/token`, { method: 'POST', body: form });
    tokens.push(((await response.json()) as { access_token: string }).access_token);
  }
  const [busyToken = '', bystanderToken = ''] = tokens;
  for (const [place, name] of names.entries())
    await follow(baseUrl, name, tokens[place] ?? '', place === 0 ? seen : undefined);
  for (let reader = 1; reader < readers; reader += 1) await follow(baseUrl, busy, busyToken, undefined);
  if (settings.behind) await recordMany();
  const sleepers: http.IncomingMessage[] = [];
  for (let reader = 0; reader < slow; reader += 1) {
    const response = await open(baseUrl, busy, busyToken, settings.behind ? 'start' : 'now');
    sleepers.push(response.pause());
  }
  process.stderr.write(`${names.length + readers - 1 + slow} readers\n`);

  const blocker = new pg.Client(server.url);
  if (settings.open) {
    await blocker.connect();
    await blocker.query(
      'begin isolation level repeatable read; select count(*) from change_delta; select pg_current_xact_id()',
    );
  }
  const task: WriterTask = {
    url: server.url,
    tenant: busy,
    rate: Number(settings.rate),
    seconds: Number(settings.seconds),
  };
  const writer = spawn(process.execPath, [join(import.meta.dirname, 'writer.ts'), JSON.stringify(task)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const committed = new Map<number, number>();
  createInterface({ input: writer.stdout }).on('line', (line) => {
    const [number = 0, at = 0] = line.split(' ').map(Number);
    committed.set(number, at);
  });
  const begun = performance.now();
  const before = await usageOf(service.process.pid);
  const ended = once(writer, 'close');
  let isWriting = true;
  void ended.then(() => {
    isWriting = false;
  });
  const answered: number[] = [];
  while (isWriting) {
    const asked = performance.now();
    const response = await fetch(`${baseUrl}/changelog/${names[1] ?? busy}/changelogs`, {
      headers: { authorization: `Bearer ${bystanderToken || busyToken}` },
    });
    await response.arrayBuffer();
    answered.push(performance.now() - asked);
    await sleep(50);
  }
  const seconds = (performance.now() - begun) / 1_000;
  for (let waits = 0; seen.size < committed.size && waits < 100; waits += 1) await sleep(100);
  const after = await usageOf(service.process.pid);
  const latencies = [...committed].map(([number, at]) => (seen.get(number) ?? Number.POSITIVE_INFINITY) - at);
  process.stdout.write(
    `${JSON.stringify({
      changes: committed.size,
      perSecond: Math.round(committed.size / seconds),
      seen: seen.size,
      readers: names.length + readers - 1,
      slow: { begun: slow, left: sleepers.filter(({ destroyed }) => !destroyed).length },
      open: settings.open,
      latency: quantiles(latencies),
      bystander: quantiles(answered),
      serviceSeconds: after.seconds - before.seconds,
      serviceMiB: { before: before.mebibytes, after: after.mebibytes, peak: after.peak },
    })}\n`,
  );
  if (settings.open) await blocker.end();
} finally {
  service.process.kill('SIGKILL');
  await service.ended;
  await pool.end();
  await server.stop();
}
process.exit();

/** Opens a stream and resolves when it has caught up. Notes when each change came, where it is told to. */
async function follow(
  baseUrl: string,
  tenant: string,
  token: string,
  times: Map<number, number> | undefined,
): Promise<void> {
  const response = await open(baseUrl, tenant, token, 'now');
  await once(response, 'data');
  if (times === undefined) {
    response.resume();
    return;
  }
  let text = '';
  response.setEncoding('utf8').on('data', (chunk: string) => {
    const now = clock();
    text += chunk;
    const end = text.lastIndexOf('\n\n');
    if (end === -1) return;
    for (const [, id] of text.slice(0, end).matchAll(/"entityId":"(\d+)"/g)) times.set(Number(id), now);
    text = text.slice(end);
  });
}

async function open(baseUrl: string, tenant: string, token: string, after: string): Promise<http.IncomingMessage> {
  const request = http.get(`${baseUrl}/changelog/${tenant}/feed?after=${after}`, {
    headers: { accept: 'text/event-stream', authorization: `Bearer ${token}` },
    agent: false,
  });
  request.on('error', () => {});
  const [response] = (await once(request, 'response')) as [http.IncomingMessage];
  if (response.statusCode !== 200) throw new Error(`${tenant} answered ${response.statusCode}`);
  return response.on('error', () => {});
}

/** 16 MiB of texts: more than the operating system takes for a client. */
async function recordMany(): Promise<void> {
  const record = createRecorder(db, busy, Date.now);
  const paths = JSON.stringify({ note: { before: null, after: 'x'.repeat(4_000) } });
  for (let batch = 0; batch < 8; batch += 1)
    await record(Array.from({ length: 500 }, () => changeOf({ at: Date.now(), entityId: 'old', paths })));
}

/** What the service has used: seconds of processor time, and memory. */
async function usageOf(pid: number | undefined): Promise<{ seconds: number; mebibytes: number; peak: number }> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  const [user = 0, system = 0] = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 13)
    .map(Number);
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  const mebibytes = (name: string) =>
    Math.round(Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1]) / 1024);
  return { seconds: (user + system) / 100, mebibytes: mebibytes('VmRSS'), peak: mebibytes('VmHWM') };
}

function quantiles(milliseconds: number[]): { median: number; p99: number; max: number } {
  const sorted = milliseconds.toSorted((one, other) => one - other);
  const at = (part: number) => Math.round(sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? 0);
  return { median: at(0.5), p99: at(0.99), max: at(1) };
}
