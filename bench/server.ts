import { randomBytes } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { createClient, type NewClient } from '../src/access/oauth/clients.ts';
import { scopes } from '../src/http/scopes.ts';
import { createPool } from '../src/postgres/connections/pool.ts';
import { createDatabase, type Database } from '../src/postgres/database.ts';
import { findHome } from '../src/postgres/embedded/home.ts';
import { openEmbeddedDatabase } from '../src/postgres/embedded/open-embedded-database.ts';
import { readPostmasterFile } from '../src/postgres/embedded/server.ts';
import { migrate } from '../src/postgres/migrate/migrate.ts';
import { createTenant } from '../src/postgres/tenants/tenants.ts';

/** Where the benchmarks keep databases and files; git ignores it. */
export const benchFolder = join(import.meta.dirname, '../data/bench');

/** The embedded PostgreSQL of a folder, or the server that DATABASE_URL names. */
export interface BenchServer {
  readonly url: string;
  query(statement: string, values?: unknown[]): Promise<Record<string, unknown>[]>;
  /** A new database: of the template, or else with the schema of Annals. */
  create(options?: { template?: string | undefined; connections?: number }): Promise<BenchDatabase>;
  /** The id of the server's main process. The embedded server alone. */
  postmaster(): Promise<number>;
  /** Kills the embedded server with SIGKILL. Resolves once it answers again. */
  kill(): Promise<void>;
  release(): Promise<void>;
}

export interface BenchDatabase {
  readonly name: string;
  readonly url: string;
  readonly pool: pg.Pool;
  readonly db: Database;
  drop(): Promise<void>;
}

export async function openBenchServer(dataDir = benchFolder): Promise<BenchServer> {
  await mkdir(dataDir, { recursive: true });
  const log = (line: string) => void process.stderr.write(`${line}\n`);
  const databaseUrl = process.env.DATABASE_URL;
  const { url, release } = databaseUrl
    ? { url: databaseUrl, release: async () => {} }
    : await openEmbeddedDatabase({ dataDir, log });
  const query = (statement: string, values?: unknown[]) => onServer(url, statement, values);
  const postmaster = async () => {
    const file = databaseUrl ? undefined : await readPostmasterFile((await findHome(dataDir)).cluster);
    if (file === undefined) throw new Error('there is no embedded server');
    return file.pid;
  };
  return {
    url,
    query,
    postmaster,
    release,
    async create({ template, connections = 5 } = {}) {
      const name = `annals_bench_${randomBytes(4).toString('hex')}`;
      await query(`create database ${name}${template === undefined ? '' : ` template ${template} strategy file_copy`}`);
      const own = urlOf(url, name);
      const pool = createPool(own, { applicationName: 'annals bench', maximum: connections });
      pool.on('error', () => {});
      if (template === undefined) await migrate(pool);
      const drop = async () => {
        await pool.end();
        await query(`drop database ${name} with (force)`);
      };
      return { name, url: own, pool, db: createDatabase(pool), drop };
    },
    async kill() {
      process.kill(await postmaster(), 'SIGKILL');
      await sleep(100);
      while (!(await query('select').catch(() => undefined))) await sleep(50);
    },
  };
}

/** The URL of another database of the same server. */
export function urlOf(server: string, database: string): string {
  return Object.assign(new URL(server), { pathname: database }).href;
}

/** Runs statements on a connection of their own. */
export async function onServer(
  url: string,
  statement: string,
  values: unknown[] = [],
): Promise<Record<string, unknown>[]> {
  const client = new pg.Client(url);
  // Without a listener a server that goes away would end the process.
  client.on('error', () => {});
  await client.connect();
  try {
    const result = await client.query(statement, values);
    return Array.isArray(result) ? [] : result.rows;
  } finally {
    await client.end();
  }
}

/** Makes a tenant with a client; its scope: every scope unless given. */
export async function makeTenant(db: Database, tenant: string, scope = scopes.join(' ')): Promise<NewClient> {
  await createTenant(db, tenant);
  return await createClient(db, { tenant, scope, name: 'Bench' });
}
