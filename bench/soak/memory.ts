import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { createDatabase } from '../../src/db/database.ts';
import { openEmbeddedDatabase } from '../../src/db/embedded/open-embedded-database.ts';
import { migrate } from '../../src/db/migrate.ts';
import { createPool } from '../../src/db/pool.ts';
import { startVendor } from '../../test/support/vendor/vendor-server.ts';
import { chat, exportHistory, read, record, write } from './clients.ts';
import { Outcomes } from './outcomes.ts';
import { prepareTenant } from './prepare-tenant.ts';
import { Kept } from './processes.ts';

// The load of the soak without kills, at several times its rate, against one process. Each minute the process collects its
// garbage and tells its memory: so what it keeps is told apart from what it has not given back yet.
const { values: settings } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    rate: { type: 'string', default: '6' },
    every: { type: 'string', default: '60' },
    data: { type: 'string', default: join(import.meta.dirname, '../../data/bench-soak') },
    /** Which clients: read, write, chat, export, record. */
    clients: { type: 'string', default: 'record,read,write,chat,export' },
    /** MALLOC_ARENA_MAX of the process. */
    arenas: { type: 'string' },
    /** Leaves the collection of garbage to Node, so that the resident memory is that of a service. */
    'no-collection': { type: 'boolean', default: false },
    /** Writes a heap snapshot after two minutes and at the end. */
    snapshots: { type: 'boolean', default: false },
  },
});
const minutes = Number(settings.minutes);
const kinds = new Set(settings.clients.split(','));
mkdirSync(settings.data, { recursive: true });
const heapFile = join(settings.data, `heap-${process.pid}.jsonl`);
rmSync(heapFile, { force: true });

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
const collection = settings['no-collection'] ? '' : '--expose-gc ';
const preload = `${collection}--import=${join(import.meta.dirname, 'tell-heap.ts')}`;
const arenas = settings.arenas === undefined ? {} : { MALLOC_ARENA_MAX: settings.arenas };
const onLine = (line: string) => process.stdout.write(`log: ${line.slice(0, 200)}\n`);
const service = new Kept(['serve'], { ...environment, ...arenas, NODE_OPTIONS: preload, HEAP_FILE: heapFile }, onLine);
const recorder = new Kept(['recorder'], environment, onLine);
const [serviceUrl, recorderUrl] = await Promise.all([service.start(), recorder.start()]);

const over = new AbortController();
const outcomes = new Outcomes();
const loads: Promise<void>[] = [];
for (const tenant of ['acme', 'globex']) {
  const { caller, acknowledged } = await prepareTenant(db, tenant, {
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

const mebibytes = (bytes: unknown) => (Number(bytes) / 1024 / 1024).toFixed(1);
process.stdout.write(
  '| minute | requests | RSS | heap used | heap total | external | buffers | brk heap | anonymous | files | resources |\n',
);
process.stdout.write('|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n');
const seconds = Number(settings.every);
for (let second = 0; second <= minutes * 60; second += seconds) {
  if (second > 0) await sleep(seconds * 1000);
  const figures = await figuresNow();
  const { rss, heapUsed, heapTotal, external, arrayBuffers, heap, anonymous, files, resources } = figures;
  const cells = [rss, heapUsed, heapTotal, external, arrayBuffers, heap, anonymous, files].map(mebibytes);
  process.stdout.write(`| ${(second / 60).toFixed(1)} | ${outcomes.total} | ${cells.join(' | ')} | ${resources} |\n`);
  if (settings.snapshots && (second === 120 || second >= minutes * 60)) {
    process.kill(service.pid, 'SIGPIPE');
    await sleep(5_000);
  }
}
over.abort();
await Promise.all(loads);
process.stdout.write(`${outcomes.lines.join('\n')}\n`);
await Promise.all([recorder.stop(), service.stop()]);
await vendor.close();
await db.destroy();
await database.release();

/** What the process tells after it has collected its garbage. */
async function figuresNow(): Promise<Record<string, number>> {
  const lines = () => (existsSync(heapFile) ? readFileSync(heapFile, 'utf8').trimEnd().split('\n') : []);
  const before = lines().length;
  process.kill(service.pid, 'SIGUSR2');
  while (lines().length === before) await sleep(20);
  return JSON.parse(lines().at(-1) ?? '{}') as Record<string, number>;
}
