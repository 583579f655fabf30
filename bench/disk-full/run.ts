import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdir, rm, statfs, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { createClient } from '../../src/access/oauth/clients.ts';
import { scopes } from '../../src/http/scopes.ts';
import { createPool } from '../../src/postgres/connections/pool.ts';
import { createDatabase } from '../../src/postgres/database.ts';
import { freePort } from '../../src/postgres/embedded/free-port.ts';
import { openEmbeddedDatabase } from '../../src/postgres/embedded/open-embedded-database.ts';
import { migrate } from '../../src/postgres/migrate/migrate.ts';
import { createTenant } from '../../src/postgres/tenants/tenants.ts';
import { startVendor } from '../../test/support/vendor/vendor-server.ts';
import { ask } from '../capture/world.ts';
import { watchReport } from '../metrics/panels.ts';
import { watchMetrics, watchQuietly } from '../metrics/prometheus.ts';
import { Counts } from '../recording/counts.ts';
import { Supervised } from '../recording/supervised.ts';
import { fillDisk } from './fill-disk.ts';
import { type Bench, ServiceCalls } from './service-calls.ts';
import { makeShop, mappingOf, retainedBySource, ShopWriters, tables } from './shop.ts';

// The disk of Annals' database is full for some minutes. Meanwhile an application writes, capture, the relay and clients of the
// recorder record, and callers use everything that the service has: documents, the history, tokens, completions, chats, usage,
// imports. The application must go on, every answer must be honest, nothing acknowledged may be lost, and once there is room again every
// change must be an entry exactly once. Annals' cluster stands on a tmpfs of its own, so this needs root.
const { values: settings } = parseArgs({
  options: {
    minutes: { type: 'string', default: '5' },
    size: { type: 'string', default: '320' },
    /** All pauses of writers, clients and readers are longer by this factor. An hour needs it: the disk is small. */
    slowness: { type: 'string', default: '1' },
    /** KiB that other work writes into the source's log each second. */
    noise: { type: 'string', default: '0' },
    data: { type: 'string', default: join(import.meta.dirname, '../../data/bench-disk') },
  },
});
const tenant = 'acme';
const key = randomBytes(32).toString('base64');
const small = join(settings.data, 'annals');
const ballast = join(small, 'ballast');
const mappings = { capture: join(settings.data, 'capture.json'), relay: join(settings.data, 'relay.json') };
const pause = (milliseconds: number) => sleep(milliseconds * Number(settings.slowness));
const log = (line: string) => void process.stderr.write(`${new Date().toISOString().slice(11, 19)} ${line}\n`);

await rm(settings.data, { recursive: true, force: true });
await mkdir(small, { recursive: true });
execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${settings.size}m`, 'tmpfs', small]);
try {
  await run();
} finally {
  execFileSync('umount', ['--lazy', small]);
}

async function run(): Promise<void> {
  const vendor = await startVendor();
  const annals = await openEmbeddedDatabase({ dataDir: small, log });
  const sourceData = join(settings.data, 'source');
  let source = await openEmbeddedDatabase({ dataDir: sourceData, log });
  const superuser = (url: string) => Object.assign(new URL(url), { username: 'postgres' }).href;
  await ask(superuser(source.url), 'alter system set wal_level = logical');
  await source.release();
  source = await openEmbeddedDatabase({ dataDir: sourceData, log });
  const shop = superuser(source.url);
  const authorization = await makeTenant(annals.url);
  await makeShop(shop, tenant, Number(settings.noise));
  await writeFile(mappings.capture, mappingOf('captured', tenant));
  await writeFile(mappings.relay, mappingOf('triggered', tenant));

  const environment = {
    PATH: process.env.PATH,
    DATABASE_URL: annals.url,
    ANNALS_SECRET_KEY: key,
    ANNALS_SOURCE_URL: shop,
    ANNALS_SHARED_PROVIDER_TOKEN: 'sk-shared',
    OPENAI_BASE_URL: `${vendor.baseUrl}/v1`,
    PORT: '0',
    LOG_LEVEL: 'warn',
  };
  const messages = new Counts();
  const targets: Record<string, string> = {};
  const commands = [
    ['capture', '--mapping', mappings.capture],
    ['relay', '--mapping', mappings.relay],
    ['recorder'],
    ['serve'],
  ];
  const processes: Supervised[] = [];
  for (const command of commands) {
    const address = `127.0.0.1:${await freePort()}`;
    targets[command[0] ?? ''] = address;
    processes.push(new Supervised(command, { ...environment, ANNALS_METRICS_PORT: address }, messages));
  }
  const [, , recorder = '', service = ''] = await Promise.all(processes.map((one) => one.ready));

  let phase = 'before';
  let isOver = false;
  const answers = new Counts();
  const bench: Bench = {
    tenant,
    service,
    recorder,
    authorization,
    answers,
    phase: () => phase,
    isOver: () => isOver,
    pause,
  };
  const calls = new ServiceCalls(bench);
  await calls.prepare();
  const writers = new ShopWriters();
  const acknowledged: string[] = [];

  const clients = [0, 1, 2, 3].map(async (client) => {
    for (let request = 0; !isOver; request++) {
      const ids = Array.from({ length: 10 }, (_none, index) => `sent-${client}-${request}-${index}`);
      const at = new Date().toISOString();
      const body = ids.map((id) =>
        JSON.stringify({ id, op: 'insert', entity: 'sent', entityId: id, at, after: { id, note: 'note '.repeat(20) } }),
      );
      for (;;) {
        const url = `${recorder}/recorder/${tenant}/changes`;
        const status = await send('recorder', url, {
          method: 'POST',
          headers: { authorization, 'content-type': 'application/x-ndjson' },
          body: body.join('\n'),
        });
        if (status === 200) break;
        await pause(500);
      }
      acknowledged.push(...ids);
      await pause(50);
    }
  });
  const loads = [calls.run(environment), writers.run(shop, bench, Number(settings.noise))];

  async function send(name: string, url: string, init: RequestInit): Promise<number> {
    const during = phase;
    const answer = await fetch(url, init).catch(() => undefined);
    const text = await answer?.text();
    const retry = answer?.headers.get('retry-after');
    const detail =
      answer !== undefined && answer.status >= 400 ? ` ${text}${retry ? `, Retry-After: ${retry}` : ''}` : '';
    answers.add(`${during}: ${name}: ${answer?.status ?? 'no answer'}${detail}`);
    return answer?.status ?? 0;
  }

  const watch = await watchMetrics(settings.data, targets);
  await sleep(10_000);
  await watchQuietly(watch, 20);
  log(`the disk is filled: ${await roomOf(small)} free`);
  phase = 'full';
  watch?.begin(phase);
  const retained: string[] = [];
  let nextSample = performance.now();
  const until = performance.now() + Number(settings.minutes) * 60_000;
  while (performance.now() < until) {
    await fillDisk(ballast);
    await sleep(1_000);
    if (performance.now() > nextSample) {
      nextSample += 10 * 60_000;
      retained.push(await retainedBySource(shop));
      log(`the source keeps ${retained.at(-1)}`);
    }
  }
  retained.push(await retainedBySource(shop));
  await rm(ballast);
  phase = 'room again';
  watch?.begin(phase);
  log(`there is room again: ${await roomOf(small)} free`);
  await sleep(15_000);
  await watchQuietly(watch, 75);
  isOver = true;
  await Promise.all(loads);
  log('waiting for the clients of the recorder');
  await Promise.all(clients);
  log('comparing');

  const restarts = processes.map((one) => `${one.name} ${one.starts - 1}`).join(', ');
  for (const [name, count] of writers.commits.sorted()) tell(`commits of the application, ${name}: ${count}`);
  for (const [name, time] of writers.slowest) tell(`the slowest of them, ${name}: ${time.toFixed(0)} ms`);
  for (const [name, count] of answers.sorted()) tell(`${count} × ${name}`);
  for (const [name, count] of messages.sorted()) tell(`log, ${count} × ${name}`);
  tell(`restarts: ${restarts}`);
  tell(`log and outbox that the source keeps, each 10 minutes: ${retained.join('; ')}`);
  const verdicts: string[] = [];
  for (const entity of tables) verdicts.push(await compared(entity, shop, annals.url));
  verdicts.push(await comparedSent(acknowledged, annals.url));
  verdicts.push(
    ...(await comparedCalls(calls, annals.url)),
    `counted by the vendor: ${JSON.stringify(vendor.counted)}`,
  );
  for (const line of await watchReport(watch)) tell(line);
  await watch?.close();
  for (const one of processes) await one.stop();
  for (const verdict of verdicts) tell(verdict);
  if (verdicts.some((verdict) => verdict.includes('DIFFERENT'))) process.exitCode = 1;
  await source.release();
  await annals.release();
  await vendor.close();
}

function tell(line: string): void {
  process.stdout.write(`${line}\n`);
}

async function roomOf(folder: string): Promise<string> {
  const { bavail, bsize } = await statfs(folder);
  return `${((bavail * bsize) / 1024 / 1024).toFixed(1)} MiB`;
}

async function makeTenant(url: string): Promise<string> {
  const pool = createPool(url, { maximum: 2 });
  const db = createDatabase(pool);
  try {
    await migrate(pool);
    await createTenant(db, tenant);
    const { clientId, clientSecret } = await createClient(db, { tenant, scope: scopes.join(' '), name: 'Shop' });
    return `Basic ${Buffer.from(`${clientId}:${clientSecret}`).toString('base64')}`;
  } finally {
    await db.destroy();
  }
}

/** Waits until everything that happened is recorded, and compares. */
async function compared(entity: string, shop: string, annals: string): Promise<string> {
  const happened = await ask(shop, `select id, version from happened_${entity} order by id collate "C", version`);
  const text = (rows: Record<string, unknown>[]) => rows.map(({ id, version }) => `${id} ${version}`).join('\n');
  const began = performance.now();
  for (;;) {
    const recorded = await ask(
      annals,
      `select entity_id as id, (paths::jsonb -> 'version' ->> 'after')::int as version
         from change_entry where starts_with(entity_id, $1) order by entity_id, at, sequence`,
      [`${entity}-`],
    ).catch((error: Error) => {
      log(error.message);
      return [];
    });
    const isEqual = text(recorded) === text(happened);
    if (isEqual || performance.now() - began > 60_000) {
      const verdict = isEqual ? 'equal, each once and in its order' : 'DIFFERENT';
      const seconds = ((performance.now() - began) / 1000).toFixed(0);
      return `${entity}: ${happened.length} changes, ${recorded.length} entries after ${seconds} s: ${verdict}`;
    }
    await sleep(500);
  }
}

async function comparedSent(acknowledged: readonly string[], annals: string): Promise<string> {
  const rows = await ask(
    annals,
    `select entity_id as id, count(*)::int as count from change_entry where starts_with(entity_id, 'sent-') group by 1`,
  );
  const entries = new Map(rows.map(({ id, count }) => [String(id), Number(count)]));
  const lost = acknowledged.filter((id) => !entries.has(id)).length;
  const doubled = [...entries.values()].filter((count) => count > 1).length;
  return `sent: ${acknowledged.length} acknowledged, ${lost} lost, ${doubled} doubled${lost + doubled > 0 ? ' DIFFERENT' : ''}`;
}

/** What was written and imported, the total, the usage and the tokens, beside plain counts. */
async function comparedCalls(calls: ServiceCalls, annals: string): Promise<string[]> {
  const { total, entries, inputTokens, outputTokens } = await calls.sums();
  const rows = await ask(annals, 'select entity_id as id from change_entry where tenant = $1', [tenant]);
  const [quota] = await ask(annals, 'select input_used, output_used from completion_quota where tenant = $1', [tenant]);
  const known = new Set(rows.map(({ id }) => id));
  const lost = calls.acknowledged.filter((id) => !known.has(id)).length;
  const isEqual = lost === 0 && total === rows.length && entries === rows.length;
  return [
    `documents and imports: ${calls.acknowledged.length} acknowledged, ${lost} lost; ${rows.length} entries, total ${total}, ` +
      `usage ${entries}: ${isEqual ? 'equal' : 'DIFFERENT'}`,
    `tokens of the quota: ${JSON.stringify(quota)}; of the usage: ${inputTokens} and ${outputTokens}`,
  ];
}
