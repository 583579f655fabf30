import { type ChildProcess, fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { createClient, type NewClient } from '../../src/access/oauth/clients.ts';
import { scopes } from '../../src/http/scopes.ts';
import { createPool } from '../../src/postgres/connections/pool.ts';
import { createDatabase, type Database } from '../../src/postgres/database.ts';
import { findHome } from '../../src/postgres/embedded/home.ts';
import { openEmbeddedDatabase } from '../../src/postgres/embedded/open-embedded-database.ts';
import { readPostmasterFile } from '../../src/postgres/embedded/postmaster-file.ts';
import { createTenant } from '../../src/postgres/tenants/tenants.ts';
import { makeDataFolder, removeDataFolder } from '../../test/support/server/data-folder.ts';
import { tokenOf } from '../access-token.ts';

/** A database and the services on it, each in a process of its own. */
export interface World {
  readonly db: Database;
  readonly databaseUrl: string;
  /** The process id of the PostgreSQL server; rejects where there is none. */
  postmaster(): Promise<number>;
  startService(): Promise<Service>;
  /** A tenant with a client that has every scope. */
  makeTenant(tenant: string): Promise<NewClient>;
  /** Statements of services that run now. */
  busy(): Promise<number>;
  close(): Promise<void>;
}

export interface Service {
  readonly baseUrl: string;
  /** Resident memory in MiB: of the process, its threads included. */
  memory(): Promise<number>;
  /** Milliseconds of processor time of the longest turn of the event loop since this was last asked. */
  maxTurn(): Promise<number>;
  tokenOf(client: NewClient): Promise<string>;
  stop(): Promise<void>;
}

export async function openWorld(): Promise<World> {
  const dataDir = await makeDataFolder();
  const database = await openEmbeddedDatabase({ dataDir, log: console.error });
  const pool = createPool(database.url, { applicationName: 'annals bench', maximum: 4 });
  const db = createDatabase(pool);
  const secretKey = randomBytes(32).toString('base64');

  return {
    db,
    databaseUrl: database.url,
    async postmaster() {
      const file = await readPostmasterFile((await findHome(dataDir)).cluster);
      if (file === undefined) throw new Error('there is no server');
      return file.pid;
    },
    startService: () =>
      startService({
        PORT: '0',
        DATABASE_URL: database.url,
        ANNALS_SECRET_KEY: secretKey,
        ANNALS_SELF_HOSTED_ALLOW: '127.0.0.0/8',
        LOG_LEVEL: process.env.SERVICE_LOG_LEVEL ?? 'silent',
      }),
    async makeTenant(tenant) {
      await createTenant(db, tenant);
      return await createClient(db, { tenant, scope: scopes.join(' '), name: tenant });
    },
    async busy() {
      const { rows } = await pool.query<{ busy: number }>(
        "select count(*) as busy from pg_stat_activity where application_name = 'annals' and state <> 'idle'",
      );
      return rows[0]?.busy ?? 0;
    },
    async close() {
      await db.destroy();
      await database.release();
      await removeDataFolder(dataDir);
    },
  };
}

async function startService(settings: Record<string, string>): Promise<Service> {
  const child = fork(join(import.meta.dirname, 'service.ts'), {
    env: { PATH: process.env.PATH, NODE_OPTIONS: process.env.SERVICE_NODE_OPTIONS ?? '', ...settings },
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  });
  const baseUrl = await firstLineOf(child);
  return {
    baseUrl,
    async memory() {
      const status = await readFile(`/proc/${child.pid}/status`, 'utf8');
      return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
    },
    async maxTurn() {
      child.send('read');
      const [{ maxTurn }] = (await once(child, 'message')) as [{ maxTurn: number }];
      return maxTurn;
    },
    tokenOf: (client) => tokenOf(baseUrl, client),
    stop: () => stop(child),
  };
}

async function firstLineOf(child: ChildProcess): Promise<string> {
  if (child.stdout === null) throw new Error('the service has no output');
  for await (const line of createInterface({ input: child.stdout })) return line;
  throw new Error('the service ended before it was ready');
}

export async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), 20_000);
  await ended;
  clearTimeout(timer);
}
