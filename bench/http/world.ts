import { type ChildProcess, fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import pg from 'pg';
import { createClient } from '../../src/access/oauth/clients.ts';
import { foldTenants } from '../../src/history/upkeep/fold.ts';
import { createPool } from '../../src/postgres/connections/pool.ts';
import { createDatabase } from '../../src/postgres/database.ts';
import { openEmbeddedDatabase } from '../../src/postgres/embedded/open-embedded-database.ts';
import { migrate } from '../../src/postgres/migrate/migrate.ts';
import { createTenant } from '../../src/postgres/tenants/tenants.ts';
import { tenantsWith } from '../../src/postgres/tenants/tenants-with.ts';
import { createRecorder } from '../../src/recording/record-change.ts';
import { tokenOf } from '../access-token.ts';

const tenant = 'bench';
const entries = 3_000;

export const historyPage = `/changelog/${tenant}/changelogs`;

/** What is asked: each costs one statement of the database, or none. */
export const operations: Record<string, string> = {
  'history page': historyPage,
  'one instance': `/schema/${tenant}/custom-entities/BOX/instances/a`,
  'list of models': `/ai-service/${tenant}/agentic/models`,
};

/** A database with a short history, and what servers need to answer from it. */
export interface World {
  environment: Record<string, string>;
  /** Gets a token from a service, and makes what the operations read. */
  tokenOf(baseUrl: string): Promise<string>;
  close(): Promise<void>;
}

export async function makeWorld(dataDir: string): Promise<World> {
  const given = process.env.DATABASE_URL;
  const database =
    given === undefined
      ? await openEmbeddedDatabase({ dataDir, log: (line) => process.stderr.write(`${line}\n`) })
      : { url: given, release: async () => {} };
  const url = new URL(database.url);
  const name = `bench_http_${randomBytes(4).toString('hex')}`;
  await administer(database.url, `create database ${name}`);
  url.pathname = name;
  const pool = createPool(url.href);
  await migrate(pool);
  const db = createDatabase(pool);
  await createTenant(db, tenant);
  const now = Date.now();
  const record = createRecorder(db, tenant, () => now);
  await record(
    Array.from({ length: entries }, (_, index) => ({
      identity: randomBytes(16),
      at: now - index * 60_000,
      type: index % 5 === 0 ? ('create' as const) : ('update' as const),
      entity: index % 3 === 0 ? 'order' : 'product',
      entityId: String(index % 700),
      actor: `Clerk ${index % 20}`,
      related: [],
      paths: '{"price":{"before":1,"after":2}}',
    })),
  );
  await foldTenants(db, {
    signal: new AbortController().signal,
    findTenants: (work) => tenantsWith(db, work),
    onError: (error) => {
      throw error;
    },
    rest: async () => {},
  });
  await pool.query('vacuum analyze');
  const scope =
    'changelog.changelog_read schema.schema_manage schema.custominstance_manage ai.agent_manage ai.agent_read';
  const client = await createClient(db, { tenant, scope, name: 'Bench' });

  return {
    environment: { DATABASE_URL: url.href, ANNALS_SECRET_KEY: randomBytes(32).toString('base64') },

    async tokenOf(baseUrl) {
      const token = await tokenOf(baseUrl, client);
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
      const type = JSON.stringify({ name: { en: 'Box' } });
      await fetch(`${baseUrl}/schema/${tenant}/custom-entities/BOX`, { method: 'PUT', headers, body: type });
      const box = { method: 'PUT', headers, body: JSON.stringify({ name: 'A box', price: 12.5 }) };
      await fetch(`${baseUrl}${operations['one instance']}`, box);
      return token;
    },

    async close() {
      await db.destroy();
      await administer(database.url, `drop database ${name} with (force)`);
      await database.release();
    },
  };
}

async function administer(url: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(statement);
  await client.end();
}

/** A server of this folder, in a process of its own, which has told its address. */
export async function startServer(
  file: 'annals.ts' | 'bare.ts',
  environment: Record<string, string>,
  execArgv: string[] = [],
  folder = import.meta.dirname,
): Promise<{ process: ChildProcess; baseUrl: string }> {
  const server = fork(join(folder, file), {
    env: { PATH: process.env.PATH, ...environment },
    execArgv,
    stdio: ['ignore', 'ignore', file === 'annals.ts' ? 'ignore' : 'inherit', 'ipc'],
  });
  const [baseUrl] = await Promise.race([
    once(server, 'message'),
    once(server, 'exit').then(([code]) => Promise.reject(new Error(`${file} ended with ${code}`))),
  ]);
  return { process: server, baseUrl: String(baseUrl) };
}
