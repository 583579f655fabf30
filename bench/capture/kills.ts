import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { readMapping } from '../../src/recording/mapping/read-mapping.ts';
import { outboxSql } from '../../src/sources/outbox/outbox-sql.ts';
import { ask, openWorld, type Running, start, tenant, type World } from './world.ts';

// kill -9 at random moments of capture or relay, of Annals' server or of the source's, while four writers write. At the end every
// committed change must be an entry exactly once, in its order, by the application's own table of what happened.
const { values: settings } = parseArgs({
  options: {
    kills: { type: 'string', default: '100' },
    way: { type: 'string', default: 'capture' },
    /** What is killed: `way`, `annals` or `source`. */
    kill: { type: 'string', default: 'way' },
    seconds: { type: 'string', default: '100000' },
    data: { type: 'string', default: join(import.meta.dirname, '../../data/bench-capture') },
  },
});
const args = [settings.way];
const countEntries = 'select count(*)::int as count from change_entry';
const deadline = performance.now() + Number(settings.seconds) * 1000;

const world = await openWorld(settings.data);
try {
  await run(world);
} finally {
  await world.close();
}

/** Waits until the server answers. */
async function insist(url: string, statement: string, values: unknown[] = []) {
  for (;;) {
    try {
      return await ask(url, statement, values);
    } catch {
      await sleep(50);
    }
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

async function run(of: World): Promise<void> {
  await ask(
    of.shop,
    `create table items (id int primary key, version int not null, title text default 'x');
     alter table items replica identity full;
     create table happened (id int, version int);
     create function happen() returns trigger language plpgsql as
       $$ begin insert into happened values (new.id, new.version); return new; end $$;
     create trigger happen after insert or update on items for each row execute function happen()`,
  );
  if (settings.way === 'relay') {
    const tables = { 'public.items': { entity: 'item' } };
    await ask(of.shop, outboxSql(readMapping(JSON.stringify({ version: 1, tenant: { value: tenant }, tables }))));
  }
  let running: Running = start(args, of);
  await running.ready;
  await ask(of.shop, 'insert into items select n, 0 from generate_series(1, 200) n');
  let isWriting = true;
  const writers = [0, 1, 2, 3].map(async (writer) => {
    for (let round = 0; isWriting; round++) {
      // Now and then a transaction that is larger than a portion.
      if (round % 50 === writer) {
        await insist(
          of.shop,
          'update items set version = version + 1 where id in (select id from items order by id for update)',
        );
      } else {
        await insist(of.shop, 'update items set version = version + 1 where id = $1', [
          1 + ((writer * 50 + round) % 200),
        ]);
      }
      await sleep(Math.random() * 10);
    }
  });
  let restarts = 0;
  let done = 0;
  let longest = 0;
  for (; done < Number(settings.kills) && performance.now() < deadline; done++) {
    await sleep(Math.random() * 1_500);
    const cluster = settings.kill === 'annals' || settings.kill === 'source' ? of.clusters[settings.kill] : undefined;
    if (cluster === undefined) await running.kill('SIGKILL');
    else {
      const file = await readFile(join(cluster, 'postmaster.pid'), 'utf8').catch(() => '');
      const pid = Number(file.split('\n')[0]);
      if (pid > 0) process.kill(pid, 'SIGKILL');
      while (pid > 0 && isAlive(pid)) await sleep(10);
    }
    // It must move on without a person. As systemd would: start again whatever has ended.
    const began = performance.now();
    if (settings.kill === 'source') await insist(of.shop, 'select 1');
    const [before] = await insist(of.annals, countEntries);
    for (;;) {
      if (await Promise.race([running.ended.then(() => true), sleep(50, false)])) {
        restarts += 1;
        running = start(args, of);
      }
      const [now] = await insist(of.annals, countEntries);
      if (Number(now?.count) > Number(before?.count)) break;
      if (performance.now() - began > 120_000) throw new Error(`it does not move on after kill ${done + 1}`);
    }
    longest = Math.max(longest, performance.now() - began);
  }
  isWriting = false;
  await Promise.all(writers);
  const happened = await insist(
    of.shop,
    'select id::text, version from happened order by id::text collate "C", version',
  );
  const began = performance.now();
  let recorded: Record<string, unknown>[] = [];
  for (;;) {
    if ((await Promise.race([running.ended.then(() => true), sleep(0, false)])) === true) running = start(args, of);
    recorded = await insist(
      of.annals,
      `select entity_id as id, (paths::jsonb -> 'version' ->> 'after')::int as version
         from change_entry order by entity_id, at, sequence`,
    );
    if (recorded.length >= happened.length || performance.now() - began > 120_000) break;
    await sleep(500);
  }
  const text = (rows: Record<string, unknown>[]) => rows.map(({ id, version }) => `${id} ${version}`);
  const [wanted, found] = [text(happened), text(recorded)];
  const lost = wanted.length - new Set(wanted).intersection(new Set(found)).size;
  const doubled = found.length - new Set(found).size;
  const isEqual = wanted.join('\n') === found.join('\n');
  process.stdout.write(
    `${settings.way}, kill -9 of ${settings.kill === 'way' ? settings.way : settings.kill}: ${done} kills, ${restarts} starts of ${settings.way}, ` +
      `${wanted.length} changes, ${found.length} entries, ${lost} lost, ${doubled} doubled, ` +
      `${isEqual ? 'each in its order' : 'NOT EQUAL'}; it went on after ${(longest / 1000).toFixed(1)} s at most\n`,
  );
  await running.kill('SIGTERM');
  if (!isEqual) process.exitCode = 1;
}
