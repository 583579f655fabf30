import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import pg from 'pg';
import { createClient } from '../../src/access/oauth/clients.ts';
import { readRestriction } from '../../src/history/search/plan/restriction.ts';
import { createDatabase } from '../../src/postgres/database.ts';
import { tokenOf } from '../access-token.ts';
import type { Cost } from '../history/processor-time.ts';

export interface Answer {
  total: number;
  /** Of a page. */
  items: unknown[];
}

/** Asks one question. `what` is a resource of the change history with its parameters, `histogram` for example. */
export type Ask = (what: string, q: string) => Promise<{ answer: Answer; cost: Cost }>;

/** The service in a process of its own, asked over HTTP. */
export interface Service {
  /** By a client that sees everything. */
  ask: Ask;
  /** By a new client that has a fixed query. */
  askWith: (query: string) => Promise<Ask>;
  stop: () => Promise<void>;
}

/** Starts the service on the benchmark's clock. `tenant` is the one that is asked. */
export async function startService(url: string, { pool, tenant }: { pool: pg.Pool; tenant: string }): Promise<Service> {
  // The keys that another run has left are sealed with another secret.
  await pool.query('truncate oauth_signing_key');
  const child = spawn(process.execPath, [join(import.meta.dirname, 'annals.ts')], {
    env: {
      ...process.env,
      DATABASE_URL: url,
      ANNALS_SECRET_KEY: randomBytes(32).toString('base64'),
      PORT: '0',
      LOG_LEVEL: 'error',
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [baseUrl] = (await Promise.race([
    once(createInterface(child.stdout), 'line'),
    once(child, 'exit').then(() => Promise.reject(new Error('the service has ended'))),
  ])) as string[];
  const tokenWith = async (query: string | null) => {
    const restriction = query === null ? undefined : readRestriction([{ query, hide: [], actors: true }]);
    const scope = 'changelog.changelog_read';
    return await tokenOf(String(baseUrl), await createClient(createDatabase(pool), { tenant, scope, restriction }));
  };
  const token = await tokenWith(null);
  const watch = new pg.Client({ connectionString: url, application_name: 'bench' });
  await watch.connect();
  await untilQuiet(watch);
  const urlOf = (what: string, q: string) => {
    const asked = new URL(`${baseUrl}/changelog/${tenant}/${what}`);
    if (q !== '') asked.searchParams.set('q', q);
    return asked;
  };

  const askBy = (bearer: string): Ask => {
    const headers = { authorization: `Bearer ${bearer}` };
    return async (what, q) => {
      const before = await spent(child, watch);
      const begun = performance.now();
      const response = await fetch(urlOf(what, q), { headers });
      const body = (await response.json()) as { totalElements?: number; items?: unknown[] };
      const clock = performance.now() - begun;
      const { totalElements: total, items = [] } = body;
      if (total === undefined) throw new Error(`${q}: ${response.status} ${JSON.stringify(body)}`);
      // A thread that has answered may still be putting things away.
      await new Promise((resolve) => setTimeout(resolve, 5));
      const after = await spent(child, watch);
      const database = [...after.backends].reduce((sum, [id, time]) => sum + time - (before.backends.get(id) ?? 0), 0);
      return { answer: { total, items }, cost: { service: after.service - before.service, database, clock } };
    };
  };

  return {
    ask: askBy(token),
    askWith: async (query) => askBy(await tokenWith(query)),
    async stop() {
      await watch.end();
      child.kill();
      if (child.exitCode === null) await once(child, 'exit');
    },
  };
}

/** Waits until the service has done what it does after a start, indexes for example: until 3 seconds are quiet. */
async function untilQuiet(watch: pg.Client): Promise<void> {
  for (let quiet = 0; quiet < 6; ) {
    await new Promise((resolve) => setTimeout(resolve, 500));
    const { rows } = await watch.query(
      `select from pg_stat_activity
         where datname = current_database() and application_name <> 'bench' and state = 'active'
           and clock_timestamp() - query_start > interval '100 milliseconds'`,
    );
    quiet = rows.length === 0 ? quiet + 1 : 0;
  }
}

/** Milliseconds of processor time so far: of all threads of the service, and of each of its backends. */
async function spent(
  child: ChildProcess,
  watch: pg.Client,
): Promise<{ service: number; backends: Map<number, number> }> {
  const { rows } = await watch.query<{ pid: number }>(
    "select pid from pg_stat_activity where datname = current_database() and application_name <> 'bench'",
  );
  const backends = new Map(rows.map(({ pid }) => [pid, timeOf(`/proc/${pid}/schedstat`)]));
  const threads = `/proc/${child.pid}/task`;
  const service = readdirSync(threads).reduce((sum, thread) => sum + timeOf(`${threads}/${thread}/schedstat`), 0);
  return { service, backends };
}

function timeOf(path: string): number {
  try {
    return Number(readFileSync(path, 'utf8').split(' ', 1)[0]) / 1e6;
  } catch {
    return 0;
  }
}
