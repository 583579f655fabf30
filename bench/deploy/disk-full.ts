// The disk of the database is full while the service answers everything that it has: documents, the history, tokens, completions, chats,
// usage, and an import beside it. What is answered is counted by phase; at the end nothing acknowledged may be missing, and the totals
// have to be those of the entries. The database's cluster stands on a tmpfs of its own, so this needs root.
// Usage: node bench/deploy/disk-full.ts [--seconds 60] [--size 320] [--data FOLDER]

import { execFileSync, spawn } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { createDatabase } from '../../src/db/database.ts';
import { freePort } from '../../src/db/embedded/free-port.ts';
import { openEmbeddedDatabase } from '../../src/db/embedded/open-embedded-database.ts';
import { migrate } from '../../src/db/migrate.ts';
import { createPool } from '../../src/db/pool.ts';
import { createTenant } from '../../src/db/tenants.ts';
import { scopes } from '../../src/http/scopes.ts';
import { createClient } from '../../src/oauth/clients.ts';
import { startVendor } from '../../test/support/vendor/vendor-server.ts';
import { panelTable } from '../metrics/panels.ts';
import { watchMetrics } from '../metrics/prometheus.ts';
import { Counts } from '../recording/counts.ts';
import { fillDisk } from '../recording/fill-disk.ts';
import { Supervised } from '../recording/supervised.ts';

const { values: settings } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    size: { type: 'string', default: '320' },
    data: { type: 'string', default: join(import.meta.dirname, '../../data/bench-full') },
  },
});
const tenant = 'acme';
const ballast = join(settings.data, 'ballast');
const log = (line: string) => void process.stderr.write(`${new Date().toISOString().slice(11, 19)} ${line}\n`);

await rm(settings.data, { recursive: true, force: true });
await mkdir(settings.data, { recursive: true });
execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${settings.size}m`, 'tmpfs', settings.data]);
try {
  await run();
} finally {
  execFileSync('umount', ['--lazy', settings.data]);
}

async function run(): Promise<void> {
  const vendor = await startVendor();
  const database = await openEmbeddedDatabase({ dataDir: settings.data, log });
  const client = await makeTenant(database.url);
  const environment = {
    PATH: process.env.PATH,
    DATABASE_URL: database.url,
    ANNALS_SECRET_KEY: randomBytes(32).toString('base64'),
    ANNALS_SHARED_PROVIDER_TOKEN: 'sk-shared',
    OPENAI_BASE_URL: `${vendor.baseUrl}/v1`,
    PORT: '0',
    LOG_LEVEL: 'warn',
  };
  const metricsPort = String(await freePort());
  const messages = new Counts();
  const answers = new Counts();
  const service = new Supervised(['serve'], { ...environment, ANNALS_METRICS_PORT: metricsPort }, messages);
  const url = await service.ready;
  // Beside the disk that is to be full.
  const watchFolder = `${settings.data}-metrics`;
  const watch = await watchMetrics(watchFolder, { service: `127.0.0.1:${metricsPort}` });
  let phase = 'before';
  let isOver = false;
  const acknowledged: string[] = [];
  let token = await newToken();

  await send('type', 'POST', `/schema/${tenant}/custom-entities`, { id: 'NOTE', name: { en: 'Note' } });
  const agent = {
    id: 'guide',
    name: { en: 'Guide' },
    enabled: true,
    userPrompt: 'Help.',
    llmConfig: { provider: 'shared' },
  };
  await send('agent', 'PUT', `/ai-service/${tenant}/agentic/agents/guide`, agent);

  async function newToken(): Promise<string> {
    const body = new URLSearchParams({
      grant_type: 'client_credentials',
      client_id: client.clientId,
      client_secret: client.clientSecret,
    });
    const answer = await fetch(`${url}/oauth/token`, { method: 'POST', body }).catch(() => undefined);
    const granted = await answer?.text();
    answers.add(`${phase}: token: ${answer?.status ?? 'no answer'}${answer?.status === 200 ? '' : ` ${granted}`}`);
    return answer?.status === 200 ? (JSON.parse(granted ?? '') as { access_token: string }).access_token : token;
  }

  async function send(name: string, method: string, path: string, body?: object): Promise<number> {
    const during = phase;
    const headers = {
      authorization: `Bearer ${token}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    };
    const answer = await fetch(url + path, { method, headers, body: JSON.stringify(body) }).catch(() => undefined);
    const told = await answer?.text().catch(() => 'the answer was cut');
    const retry = answer?.headers.get('retry-after');
    const isFault = answer === undefined || answer.status >= 400;
    answers.add(
      `${during}: ${name}: ${answer?.status ?? 'no answer'}${isFault ? ` ${told}, Retry-After: ${retry}` : ''}`,
    );
    return answer?.status ?? 0;
  }

  async function again(pause: number, turn: () => Promise<unknown>): Promise<void> {
    while (!isOver) {
      await turn();
      await sleep(pause);
    }
  }

  const messagesOfCall = [{ role: 'USER', content: 'Hello' }];
  const loops = [
    again(20, async () => {
      const id = randomUUID();
      const path = `/schema/${tenant}/custom-entities/NOTE/instances`;
      if ((await send('document, write', 'POST', path, { id, note: 'note '.repeat(100) })) === 201)
        acknowledged.push(id);
    }),
    again(100, () => send('documents, read', 'GET', `/schema/${tenant}/custom-entities/NOTE/instances?pageSize=20`)),
    again(100, () => send('history, read', 'GET', `/changelog/${tenant}/changelogs?q=entity:NOTE`)),
    again(500, () => send('usage, read', 'GET', `/usage/${tenant}`)),
    again(500, async () => {
      token = await newToken();
    }),
    again(300, () => send('completion', 'POST', `/ai-service/${tenant}/completions`, { messages: messagesOfCall })),
    again(300, () =>
      send('chat', 'POST', `/ai-service/${tenant}/agentic/chat`, { agentId: 'guide', message: 'Hello' }),
    ),
    again(500, () => send('ready', 'GET', '/health/ready')),
    again(2_000, async () => {
      const during = phase;
      const ids = Array.from({ length: 50 }, () => randomUUID());
      const at = new Date().toISOString();
      const lines = ids.map((id) => JSON.stringify({ op: 'insert', entity: 'line', entityId: id, at, after: { id } }));
      const launcher = join(import.meta.dirname, '../../bin/annals.js');
      const child = spawn(process.execPath, [launcher, 'import', '--tenant', tenant, '-'], { env: environment });
      child.stdin.on('error', () => {});
      child.stdin.end(lines.join('\n'));
      const [told, code] = await Promise.all([text(child.stderr), new Promise((done) => child.once('exit', done))]);
      answers.add(`${during}: import: exit ${code}${code === 0 ? '' : ` ${told.trim().split('\n').at(-1)}`}`);
      if (code === 0) acknowledged.push(...ids);
    }),
  ];

  await sleep(10_000);
  phase = 'full';
  log('the disk is full');
  const until = performance.now() + Number(settings.seconds) * 1_000;
  while (performance.now() < until) {
    await fillDisk(ballast);
    await sleep(500);
  }
  await rm(ballast);
  phase = 'room again';
  log('there is room again');
  await sleep(15_000);
  isOver = true;
  await Promise.all(loops);

  for (const [name, count] of answers.sorted()) process.stdout.write(`${count} × ${name}\n`);
  for (const [name, count] of messages.sorted()) process.stdout.write(`log, ${count} × ${name}\n`);
  process.stdout.write(`the service was started again ${service.starts - 1} times\n`);
  token = await newToken();
  const page = await fetch(`${url}/changelog/${tenant}/changelogs?size=1`, {
    headers: { authorization: `Bearer ${token}` },
  });
  const { totalElements } = (await page.json()) as { totalElements: number };
  const used = await fetch(`${url}/usage/${tenant}`, { headers: { authorization: `Bearer ${token}` } });
  const days = (await used.json()) as { entries: number; inputTokens: number; outputTokens: number }[];
  const shown = watch === undefined ? [] : [...(await watch.alerts()), '', ...(await panelTable(watch))];
  await watch?.close();
  await rm(watchFolder, { recursive: true, force: true });
  await service.stop();
  const pool = createPool(database.url, { maximum: 1 });
  const { rows } = await pool.query<{ id: string }>('select entity_id as id from change_entry where tenant = $1', [
    tenant,
  ]);
  const quota = await pool.query('select input_used, output_used from completion_quota where tenant = $1', [tenant]);
  await pool.end();
  const entries = new Set(rows.map(({ id }) => id));
  const lost = acknowledged.filter((id) => !entries.has(id)).length;
  const sum = (read: (day: (typeof days)[number]) => number) => days.reduce((so, day) => so + read(day), 0);
  process.stdout.write(
    `${acknowledged.length} changes acknowledged, ${lost} lost; ${rows.length} entries, total ${totalElements}, `,
  );
  process.stdout.write(`usage ${sum(({ entries: one }) => one)}\n`);
  process.stdout.write(
    `quota ${JSON.stringify(quota.rows[0])}, usage ${sum((day) => day.inputTokens)} and ${sum((day) => day.outputTokens)}, `,
  );
  process.stdout.write(`counted by the vendor ${JSON.stringify(vendor.counted)}\n`);
  process.stdout.write(shown.map((line) => `${line}\n`).join(''));
  if (lost > 0 || totalElements !== rows.length || sum(({ entries: one }) => one) !== rows.length) process.exitCode = 1;
  await database.release();
  await vendor.close();
}

async function makeTenant(url: string): Promise<{ clientId: string; clientSecret: string }> {
  const pool = createPool(url, { maximum: 2 });
  const db = createDatabase(pool);
  try {
    await migrate(pool);
    await createTenant(db, tenant);
    return await createClient(db, { tenant, scope: scopes.join(' '), name: 'Shop' });
  } finally {
    await db.destroy();
  }
}
