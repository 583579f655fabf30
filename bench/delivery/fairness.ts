import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { createClient } from '../../src/access/oauth/clients.ts';
import { createPool } from '../../src/postgres/connections/pool.ts';
import { createDatabase } from '../../src/postgres/database.ts';
import { migrate } from '../../src/postgres/migrate/migrate.ts';
import { createTenant } from '../../src/postgres/tenants/tenants.ts';
import { createRecorder } from '../../src/recording/record-change.ts';
import { startAnnals } from '../../test/support/server/command.ts';
import { changeOf } from '../../test/support/server/history.ts';
import { startReceiver } from '../../test/support/vendor/receiver.ts';
import { startServer } from '../positions/server.ts';

// Milliseconds from the commit of a change to the webhook of a quiet tenant: alone, and beside a tenant with 50 subscriptions from the start
// of its history, a third of them to a closed port, a third to a server that never answers, and a third to one that takes all.
const { values: settings } = parseArgs({
  options: { changes: { type: 'string', default: '1000000' }, seconds: { type: 'string', default: '30' } },
});
const scope = 'changelog.changelog_read changelog.subscription_read changelog.subscription_manage';
const clock = () => performance.timeOrigin + performance.now();

const server = await startServer();
const pool = createPool(server.url, { maximum: 4 });
const db = createDatabase(pool);
await migrate(pool);
const service = startAnnals(['serve'], {
  DATABASE_URL: server.url,
  ANNALS_SECRET_KEY: randomBytes(32).toString('base64'),
  ANNALS_DELIVERY_ALLOW: 'noisy=127.0.0.0/8,quiet=127.0.0.0/8',
  LOG_LEVEL: 'fatal',
  PORT: '0',
});
const baseUrl = await service.firstLine;
const [hanging, taking, quick] = [await startReceiver(), await startReceiver(), await startReceiver()];
hanging.answer = () => {};
const cameAt = new Map<string, number>();
quick.answer = ({ body }, response) => {
  const { data } = JSON.parse(body) as { data: { entityId: string } };
  if (!cameAt.has(data.entityId)) cameAt.set(data.entityId, clock());
  response.writeHead(204).end();
};

const makerOf = async (tenant: string) => {
  await createTenant(db, tenant);
  const { clientId, clientSecret } = await createClient(db, { tenant, scope, name: 'maker' });
  const form = new URLSearchParams({
    grant_type: 'client_credentials',
    client_id: clientId,
    client_secret: clientSecret,
  });
  const answer = await fetch(`${baseUrl}/oauth/token`, { method: 'POST', body: form });
  const { access_token: token } = (await answer.json()) as { access_token: string };
  return async (body: object) => {
    const response = await fetch(`${baseUrl}/changelog/${tenant}/subscriptions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
  };
};

let made = 0;
async function latencies(): Promise<{ median: number; p99: number; max: number; missing: number }> {
  const record = createRecorder(db, 'quiet', Date.now);
  const committed = new Map<string, number>();
  const until = performance.now() + Number(settings.seconds) * 1_000;
  while (performance.now() < until) {
    made += 1;
    await record([changeOf({ at: Date.now(), entity: 'order', entityId: `${made}` })]);
    committed.set(`${made}`, clock());
    await sleep(200);
  }
  for (let waits = 0; waits < 100 && [...committed.keys()].some((id) => !cameAt.has(id)); waits += 1) await sleep(100);
  const sorted = [...committed]
    .flatMap(([id, at]) => (cameAt.has(id) ? [(cameAt.get(id) ?? 0) - at] : []))
    .toSorted((one, other) => one - other);
  const quantile = (part: number) =>
    Math.round(sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? 0);
  return { median: quantile(0.5), p99: quantile(0.99), max: quantile(1), missing: committed.size - sorted.length };
}

try {
  const quiet = await makerOf('quiet');
  await quiet({ name: 'quiet', q: 'entity:order', target: { type: 'webhook', url: quick.url } });
  const noisy = await makerOf('noisy');
  const record = createRecorder(db, 'noisy', Date.now);
  const size = 2_000;
  for (let done = 0; done < Number(settings.changes); done += size)
    await record(Array.from({ length: size }, (_none, i) => changeOf({ at: Date.now(), entityId: `${done + i}` })));
  const alone = await latencies();
  const urls = ['http://127.0.0.1:9/closed', hanging.url, taking.url];
  for (let number = 0; number < 50; number += 1) {
    const target = { type: 'webhook', url: urls[number % urls.length], concurrency: 8 };
    await noisy({ name: `noisy ${number}`, from: 'start', maxAge: 'P30D', target });
  }
  const beside = await latencies();
  process.stdout.write(
    `${JSON.stringify({ changes: Number(settings.changes), alone, beside, noisy: { hanging: hanging.received.length, delivered: taking.received.length } })}\n`,
  );
} finally {
  service.process.kill('SIGKILL');
  await service.ended;
  await pool.end();
  await server.stop();
}
process.exit();
