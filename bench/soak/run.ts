import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { setRetention } from '../../src/history/retention/retention.ts';
import { createPool } from '../../src/postgres/connections/pool.ts';
import { createDatabase } from '../../src/postgres/database.ts';
import { freePort } from '../../src/postgres/embedded/free-port.ts';
import { openEmbeddedDatabase } from '../../src/postgres/embedded/open-embedded-database.ts';
import { migrate } from '../../src/postgres/migrate/migrate.ts';
import { startVendor } from '../../test/support/vendor/vendor-server.ts';
import { watchReport } from '../metrics/panels.ts';
import { watchMetrics, watchQuietly } from '../metrics/prometheus.ts';
import { checkHistory } from './check-history.ts';
import { type Acknowledged, chat, exportHistory, read, record, type Session, write } from './clients.ts';
import { MemoryOverTime } from './memory-over-time.ts';
import { Outcomes } from './outcomes.ts';
import { prepareTenant } from './prepare-tenant.ts';
import { childrenOf, Kept } from './processes.ts';

// Everything at once for so many minutes, with rates that leave the machine room: recorders, readers, writers, chats against a
// model on loopback, exports and retention. One process is killed each minute. At the end what was acknowledged is
// compared with what is there, and totals with plain counts.
const { values: settings } = parseArgs({
  options: {
    minutes: { type: 'string', default: '30' },
    data: { type: 'string', default: join(import.meta.dirname, '../../data/bench-soak') },
  },
});
const minutes = Number(settings.minutes);
const day = 86_400_000;
/** The tenants, with the days over which the recorders' changes lie. Retention drops some of the second one's. */
const tenants = { acme: 1, globex: 60 } as const;

const say = (line: string) => process.stdout.write(`${new Date().toISOString().slice(11, 19)} ${line}\n`);
const database = await openEmbeddedDatabase({ dataDir: settings.data, log: say });
const pool = createPool(database.url);
await migrate(pool);
const db = createDatabase(pool);
const vendor = await startVendor();
const messages = new Outcomes();
const memory = new MemoryOverTime(settings.data, 15);
const environment = {
  ...memory.environment(),
  DATABASE_URL: database.url,
  ANNALS_SECRET_KEY: randomBytes(32).toString('base64'),
  LOG_LEVEL: 'warn',
  OPENAI_BASE_URL: vendor.baseUrl,
  ANNALS_SELF_HOSTED_ALLOW: '127.0.0.0/8',
};
let hasBegun = false;
const onLine = (line: string) => {
  messages.add('log', messageOf(line));
  if (!hasBegun) say(line);
};
const metricsPorts = { service: String(await freePort()), recorder: String(await freePort()) };
const service = new Kept(
  ['serve'],
  { ...environment, ANNALS_WORKERS: '2', ANNALS_METRICS_PORT: metricsPorts.service },
  onLine,
);
const recorder = new Kept(['recorder'], { ...environment, ANNALS_METRICS_PORT: metricsPorts.recorder }, onLine);
const [serviceUrl, recorderUrl] = await Promise.all([service.start(), recorder.start()]);

const watch = await watchMetrics(settings.data, {
  service: `127.0.0.1:${metricsPorts.service}`,
  recorder: `127.0.0.1:${metricsPorts.recorder}`,
});
await watchQuietly(watch, 20);
const over = new AbortController();
const outcomes = new Outcomes();
const lines: string[] = [];
const known: { tenant: string; session: Session; acknowledged: Acknowledged; keepsAll: boolean }[] = [];
const loads: Promise<void>[] = [];
for (const [tenant, days] of Object.entries(tenants)) {
  const { caller, session, acknowledged } = await prepareTenant(db, tenant, {
    service: serviceUrl,
    recorder: recorderUrl,
    outcomes,
    over: over.signal,
  });
  known.push({ tenant: caller.tenant, session, acknowledged, keepsAll: days === 1 });
  const oldest = days * day;
  loads.push(record(caller, acknowledged, 'one', oldest), record(caller, acknowledged, 'two', oldest));
  loads.push(read(caller), read(caller), write(caller, acknowledged), chat(caller, acknowledged));
  loads.push(exportHistory(caller, acknowledged));
  if (days > 1) loads.push(retain(caller.tenant));
}
loads.push(killInTurn(), watchMemory());
hasBegun = true;
watch?.begin('load and kills');
say(`begun: ${serviceUrl}, ${recorderUrl}`);
await sleep(minutes * 60_000);
over.abort();
await Promise.all(loads);
watch?.begin('after');
await watchQuietly(watch, 90);
say('the load is over; checking');
for (const one of known) lines.push(...(await checkHistory({ pool, db, ...one })));
const shown = await watchReport(watch);
await watch?.close();
const codes = [await recorder.stop(), await service.stop()];
lines.push(`ended with ${codes.join(' and ')}`, ...memory.slopes());
process.stdout.write(
  `${['', 'Outcomes:', ...outcomes.lines, '', 'Log:', ...messages.lines, '', 'Checks:', ...lines, ...shown].join('\n')}\n`,
);
if (outcomes.failures.length > 0) process.stdout.write(`Failures:\n${outcomes.failures.join('\n')}\n`);
await vendor.close();
await db.destroy();
await database.release();

/** Keeps fewer days of the tenant each time. */
async function retain(tenant: string): Promise<void> {
  for (let days = 55; !over.signal.aborted && days > 1; days -= 5) {
    await setRetention(db, tenant, days, Date.now()).catch(() => outcomes.add('retention', 'database away'));
    await sleep(240_000, undefined, { signal: over.signal }).catch(() => {});
  }
}

async function killInTurn(): Promise<void> {
  const victims = ['a worker', 'the recorder', 'a worker', 'the database'] as const;
  for (let minute = 0; ; minute++) {
    await sleep(60_000, undefined, { signal: over.signal }).catch(() => {});
    if (over.signal.aborted || minute + 1 >= minutes) return;
    const victim = victims[minute % victims.length];
    say(`kills ${victim}`);
    outcomes.add('killed', victim ?? '');
    if (victim === 'the recorder') recorder.kill();
    else if (victim === 'the database') process.kill(await postmaster(), 'SIGKILL');
    // The one that was started last: the other one lives to the end, and shows whether its memory grows.
    else process.kill(childrenOf(service.pid).at(-1) ?? 0, 'SIGKILL');
  }
}

/** Each minute one line for each process. Their slopes stand at the end. */
async function watchMemory(): Promise<void> {
  while (!over.signal.aborted) {
    await sleep(60_000, undefined, { signal: over.signal }).catch(() => {});
    for (const line of memory.now(Date.now() - 20_000)) say(line);
  }
}

async function postmaster(): Promise<number> {
  const file = await readFile(join(settings.data, 'postgres', 'cluster', 'postmaster.pid'), 'utf8').catch(async () => {
    const home = (await readFile(join(settings.data, 'postgres.location'), 'utf8')).trim();
    return await readFile(join(home, 'cluster', 'postmaster.pid'), 'utf8');
  });
  return Number(file.split('\n')[0]);
}

function messageOf(line: string): string {
  try {
    const { level, msg, err } = JSON.parse(line) as { level: string; msg: string; err?: { message: string } };
    return `${level} ${msg}${err === undefined ? '' : `: ${err.message.slice(0, 120)}`}`;
  } catch {
    return line.slice(0, 160);
  }
}
