import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { gzipSync } from 'node:zlib';
import { createClient } from '../../src/access/oauth/clients.ts';
import { createPool } from '../../src/postgres/connections/pool.ts';
import { createDatabase } from '../../src/postgres/database.ts';
import { freePort } from '../../src/postgres/embedded/free-port.ts';
import { openEmbeddedDatabase } from '../../src/postgres/embedded/open-embedded-database.ts';
import { migrate } from '../../src/postgres/migrate/migrate.ts';
import { createTenant } from '../../src/postgres/tenants/tenants.ts';
import { watchReport } from '../metrics/panels.ts';
import { watchMetrics, watchQuietly } from '../metrics/prometheus.ts';

// Two recorders under 64 clients, one of which is killed with SIGKILL again and again: what was acknowledged must be an entry
// exactly once. test/sources/recorder/kill.test.ts is the short form.
const { values: settings } = parseArgs({
  options: {
    kills: { type: 'string', default: '100' },
    clients: { type: 'string', default: '64' },
    changes: { type: 'string', default: '10' },
    data: { type: 'string', default: join(import.meta.dirname, '../../data/bench') },
  },
});

const launcher = join(import.meta.dirname, '../../bin/annals.js');
const tenant = 'shop';
const name = `annals_kill_${randomBytes(4).toString('hex')}`;
const key = randomBytes(32).toString('base64');

await mkdir(settings.data, { recursive: true });
const embedded = process.env.DATABASE_URL
  ? { url: process.env.DATABASE_URL, release: async () => {} }
  : await openEmbeddedDatabase({ dataDir: settings.data, log: (line) => process.stderr.write(`${line}\n`) });
const server = createPool(embedded.url, { maximum: 1 });
await server.query(`create database ${name}`);
const url = Object.assign(new URL(embedded.url), { pathname: name }).href;
const pool = createPool(url, { maximum: 2 });
try {
  await migrate(pool);
  const db = createDatabase(pool);
  await createTenant(db, tenant);
  const { clientId, clientSecret } = await createClient(db, { tenant, scope: 'recorder.change_record', name: 'Shop' });
  await run(`Basic ${Buffer.from(`${clientId}:${clientSecret}`).toString('base64')}`);
} finally {
  await pool.end();
  await server.query(`drop database ${name} with (force)`);
  await server.end();
  await embedded.release();
}

async function run(authorization: string): Promise<void> {
  const metrics = [`127.0.0.1:${await freePort()}`, `127.0.0.1:${await freePort()}`] as const;
  const recorders = metrics.map(startRecorder);
  await Promise.all(recorders.map(({ baseUrl }) => baseUrl));
  const watch = await watchMetrics(join(settings.data, 'kill'), { 'recorder 1': metrics[0], 'recorder 2': metrics[1] });
  await watchQuietly(watch, 20);
  watch?.begin('load and kills');
  const acknowledged = new Set<string>();
  let sent = 0;
  let turn = 0;
  let isOver = false;

  async function clientAt(client: number): Promise<void> {
    for (let request = 0; !isOver; request++) {
      const ids = Array.from({ length: Number(settings.changes) }, (_none, index) => `${client}-${request}-${index}`);
      const at = new Date().toISOString();
      const body = gzipSync(
        ids
          .map((id) => JSON.stringify({ id, op: 'insert', entity: 'order', entityId: id, at, after: { id } }))
          .join('\n'),
      );
      for (;;) {
        turn += 1;
        sent += 1;
        const baseUrl = await recorders[turn % 2]?.baseUrl;
        const answer = await fetch(`${baseUrl}/recorder/${tenant}/changes`, {
          method: 'POST',
          headers: { authorization, 'content-type': 'application/x-ndjson', 'content-encoding': 'gzip' },
          body,
        }).catch(() => undefined);
        if (answer?.status === 200) break;
        if (answer !== undefined && answer.status < 429) throw new Error(`${answer.status} ${await answer.text()}`);
        await sleep(50 + Math.random() * 100);
      }
      for (const id of ids) acknowledged.add(id);
    }
  }

  const clients = Array.from({ length: Number(settings.clients) }, (_none, client) => clientAt(client));
  for (let kill = 0; kill < Number(settings.kills); kill++) {
    await sleep(Math.random() * 300);
    const place = kill % 2 === 0 ? 0 : 1;
    recorders[place]?.process.kill('SIGKILL');
    recorders[place] = startRecorder(metrics[place]);
    await recorders[place].baseUrl;
    process.stderr.write(`${kill + 1} killed, ${acknowledged.size} changes acknowledged\n`);
  }
  isOver = true;
  await Promise.all(clients);
  watch?.begin('after');
  await watchQuietly(watch, 75);
  const shown = await watchReport(watch);
  await watch?.close();
  for (const { process: recorder } of recorders) recorder.kill('SIGTERM');
  const { rows } = await pool.query<{ id: string; entries: number }>(
    'select entity_id as id, count(*)::integer as entries from change_entry where tenant = $1 group by 1',
    [tenant],
  );
  const doubled = rows.filter((row) => row.entries > 1).length;
  const entries = new Set(rows.map(({ id }) => id));
  const lost = [...acknowledged].filter((id) => !entries.has(id)).length;
  process.stdout.write(
    `${JSON.stringify({ requests: sent, acknowledged: acknowledged.size, lost, doubled })}\n${shown.join('\n')}\n`,
  );
  if (lost + doubled > 0) process.exitCode = 1;
}

function startRecorder(metrics: string): { process: ChildProcess; baseUrl: Promise<string> } {
  const recorder = spawn(process.execPath, [launcher, 'recorder'], {
    env: {
      ...process.env,
      DATABASE_URL: url,
      ANNALS_SECRET_KEY: key,
      ANNALS_RECORDER_PORT: '0',
      ANNALS_METRICS_PORT: metrics,
      LOG_LEVEL: 'fatal',
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const baseUrl = once(createInterface({ input: recorder.stdout }), 'line').then(([line]) => String(line));
  return { process: recorder, baseUrl };
}
