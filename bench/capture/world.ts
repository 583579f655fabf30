import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { createTenant } from '../../src/postgres/tenants/tenants.ts';
import { launcher } from '../../test/support/server/command.ts';
import { type BenchDatabase, type BenchServer, benchFolder, onServer, openBenchServer, urlOf } from '../server.ts';
import { environmentOf, firstLineOf } from '../service.ts';

export const tenant = 'acme';

/** The application's PostgreSQL and Annals' own, each a server of its own. */
export interface World {
  readonly source: BenchServer;
  readonly own: BenchServer;
  /** The application's database, by its superuser. */
  readonly shop: string;
  readonly annals: BenchDatabase;
  /** The file of the mapping of the table `items`. */
  readonly mapping: string;
  /** Replaces the database of Annals by an empty one. */
  renew(): Promise<void>;
  close(): Promise<void>;
}

/** Two servers with new databases; `annals` is the folder of Annals' server. */
export async function openWorld(annals = `${benchFolder}-capture`): Promise<World> {
  const [source, own] = [await openSource(), await openBenchServer(annals)];
  const superuser = Object.assign(new URL(source.url), { username: 'postgres' }).href;
  await dropSlots(superuser);
  await onServer(superuser, 'drop database if exists bench_shop with (force)');
  await onServer(superuser, 'create database bench_shop');
  const mapping = join(`${benchFolder}-source`, 'mapping.json');
  await writeFile(mapping, mappingOf({ 'public.items': { entity: 'item', name: 'title' } }));
  const world = {
    source,
    own,
    shop: urlOf(superuser, 'bench_shop'),
    annals: await makeHistory(own),
    mapping,
    async renew() {
      await world.annals.drop();
      world.annals = await makeHistory(own);
    },
    async close() {
      await dropSlots(superuser);
      await world.annals.drop();
      await Promise.all([source.release(), own.release()]);
    },
  };
  return world;
}

export function mappingOf(tables: object): string {
  return JSON.stringify({ version: 1, tenant: { value: tenant }, tables });
}

async function makeHistory(server: BenchServer): Promise<BenchDatabase> {
  const database = await server.create();
  await createTenant(database.db, tenant);
  return database;
}

/** A server with `wal_level = logical`. */
async function openSource(): Promise<BenchServer> {
  const server = await openBenchServer(`${benchFolder}-source`);
  const superuser = Object.assign(new URL(server.url), { username: 'postgres' }).href;
  const [level] = await onServer(superuser, 'show wal_level');
  if (level?.wal_level === 'logical') return server;
  await onServer(superuser, 'alter system set wal_level = logical');
  await server.release();
  return await openBenchServer(`${benchFolder}-source`);
}

async function dropSlots(url: string): Promise<void> {
  for (let attempt = 0; attempt < 100; attempt++) {
    const [row] = await onServer(url, 'select count(*)::int as count from pg_replication_slots where active');
    if (row?.count === 0) break;
    await sleep(100);
  }
  await onServer(url, 'select pg_drop_replication_slot(slot_name) from pg_replication_slots');
}

/** A connection that survives the loss of its server until the next query. */
export async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client(url);
  client.on('error', () => {});
  await client.connect();
  return client;
}

export interface Running {
  readonly pid: number;
  /** Rejects where the command ends without a first line. */
  readonly ready: Promise<string>;
  readonly ended: Promise<number | null>;
  kill(signal: NodeJS.Signals): Promise<number | null>;
}

/** Starts a command of Annals, with the application as its source. */
export function start(args: string[], { annals, shop, mapping }: Pick<World, 'annals' | 'shop' | 'mapping'>): Running {
  const child: ChildProcess = spawn(process.execPath, [launcher, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: environmentOf(annals.url, { ANNALS_SOURCE_URL: shop, ANNALS_RECORDER_MAPPING: mapping }),
  });
  const ready = firstLineOf(child);
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

/** Waits until so many entries are there. Returns the seconds that it took. */
export async function untilEntries({ annals }: World, count: number): Promise<number> {
  const began = performance.now();
  for (;;) {
    const before = performance.now();
    const { rows } = await annals.pool.query('select count(*)::int as count from change_entry');
    if (rows[0]?.count >= count) return (performance.now() - began) / 1000;
    // Counting must not be what is measured.
    await sleep(Math.max(50, 20 * (performance.now() - before)));
  }
}
