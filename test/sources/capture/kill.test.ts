import { randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createPool } from '../../../src/postgres/connections/pool.ts';
import { migrate } from '../../../src/postgres/migrate/migrate.ts';
import { trials } from '../../support/oracle/trials.ts';
import { startAnnals, startHere } from '../../support/server/command.ts';
import { homeOf } from '../../support/server/data-folder.ts';
import { eventually } from '../../support/server/patience.ts';
import { type SourceServer, startSourceServer } from '../../support/server/source-server.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

let server: SourceServer;
let folder: string;
let shop: string;
let annals: string;
beforeAll(async () => {
  server = await startSourceServer();
  folder = temporaryFolder();
  const client = new pg.Client(server.url);
  await client.connect();
  await client.query('create database shop');
  await client.query('create database annals_history');
  await client.end();
  [shop, annals] = ['shop', 'annals_history'].map(
    (name) => Object.assign(new URL(server.url), { pathname: name }).href,
  ) as [string, string];
  const pool = createPool(annals);
  await migrate(pool);
  await pool.query(`insert into tenant (tenant) values ('acme')`);
  await pool.end();
});
afterAll(async () => {
  await Promise.all([...pools.values()].map((pool) => pool.end()));
  await server.close();
});

const pools = new Map<string, pg.Pool>();

/** Asks until the server answers: it is killed now and then. */
async function ask(url: string, statement: string, values: unknown[] = []): Promise<Record<string, unknown>[]> {
  const pool = pools.get(url) ?? new pg.Pool({ connectionString: url, connectionTimeoutMillis: 2_000 });
  if (!pools.has(url))
    pools.set(
      url,
      pool.on('error', () => {}),
    );
  for (;;) {
    try {
      return (await pool.query(statement, values)).rows;
    } catch {
      await sleep(50);
    }
  }
}

test('kill -9 of capture and of both databases: every committed change is an entry exactly once, in its order', async () => {
  // The application's own table of what happened, written by its own transactions.
  await ask(
    shop,
    `create table items (id int primary key, version int not null);
     alter table items replica identity full;
     create table happened (id int, version int);
     create function happen() returns trigger language plpgsql as
       $$ begin insert into happened values (new.id, new.version); return new; end $$;
     create trigger happen after insert or update on items for each row execute function happen();
     insert into items select n, 0 from generate_series(1, 8) n`,
  );
  const mapping = join(folder, 'mapping.json');
  const tables = { 'public.items': { entity: 'item' } };
  await writeFile(mapping, JSON.stringify({ version: 1, tenant: { value: 'acme' }, tables }));
  const environment = {
    DATABASE_URL: annals,
    ANNALS_SECRET_KEY: randomBytes(32).toString('base64'),
    ANNALS_SOURCE_URL: shop,
    ANNALS_RECORDER_MAPPING: mapping,
  };
  const start = () => startAnnals(['capture', '--snapshot'], environment);
  let capture = start();
  await capture.firstLine;

  let isWriting = true;
  const writers = [1, 2, 3, 4].map(async (writer) => {
    for (let round = 0; isWriting; round++) {
      const many = round % 10 === 0;
      await ask(
        shop,
        many
          ? 'update items set version = version + 1 where id in (select id from items order by id for update)'
          : 'update items set version = version + 1 where id = $1',
        many ? [] : [1 + ((writer + round) % 8)],
      );
      // Lets processes start, which takes as long as the writers leave them no processor.
      await sleep(50);
    }
  });
  const entries = async () => Number((await ask(annals, 'select count(*) from change_entry'))[0]?.count);
  const untilMore = async () => {
    const before = await entries();
    await eventually(entries).toBeGreaterThan(before + 20);
  };
  const victims = Array.from({ length: trials(1) }, () => ['capture', 'databases', 'capture'] as const).flat();
  for (const [place, victim] of victims.entries()) {
    await untilMore();
    if (victim === 'capture') {
      capture.process.kill('SIGKILL');
      await capture.ended;
      if (place + 1 < victims.length) capture = start();
    } else {
      const pidFile = await readFile(join(await homeOf(server.dataDir), 'cluster', 'postmaster.pid'), 'utf8');
      process.kill(Number(pidFile.split('\n')[0]), 'SIGKILL');
    }
  }
  // Nobody kills the last one.
  const last = startHere(['capture', '--snapshot'], environment);
  await untilMore();
  isWriting = false;
  await Promise.all(writers);

  const happened = await ask(shop, 'select id::text, version from happened order by id, version');
  await eventually(entries).toBe(happened.length);
  const recorded = await ask(
    annals,
    `select entity_id as id, (paths::jsonb -> 'version' ->> 'after')::int as version
       from change_entry order by entity_id, at, sequence`,
  );
  expect(recorded).toEqual(happened);
  last.stop();
  expect((await last.ended).code).toBe(0);
});
