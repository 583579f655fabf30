import { randomBytes } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { createPool } from '../../src/postgres/connections/pool.ts';
import { createDatabase } from '../../src/postgres/database.ts';
import { openEmbeddedDatabase } from '../../src/postgres/embedded/open-embedded-database.ts';
import { migrate } from '../../src/postgres/migrate/migrate.ts';
import { startVendor } from '../../test/support/vendor/vendor-server.ts';
import { chat, exportHistory, read, record, write } from './clients.ts';
import { MemoryOverTime } from './memory-over-time.ts';
import { Outcomes } from './outcomes.ts';
import { prepareTenant } from './prepare-tenant.ts';
import { Kept } from './processes.ts';

// The load of the soak without kills, at several times its rate, against one process, or against several that differ in their
// environment, side by side. Each minute the processes collect their garbage and tell their memory: so what they keep is told apart from
// what they have not given back yet.
const { values: settings } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    rate: { type: 'string', default: '6' },
    every: { type: 'string', default: '60' },
    data: { type: 'string', default: join(import.meta.dirname, '../../data/bench-soak') },
    /** Which clients: read, write, chat, export, record. */
    clients: { type: 'string', default: 'record,read,write,chat,export' },
    /** Variables of a process, divided by blanks: "MALLOC_ARENA_MAX=2 NODE_OPTIONS=--max-semi-space-size=8". One process for each. */
    variant: { type: 'string', multiple: true, default: [''] },
    /** Leaves the collection of garbage to Node, so that the resident memory is that of a service. */
    'no-collection': { type: 'boolean', default: false },
    /** Writes a heap snapshot after two minutes and at the end. */
    snapshots: { type: 'boolean', default: false },
  },
});
const minutes = Number(settings.minutes);
const seconds = Number(settings.every);
const kinds = new Set(settings.clients.split(','));
mkdirSync(settings.data, { recursive: true });
const memory = new MemoryOverTime(settings.data, seconds);

const database = await openEmbeddedDatabase({
  dataDir: settings.data,
  log: (line) => process.stderr.write(`${line}\n`),
});
const pool = createPool(database.url);
await migrate(pool);
const db = createDatabase(pool);
const vendor = await startVendor();
const environment = {
  DATABASE_URL: database.url,
  ANNALS_SECRET_KEY: randomBytes(32).toString('base64'),
  LOG_LEVEL: 'warn',
  OPENAI_BASE_URL: vendor.baseUrl,
  ANNALS_SELF_HOSTED_ALLOW: '127.0.0.0/8',
};
const onLine = (line: string) => process.stdout.write(`log: ${line.slice(0, 200)}\n`);
const recorder = new Kept(['recorder'], environment, onLine);
const recorderUrl = await recorder.start();

const over = new AbortController();
const loads: Promise<void>[] = [];
const variants: { name: string; service: Kept; outcomes: Outcomes }[] = [];
for (const [index, variables] of settings.variant.entries()) {
  const service = new Kept(['serve'], { ...environment, ...environmentOf(variables) }, onLine);
  const outcomes = new Outcomes();
  variants.push({ name: variables === '' ? 'as it is' : variables, service, outcomes });
  const serviceUrl = await service.start();
  for (const prefix of [`acme${index}x`, `globex${index}x`]) {
    const { caller, acknowledged } = await prepareTenant(db, prefix, {
      service: serviceUrl,
      recorder: recorderUrl,
      outcomes,
      over: over.signal,
      rate: Number(settings.rate),
    });
    if (kinds.has('record')) loads.push(record({ ...caller, rate: 1 }, acknowledged, 'one', 86_400_000));
    if (kinds.has('read')) loads.push(read(caller), read(caller));
    if (kinds.has('write')) loads.push(write(caller, acknowledged));
    if (kinds.has('chat')) loads.push(chat(caller, acknowledged));
    if (kinds.has('export')) loads.push(exportHistory(caller, acknowledged));
  }
}

process.stdout.write(
  '| variant | minute | requests | ms of processor time a request | RSS | heap used | heap total | after a collection | external | buffers | brk heap | anonymous | files |\n',
);
process.stdout.write(`|---|${'---:|'.repeat(12)}\n`);
for (let second = seconds; second <= minutes * 60; second += seconds) {
  await sleep(seconds * 1000);
  for (const { name, service, outcomes } of variants) tell(name, service.pid, second, outcomes.total);
  if (settings.snapshots && (second === 120 || second >= minutes * 60)) {
    for (const { service } of variants) process.kill(service.pid, 'SIGPIPE');
    await sleep(5_000);
  }
}
over.abort();
await Promise.all(loads);
for (const { name, outcomes } of variants) process.stdout.write(`${name}:\n${outcomes.lines.join('\n')}\n`);
process.stdout.write(`${memory.slopes().join('\n')}\n`);
await Promise.all([recorder.stop(), ...variants.map(({ service }) => service.stop())]);
await vendor.close();
await db.destroy();
await database.release();

function environmentOf(variables: string): NodeJS.ProcessEnv {
  const given = Object.fromEntries(
    variables
      .split(' ')
      .filter((variable) => variable !== '')
      .map((variable) => [variable.slice(0, variable.indexOf('=')), variable.slice(variable.indexOf('=') + 1)]),
  );
  const collection = settings['no-collection'] ? '' : '--expose-gc';
  return { ...given, ...memory.environment(`${collection} ${given.NODE_OPTIONS ?? ''}`) };
}

function tell(variant: string, pid: number, second: number, requests: number): void {
  const last = memory.all().get(pid)?.at(-1);
  if (last === undefined) return;
  const {
    rss,
    heapUsed,
    heapTotal,
    afterCollection = Number.NaN,
    external,
    arrayBuffers,
    heap,
    anonymous,
    files,
  } = last;
  const cells = [rss, heapUsed, heapTotal, afterCollection, external, arrayBuffers, heap, anonymous, files].map(
    (bytes) => (bytes / 1024 / 1024).toFixed(1),
  );
  const cost = (last.cpu / requests).toFixed(2);
  process.stdout.write(
    `| ${variant} (${pid}) | ${(second / 60).toFixed(1)} | ${requests} | ${cost} | ${cells.join(' | ')} |\n`,
  );
}
