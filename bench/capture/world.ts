import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { createPool } from '../../src/postgres/connections/pool.ts';
import { type EmbeddedDatabase, openEmbeddedDatabase } from '../../src/postgres/embedded/open-embedded-database.ts';
import { migrate } from '../../src/postgres/migrate/migrate.ts';

const launcher = join(import.meta.dirname, '../../bin/annals.js');
const secretKey = randomBytes(32).toString('base64');

export const tenant = 'acme';

/** The application's PostgreSQL and Annals' own, each a server of its own. */
export interface World {
  shop: string;
  annals: string;
  /** The file of the mapping of the table `items`. */
  mapping: string;
  /** The folders of the two clusters. */
  clusters: { source: string; annals: string };
  close(): Promise<void>;
}

/** Two servers with new databases. `data` is the folder that they are in. */
export async function openWorld(data: string): Promise<World> {
  const [source, own] = [await openServer(join(data, 'source')), await openServer(join(data, 'annals'))];
  const [shop, annals] = [of(source.url, 'bench_shop'), of(own.url, 'bench_annals')];
  await dropSlots(source.url);
  await ask(source.url, 'drop database if exists bench_shop with (force)');
  await ask(source.url, 'create database bench_shop');
  await forget({ annals });
  const mapping = join(data, 'mapping.json');
  const tables = { 'public.items': { entity: 'item', name: 'title' } };
  await writeFile(mapping, JSON.stringify({ version: 1, tenant: { value: tenant }, tables }));
  return {
    shop,
    annals,
    mapping,
    clusters: { source: source.cluster, annals: own.cluster },
    async close() {
      await dropSlots(source.url);
      await Promise.all([source.release(), own.release()]);
    },
  };
}

/** A server with `wal_level = logical`. The URL is that of its superuser. */
async function openServer(dataDir: string): Promise<EmbeddedDatabase & { cluster: string }> {
  await mkdir(dataDir, { recursive: true });
  const open = () => openEmbeddedDatabase({ dataDir, log: (line) => process.stderr.write(`${line}\n`) });
  let server: EmbeddedDatabase = await open();
  const [level] = await ask(asSuperuser(server.url), 'show wal_level');
  if (level?.wal_level !== 'logical') {
    await ask(asSuperuser(server.url), 'alter system set wal_level = logical');
    await server.release();
    server = await open();
  }
  const { release } = server;
  return { url: asSuperuser(server.url), release, cluster: join(dataDir, 'postgres', 'cluster') };
}

/** A fresh database of Annals in place of the one that is there. */
export async function forget({ annals }: Pick<World, 'annals'>): Promise<void> {
  const url = of(annals, 'postgres');
  await ask(url, 'drop database if exists bench_annals with (force)');
  await ask(url, 'create database bench_annals');
  const pool = createPool(annals);
  await migrate(pool);
  await pool.query('insert into tenant (tenant) values ($1)', [tenant]);
  await pool.end();
}

async function dropSlots(url: string): Promise<void> {
  for (let attempt = 0; attempt < 100; attempt++) {
    const [row] = await ask(url, 'select count(*)::int as count from pg_replication_slots where active');
    if (row?.count === 0) break;
    await sleep(100);
  }
  await ask(url, 'select pg_drop_replication_slot(slot_name) from pg_replication_slots');
}

function asSuperuser(url: string): string {
  return Object.assign(new URL(url), { username: 'postgres', pathname: 'postgres' }).href;
}

function of(url: string, name: string): string {
  return Object.assign(new URL(url), { pathname: name }).href;
}

/** A connection whose queries report a server that goes away. Without a listener this event would end the process. */
export async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client(url);
  client.on('error', () => {});
  await client.connect();
  return client;
}

export async function ask(url: string, statement: string, values: unknown[] = []): Promise<Record<string, unknown>[]> {
  const client = await connect(url);
  try {
    const result = await client.query(statement, values);
    return Array.isArray(result) ? [] : result.rows;
  } finally {
    await client.end();
  }
}

export interface Running {
  pid: number;
  /** Resolves with the first line on stdout. */
  ready: Promise<unknown>;
  kill(signal: NodeJS.Signals): Promise<number | null>;
  ended: Promise<number | null>;
}

/** Starts a command of Annals in a process of its own. */
export function start(
  args: string[],
  { annals, shop, mapping }: World,
  settings: Record<string, string> = {},
): Running {
  const child = spawn(process.execPath, [launcher, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      PATH: process.env.PATH,
      DATABASE_URL: annals,
      ANNALS_SECRET_KEY: secretKey,
      ANNALS_SOURCE_URL: shop,
      ANNALS_RECORDER_MAPPING: mapping,
      LOG_LEVEL: 'error',
      ...settings,
    },
  });
  const ready = once(child.stdout, 'data');
  ready.catch(() => {});
  const ended = once(child, 'exit').then(([code]) => code);
  return {
    pid: child.pid ?? 0,
    ready,
    ended,
    kill: async (signal) => {
      child.kill(signal);
      return await ended;
    },
  };
}

/** Seconds of processor time, and the most memory in MiB, of a process and its children so far. */
export async function usageOf(pid: number): Promise<{ seconds: number; mebibytes: number }> {
  const pids = [pid, ...(await childrenOf(pid))];
  let seconds = 0;
  let mebibytes = 0;
  for (const one of pids) {
    const stat = (await readFile(`/proc/${one}/stat`, 'utf8').catch(() => '')).split(') ')[1]?.split(' ');
    const status = await readFile(`/proc/${one}/status`, 'utf8').catch(() => '');
    seconds += (Number(stat?.[11] ?? 0) + Number(stat?.[12] ?? 0)) / 100;
    mebibytes = Math.max(mebibytes, Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024);
  }
  return { seconds, mebibytes };
}

/** MiB of memory that a process and its children have now, the largest of them. */
export async function residentOf(pid: number): Promise<number> {
  const sizes = [pid, ...(await childrenOf(pid))].map(async (one) => {
    const status = await readFile(`/proc/${one}/status`, 'utf8').catch(() => '');
    return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024;
  });
  return Math.max(...(await Promise.all(sizes)));
}

async function childrenOf(pid: number): Promise<number[]> {
  const list = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '');
  const children = list.trim().split(' ').filter(Boolean).map(Number);
  return [...children, ...(await Promise.all(children.map(childrenOf))).flat()];
}

/** Waits until so many entries are there. Returns the seconds that it took. */
export async function untilEntries({ annals }: World, count: number): Promise<number> {
  const began = performance.now();
  const client = await connect(annals);
  try {
    for (;;) {
      const asked = performance.now();
      const { rows } = await client.query('select count(*)::int as count from change_entry where tenant = $1', [
        tenant,
      ]);
      if (rows[0]?.count >= count) return (performance.now() - began) / 1000;
      // Counting must not be what is measured.
      await sleep(Math.max(50, 20 * (performance.now() - asked)));
    }
  } finally {
    await client.end();
  }
}
