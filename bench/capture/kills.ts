import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { readMapping } from '../../src/recording/mapping/read-mapping.ts';
import { outboxSql } from '../../src/relay/outbox-sql.ts';
import { ask, openWorld, type Running, start, tenant, type World } from './world.ts';

// kill -9 at random moments of capture or relay, and of the server of both databases, while four writers write. At the end every
// committed change must be an entry exactly once, in its order, by the application's own table of what happened.
const { values: settings } = parseArgs({
  options: {
    kills: { type: 'string', default: '100' },
    way: { type: 'string', default: 'capture' },
    seconds: { type: 'string', default: '100000' },
    data: { type: 'string', default: join(import.meta.dirname, '../../data/bench-capture') },
  },
});
const args = [settings.way];
const deadline = performance.now() + Number(settings.seconds) * 1000;

const world = await openWorld(settings.data);
try {
  await run(world);
} finally {
  await world.close();
}

/** Asks until the server answers. */
async function insist(url: string, statement: string, values: unknown[] = []) {
  for (;;) {
    try {
      return await ask(url, statement, values);
    } catch {
      await sleep(50);
    }
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
  for (; done < Number(settings.kills) && performance.now() < deadline; done++) {
    await sleep(Math.random() * 1_500);
    if (done % 5 === 4) {
      const file = await readFile(join(of.folder, 'cluster', 'postmaster.pid'), 'utf8').catch(() => '');
      const pid = Number(file.split('\n')[0]);
      if (pid > 0) process.kill(pid, 'SIGKILL');
    } else {
      await running.kill('SIGKILL');
    }
    // As systemd would: start again whatever has ended.
    for (;;) {
      const hasEnded = await Promise.race([running.ended.then(() => true), sleep(200, false)]);
      if (!hasEnded) break;
      restarts += 1;
      running = start(args, of);
    }
    await Promise.race([running.ready, running.ended]);
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
  const text = (rows: Record<string, unknown>[]) => rows.map(({ id, version }) => `${id} ${version}`).join('\n');
  const verdict = text(recorded) === text(happened) ? 'equal, each once and in its order' : 'DIFFERENT';
  process.stdout.write(
    `${settings.way}: ${done} kills, ${restarts} starts, ${happened.length} changes, ${recorded.length} entries: ${verdict}\n`,
  );
  await running.kill('SIGTERM');
  if (verdict === 'DIFFERENT') process.exitCode = 1;
}
