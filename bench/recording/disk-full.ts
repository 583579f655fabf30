import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdir, rm, statfs, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { createDatabase } from '../../src/db/database.ts';
import { openEmbeddedDatabase } from '../../src/db/embedded/open-embedded-database.ts';
import { migrate } from '../../src/db/migrate.ts';
import { createPool } from '../../src/db/pool.ts';
import { createTenant } from '../../src/db/tenants.ts';
import { createClient } from '../../src/oauth/clients.ts';
import { readMapping } from '../../src/recording/mapping/read-mapping.ts';
import { outboxSql } from '../../src/relay/outbox-sql.ts';
import { ask } from '../capture/world.ts';
import { Counts } from './counts.ts';
import { fillDisk } from './fill-disk.ts';
import { Supervised } from './supervised.ts';

// The disk of Annals' database is full for some minutes, while an application writes, capture, the relay and clients of the recorder record,
// and others read. The application must go on, every answer must be honest, and once there is room again every change must be an entry
// exactly once. Annals' cluster stands on a tmpfs of its own, so this needs root.
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
  const annals = await openEmbeddedDatabase({ dataDir: small, log });
  const sourceData = join(settings.data, 'source');
  let source = await openEmbeddedDatabase({ dataDir: sourceData, log });
  const superuser = (url: string) => Object.assign(new URL(url), { username: 'postgres' }).href;
  await ask(superuser(source.url), 'alter system set wal_level = logical');
  await source.release();
  source = await openEmbeddedDatabase({ dataDir: sourceData, log });
  const shop = superuser(source.url);
  const authorization = await makeTenant(annals.url);
  await makeShop(shop);

  const environment = {
    PATH: process.env.PATH,
    DATABASE_URL: annals.url,
    ANNALS_SECRET_KEY: key,
    ANNALS_SOURCE_URL: shop,
    PORT: '0',
    LOG_LEVEL: 'warn',
  };
  const messages = new Counts();
  const capture = new Supervised(['capture', '--mapping', mappings.capture], environment, messages);
  const relay = new Supervised(['relay', '--mapping', mappings.relay], environment, messages);
  const recorder = new Supervised(['recorder'], environment, messages);
  const service = new Supervised(['serve'], environment, messages);
  const processes = [capture, relay, recorder, service];
  const [, , recorderUrl, serviceUrl] = await Promise.all(processes.map((one) => one.ready));

  let phase = 'before';
  let isOver = false;
  const answers = new Counts();
  const commits = new Counts();
  const slowest = new Map<string, number>();
  const acknowledged: string[] = [];

  const writers = ['captured', 'triggered'].map(async (table) => {
    const pool = createPool(shop, { maximum: 1 });
    for (let turn = 0; !isOver; turn++) {
      const began = performance.now();
      await pool.query(
        `insert into ${table} values ($1, 1) on conflict (id) do update set version = ${table}.version + 1`,
        [`${table}-${turn % 500}`],
      );
      commits.add(`${phase}: ${table}`);
      slowest.set(phase, Math.max(slowest.get(phase) ?? 0, performance.now() - began));
      await pause(10);
    }
    await pool.end();
  });
  const clients = [0, 1, 2, 3].map(async (client) => {
    for (let request = 0; !isOver; request++) {
      const ids = Array.from({ length: 10 }, (_none, index) => `sent-${client}-${request}-${index}`);
      const at = new Date().toISOString();
      const body = ids.map((id) =>
        JSON.stringify({ id, op: 'insert', entity: 'sent', entityId: id, at, after: { id, note: 'note '.repeat(20) } }),
      );
      for (;;) {
        const url = `${recorderUrl}/recorder/${tenant}/changes`;
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
  const readers = [
    ['history', `${serviceUrl}/changelog/${tenant}/changelogs?q=entity:captured`],
    ['configuration', `${serviceUrl}/configuration/${tenant}/configurations`],
    ['ready', `${serviceUrl}/health/ready`],
    ['recorder ready', `${recorderUrl}/health/ready`],
  ].map(async ([name = '', url = '']) => {
    let token = await tokenOf(`${serviceUrl}`, authorization);
    while (!isOver) {
      const status = await send(name, url, { headers: { authorization: `Bearer ${token}` } });
      if (status === 401) token = (await tokenOf(`${serviceUrl}`, authorization)) || token;
      await pause(250);
    }
  });
  const written = (async () => {
    for (let turn = 0; !isOver; turn++) {
      const token = await tokenOf(`${serviceUrl}`, authorization);
      const body = JSON.stringify([{ key: `note${turn % 50}`, value: `${turn} ${'x'.repeat(500)}` }]);
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
      await send('configuration, write', `${serviceUrl}/configuration/${tenant}/configurations`, {
        method: 'POST',
        headers,
        body,
      });
      await pause(500);
    }
  })();

  const noise = (async () => {
    const pool = createPool(shop, { maximum: 1 });
    for (; !isOver && settings.noise !== '0'; await sleep(1_000))
      await pool.query('update noise set number = number + 1');
    await pool.end();
  })();

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

  await sleep(10_000);
  log(`the disk is filled: ${await roomOf(small)} free`);
  phase = 'full';
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
  log(`there is room again: ${await roomOf(small)} free`);
  await sleep(15_000);
  isOver = true;
  await Promise.all([...writers, ...readers, written, noise]);
  log('waiting for the clients of the recorder');
  await Promise.all(clients);
  log('comparing');

  const restarts = processes.map((one) => `${one.name} ${one.starts - 1}`).join(', ');
  for (const [name, count] of commits.sorted()) tell(`commits of the application, ${name}: ${count}`);
  for (const [name, time] of slowest) tell(`the slowest of them, ${name}: ${time.toFixed(0)} ms`);
  for (const [name, count] of answers.sorted()) tell(`${count} × ${name}`);
  for (const [name, count] of messages.sorted()) tell(`log, ${count} × ${name}`);
  tell(`restarts: ${restarts}`);
  tell(`log and outbox that the source keeps, each 10 minutes: ${retained.join('; ')}`);
  const verdicts: string[] = [];
  for (const entity of ['captured', 'triggered']) verdicts.push(await compared(entity, shop, annals.url));
  verdicts.push(await comparedSent(acknowledged, annals.url));
  for (const one of processes) await one.stop();
  for (const verdict of verdicts) tell(verdict);
  if (verdicts.some((verdict) => verdict.includes('DIFFERENT'))) process.exitCode = 1;
  await source.release();
  await annals.release();
}

/** How much the source keeps while nothing is recorded. */
async function retainedBySource(shop: string): Promise<string> {
  const [row] = await ask(
    shop,
    `select pg_size_pretty(pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn)) as log,
            (select count(*)::int from annals.outbox) as rows
       from pg_replication_slots`,
  );
  return `${row?.log}, ${row?.rows} rows`;
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
    const scope =
      'recorder.change_record changelog.changelog_read configuration.configuration_view configuration.configuration_manage';
    const { clientId, clientSecret } = await createClient(db, { tenant, scope, name: 'Shop' });
    return `Basic ${Buffer.from(`${clientId}:${clientSecret}`).toString('base64')}`;
  } finally {
    await db.destroy();
  }
}

/** Two tables, and what happened to them by their own triggers. */
async function makeShop(shop: string): Promise<void> {
  const mappingOf = (table: string) =>
    JSON.stringify({ version: 1, tenant: { value: tenant }, tables: { [`public.${table}`]: { entity: table } } });
  await writeFile(mappings.capture, mappingOf('captured'));
  await writeFile(mappings.relay, mappingOf('triggered'));
  for (const table of ['captured', 'triggered']) {
    await ask(
      shop,
      `create table ${table} (id text primary key, version int not null);
       alter table ${table} replica identity full;
       create table happened_${table} (id text, version int);
       create function happen_${table}() returns trigger language plpgsql as
         $$ begin insert into happened_${table} values (new.id, new.version); return new; end $$;
       create trigger happen after insert or update on ${table} for each row execute function happen_${table}()`,
    );
  }
  await ask(
    shop,
    `create table noise (number int, line char(1000)) with (fillfactor = 45);
     insert into noise select n, 'noise' from generate_series(1, ${Number(settings.noise)}) n`,
  );
  await ask(shop, outboxSql(readMapping(mappingOf('triggered'))));
}

async function tokenOf(baseUrl: string, authorization: string): Promise<string> {
  const body = new URLSearchParams({ grant_type: 'client_credentials' });
  const answer = await fetch(`${baseUrl}/oauth/token`, { method: 'POST', headers: { authorization }, body }).catch(
    () => undefined,
  );
  if (answer?.status !== 200) return '';
  return ((await answer.json()) as { access_token: string }).access_token;
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
