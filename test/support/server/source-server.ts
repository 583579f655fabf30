import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { inject, onTestFinished } from 'vitest';
import { serviceUrl } from '../../../src/postgres/embedded/credentials.ts';
import { findHome, giveTo } from '../../../src/postgres/embedded/home.ts';
import { ownSettingsFileName } from '../../../src/postgres/embedded/initialise.ts';
import { openEmbeddedDatabase } from '../../../src/postgres/embedded/open-embedded-database.ts';
import { settingsFile } from '../../../src/postgres/embedded/settings.ts';
import { copyDataFolder, hashOnce, removeDataFolder } from './data-folder.ts';
import { startOldest } from './oldest-server.ts';

/** A PostgreSQL of its own with `wal_level = logical`, for applications whose changes are captured. */
export interface SourceServer {
  /** Empty where the run is on the oldest PostgreSQL. */
  dataDir: string;
  /** The superuser, in the database `postgres`. */
  url: string;
  close(): Promise<void>;
}

// The log is read only as far as it is flushed, so without fsync too a commit is to flush at once.
const settings = {
  wal_level: 'logical',
  synchronous_commit: 'on',
  max_wal_senders: '10',
  max_prepared_transactions: '2',
};

export async function startSourceServer(): Promise<SourceServer> {
  const oldest = inject('oldestFolder');
  if (oldest !== null) {
    const { port, stop } = await startOldest(oldest, settings);
    return { dataDir: '', url: asSuperuser(serviceUrl(port, '')), close: stop };
  }
  const dataDir = await copyDataFolder(inject('initialisedFolder'));
  const { cluster, user } = await findHome(dataDir);
  const file = join(cluster, ownSettingsFileName);
  await writeFile(file, settingsFile(settings));
  await giveTo(user, file);
  const server = await openEmbeddedDatabase({ dataDir, log: console.error, durability: 'none' });
  const url = asSuperuser(server.url);
  await hashOnce(url);
  return {
    dataDir,
    url,
    async close() {
      await server.release();
      await removeDataFolder(dataDir);
    },
  };
}

function asSuperuser(address: string): string {
  const url = new URL(address);
  url.username = 'postgres';
  url.pathname = 'postgres';
  return url.href;
}

/** A database of one application. It has one slot's worth of names: `annals_<random>`. */
export interface SourceDatabase {
  url: string;
  slot: string;
  pool: pg.Pool;
}

/** A new database on the server, dropped with its slot when the test ends. */
export async function createSourceDatabase(server: SourceServer, template = 'template1'): Promise<SourceDatabase> {
  const source = await openSourceDatabase(server, template);
  onTestFinished(() => dropSourceDatabase(server, source));
  return source;
}

/** A new database on the server, to be dropped in afterAll. */
export async function openSourceDatabase(server: SourceServer, template = 'template1'): Promise<SourceDatabase> {
  const name = `shop_${randomBytes(6).toString('hex')}`;
  await administer(server, `create database ${name} template ${template} strategy file_copy`);
  const url = new URL(server.url);
  url.pathname = name;
  const pool = new pg.Pool({ connectionString: url.href, max: 8 });
  pool.on('error', () => {});
  return { url: url.href, slot: `annals_${name}`, pool };
}

export async function dropSourceDatabase(server: SourceServer, { url, pool }: SourceDatabase): Promise<void> {
  const name = new URL(url).pathname.slice(1);
  await pool.end();
  await administer(
    server,
    `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}' and backend_type in ('client backend', 'walsender')`,
  );
  await administer(server, dropSlots(name));
  await administer(server, `drop database ${name} with (force)`);
}

/** Leaves nothing of a test in the database: that takes a third of the time of another database. */
export async function emptySourceDatabase({ url, pool }: SourceDatabase): Promise<void> {
  const name = new URL(url).pathname.slice(1);
  await pool.query(
    `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}' and backend_type = 'walsender'`,
  );
  await pool.query(dropSlots(name));
  await pool.query(
    `do $$ declare found text; begin
       for found in select format('drop publication %I', pubname) from pg_publication
         union all select format('drop schema %I cascade', nspname) from pg_namespace
           where nspname !~ '^pg_' and nspname <> 'information_schema'
       loop execute found; end loop;
       create schema public;
     end $$`,
  );
}

/** The server ends its side of a replication connection a moment after the client has left. */
function dropSlots(database: string): string {
  return `do $$ begin
    for i in 1..100 loop
      begin
        perform pg_drop_replication_slot(slot_name) from pg_replication_slots where database = '${database}';
        exit;
      exception when object_in_use then perform pg_sleep(0.05);
      end;
    end loop;
  end $$`;
}

async function administer(server: SourceServer, statement: string): Promise<void> {
  const client = new pg.Client(server.url);
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
