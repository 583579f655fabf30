import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { copyIn, copyOut } from '../../import/copy.ts';
import type { Installed } from './install.ts';

export const directusToken = 'annals-bench-directus';

/** What a change is in the activity table of Directus; it knows no tenants, so it has the changes of all. */
const activity = `
  select id::integer, type::varchar(255), md5(actor)::uuid, at, '127.0.0.1'::varchar(255), 'bench'::text,
         entity::varchar(255), entity_id::varchar(255), null::varchar(255)
    from plain order by plain.id`;

/** The user that stands for an actor in that table. */
export function userOf(actor: string): string {
  return createHash('md5')
    .update(actor)
    .digest('hex')
    .replace(/(.{8})(.{4})(.{4})(.{4})(.{12})/, '$1-$2-$3-$4-$5');
}

/**
 * Runs Directus on a database of its own on the same server, made and filled from the benchmark's where it is not there
 * yet. Its limiters are off and its log is as in production.
 */
export async function serveDirectus(
  { folder, node, path }: Installed,
  source: { url: string; entries: number },
  port: number,
): Promise<{ child: ChildProcess; url: string }> {
  const database = `annals_bench_directus_${source.entries}`;
  const target = new URL(source.url);
  target.pathname = database;
  const url = `http://127.0.0.1:${port}`;
  const env = {
    ...process.env,
    PATH: path,
    NODE_ENV: 'production',
    HOST: '127.0.0.1',
    PORT: String(port),
    PUBLIC_URL: url,
    DB_CLIENT: 'pg',
    DB_CONNECTION_STRING: target.href,
    SECRET: 'a secret of the benchmark, on this machine only',
    ADMIN_EMAIL: 'bench@example.com',
    ADMIN_PASSWORD: 'a password of the benchmark',
    ADMIN_TOKEN: directusToken,
    LOG_STYLE: 'raw',
    TELEMETRY: 'false',
    PRESSURE_LIMITER_ENABLED: 'false',
  };
  const cli = join(folder, 'node_modules', 'directus', 'cli.js');
  await withClient(source.url, async (server) => {
    const { rows } = await server.query('select from pg_database where datname = $1', [database]);
    if (rows.length > 0) return;
    const draft = `${database}_draft`;
    await server.query(`drop database if exists ${draft}`);
    await server.query(`create database ${draft}`);
    target.pathname = draft;
    const { status } = spawnSync(node, [cli, 'bootstrap'], {
      cwd: folder,
      env: { ...env, DB_CONNECTION_STRING: target.href },
      stdio: ['ignore', 'ignore', 2],
    });
    if (status !== 0) throw new Error('Directus cannot make its tables');
    const changes = await copyOut(server, activity);
    await withClient(target.href, async (client) => {
      const columns = 'id, action, "user", timestamp, ip, user_agent, collection, item, origin';
      await client.query('delete from directus_activity');
      await copyIn(client, `directus_activity (${columns})`, changes);
      await client.query('vacuum (analyze) directus_activity');
    });
    await server.query(`alter database ${draft} rename to ${database}`);
  });
  const child = spawn(node, [cli, 'start'], { cwd: folder, env, stdio: ['ignore', 'ignore', 'inherit'] });
  for (let attempt = 0; attempt < 240; attempt++) {
    const answer = await fetch(`${url}/server/ping`).catch(() => undefined);
    if (answer?.ok === true) return { child, url };
    if (child.exitCode !== null) break;
    await sleep(500);
  }
  child.kill();
  throw new Error('Directus did not start');
}

async function withClient(url: string, work: (client: pg.Client) => Promise<void>): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await work(client);
  } finally {
    await client.end();
  }
}
