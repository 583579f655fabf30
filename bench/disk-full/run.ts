import { execFileSync } from 'node:child_process';
import { mkdir, open, rm, statfs, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { readMapping } from '../../src/recording/mapping/read-mapping.ts';
import { outboxSql } from '../../src/sources/outbox/outbox-sql.ts';
import { startVendor } from '../../test/support/vendor/vendor-server.ts';
import { connect, mappingOf, openWorld, type World } from '../capture/world.ts';
import { benchFolder, onServer } from '../server.ts';
import { Counts, environmentOf, Supervised } from '../service.ts';
import { check } from './check.ts';
import { chat, prepareTenant, read, record, write } from './clients.ts';

// The disk of Annals' database is full for some minutes. An application writes, capture, the relay and the
// recorder record, and clients call the service. The application must go on, every answer must be honest, and nothing
// acknowledged may be lost; once there is room again every change must be an entry exactly once. Annals' cluster stands
// on a tmpfs of its own, so this needs root.
const { values: settings } = parseArgs({
  options: {
    minutes: { type: 'string', default: '5' },
    size: { type: 'string', default: '320' },
    /** Milliseconds between two writes of the application. An hour needs more: the disk is small. */
    pause: { type: 'string', default: '10' },
  },
});
/** One is captured, the other one has triggers. */
const tables = ['captured', 'triggered'] as const;
const small = `${benchFolder}-disk`;
const ballast = join(small, 'ballast');
const say = (line: string) => void process.stderr.write(`${new Date().toISOString().slice(11, 19)} ${line}\n`);

await rm(small, { recursive: true, force: true });
await mkdir(small, { recursive: true });
execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${settings.size}m`, 'tmpfs', small]);
try {
  const world = await openWorld(small);
  await run(world);
  await world.close();
} finally {
  execFileSync('umount', ['--lazy', small]);
}

async function run(world: World): Promise<void> {
  const { shop, annals } = world;
  const vendor = await startVendor();
  const mappings: Record<string, string> = {};
  for (const table of tables) {
    await onServer(
      shop,
      `create table ${table} (id text primary key, version int not null);
       alter table ${table} replica identity full;
       create table happened_${table} (id text, version int);
       create function happen_${table}() returns trigger language plpgsql as
         $$ begin insert into happened_${table} values (new.id, new.version); return new; end $$;
       create trigger happen after insert or update on ${table} for each row execute function happen_${table}()`,
    );
    const mapping = mappingOf({ [`public.${table}`]: { entity: table } });
    mappings[table] = join(`${benchFolder}-source`, `${table}.json`);
    await writeFile(mappings[table], mapping);
    if (table === 'triggered') await onServer(shop, outboxSql(readMapping(mapping)));
  }
  const environment = environmentOf(annals.url, {
    ANNALS_SOURCE_URL: shop,
    OPENAI_BASE_URL: vendor.baseUrl,
    LOG_LEVEL: 'warn',
  });
  const [messages, outcomes] = [new Counts(), new Counts()];
  let phase = 'before';
  const processes = [
    ['capture', '--mapping', mappings.captured ?? ''],
    ['relay', '--mapping', mappings.triggered ?? ''],
    ['recorder'],
    ['serve'],
  ].map((args) => new Supervised(args, environment, (message) => messages.add(message)));
  const [, , recorder = '', service = ''] = await Promise.all(processes.map(({ ready }) => ready));
  const over = new AbortController();
  const byPhase = Object.assign(new Counts(), { add: (name: string) => outcomes.add(`${phase}: ${name}`) });
  const caller = await prepareTenant(annals.db, 'desk', { service, recorder, outcomes: byPhase, over: over.signal });
  const commits: number[] = [];
  const writers = tables.map(async (table) => {
    const client = await connect(shop);
    for (let turn = 0; !over.signal.aborted; turn++) {
      const began = performance.now();
      await client.query(
        `insert into ${table} values ($1, 1) on conflict (id) do update set version = ${table}.version + 1`,
        [`${table}-${turn % 500}`],
      );
      commits.push(performance.now() - began);
      await sleep(Number(settings.pause));
    }
    await client.end();
  });
  const loads = [record(caller, 'one'), record(caller, 'two'), read(caller), write(caller), chat(caller), ...writers];

  await sleep(10_000);
  say(`the disk is filled: ${await roomOf(small)} free`);
  phase = 'full';
  const until = performance.now() + Number(settings.minutes) * 60_000;
  for (; performance.now() < until; await sleep(1_000)) await fillDisk(ballast);
  await rm(ballast);
  phase = 'room again';
  say(`there is room again: ${await roomOf(small)} free`);
  await sleep(15_000);
  over.abort();
  await Promise.all(loads);
  say('comparing');

  const verdicts: string[] = [];
  for (const table of tables) verdicts.push(await compared(table, world));
  verdicts.push(...(await check(annals, caller)));
  for (const each of processes) await each.stop();
  await vendor.close();
  console.log([...outcomes.lines, ...messages.lines].join('\n'));
  console.log(`commits of the application: ${commits.length}, the slowest ${Math.max(...commits).toFixed(0)} ms`);
  console.log(`starts: ${processes.map(({ name, starts }) => `${name} ${starts}`).join(', ')}`);
  console.log(verdicts.join('\n'));
  if (verdicts.some((verdict) => verdict.startsWith('FAILED'))) process.exitCode = 1;
}

/** Writes into the file until there is no room for 4 KiB more. */
async function fillDisk(path: string): Promise<void> {
  const file = await open(path, 'a');
  for (let size = 1024 * 1024; size >= 4096; ) {
    const written = await file.write(Buffer.alloc(size)).catch(() => undefined);
    if (written?.bytesWritten !== size) size /= 2;
  }
  await file.close();
}

async function roomOf(folder: string): Promise<string> {
  const { bavail, bsize } = await statfs(folder);
  return `${((bavail * bsize) / 1024 / 1024).toFixed(1)} MiB`;
}

/** Waits up to a minute until everything that happened is recorded, and compares. */
async function compared(table: string, { shop, annals }: World): Promise<string> {
  const text = (rows: Record<string, unknown>[]) => rows.map(({ change }) => change).join('\n');
  const happened = await onServer(
    shop,
    `select id || ' ' || version as change from happened_${table} order by id collate "C", version`,
  );
  for (let tries = 0; ; tries += 1) {
    const { rows } = await annals.pool.query(
      `select entity_id || ' ' || (paths::jsonb -> 'version' ->> 'after') as change
         from change_entry where starts_with(entity_id, $1) order by entity_id, at, sequence`,
      [`${table}-`],
    );
    const isEqual = text(rows) === text(happened);
    if (!isEqual && tries < 120) await sleep(500);
    else {
      const verdict = isEqual ? 'ok' : 'FAILED';
      return `${verdict} ${table}: ${happened.length} changes, ${rows.length} entries, each once and in its order`;
    }
  }
}
