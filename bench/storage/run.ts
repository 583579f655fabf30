import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { parseArgs } from 'node:util';
import type pg from 'pg';
import { foldHistory } from '../../src/history/upkeep/fold.ts';
import { buildHistoryIndexes } from '../../src/history/upkeep/statistics.ts';
import type { Database } from '../../src/postgres/database.ts';
import { readTreeSize } from '../../src/proof/log/leaf-store.ts';
import { sealPortion } from '../../src/proof/log/seal-tenants.ts';
import { makeProofKey, openSigner } from '../../src/proof/log/signer.ts';
import { lastPosition } from '../../src/recording/positions.ts';
import { Random } from '../../test/support/oracle/random.ts';
import { launcher } from '../../test/support/server/command.ts';
import { printTable } from '../figures.ts';
import { benchTenants, drawEntries, recordDrawn } from '../history/data.ts';
import { shopFile } from '../import/shop-file.ts';
import { parentOf, serverTime } from '../processor-time.ts';
import { type BenchDatabase, openBenchServer } from '../server.ts';
import { environmentOf } from '../service.ts';

// Bytes on disk and of WAL that a settled entry takes, by table and part: what an import leaves once everything is
// folded, has its position, is sealed, and the tables are vacuumed.
const { values: settings } = parseArgs({
  options: {
    lines: { type: 'string', default: '60000' },
    only: { type: 'string', multiple: true, default: ['shop', 'shuffled', 'generated', 'who'] },
  },
});
const lines = Number(settings.lines);
/** What belongs to the benchmark alone. */
const ownTables = ['plain'];

interface DataSet {
  readonly tenants: readonly string[];
  /** What is not measured. */
  prepare?(pool: pg.Pool): Promise<void>;
  record(database: BenchDatabase): Promise<void>;
}

const dataSets: Record<string, DataSet> = {
  shop: { tenants: ['shop'], record: async ({ url }) => await importFile(url, await shopFile(lines)) },
  shuffled: { tenants: ['shop'], record: async ({ url }) => await importFile(url, await shuffledFile()) },
  generated: {
    tenants: benchTenants,
    prepare: (pool) => drawEntries(pool, lines),
    record: ({ pool, db }) => recordDrawn(pool, db, {}),
  },
  // the same, with ids of actors and a correlation id for five entries each
  who: {
    tenants: benchTenants,
    prepare: (pool) => drawEntries(pool, lines),
    record: ({ pool, db }) => recordDrawn(pool, db, { who: true }),
  },
};

interface Figures {
  readonly entries: number;
  /** Bytes by table and part. */
  readonly parts: ReadonlyMap<string, number>;
  readonly wal: number;
  /** Bytes of WAL that are images of whole pages. */
  readonly walImages: number;
  /** Microseconds of all processes of the database. */
  readonly processor: number;
}

const server = await openBenchServer();
const folder = await mkdtemp(join(tmpdir(), 'annals-storage-'));
try {
  makeProofKey(join(folder, 'key'));
  const measured: [name: string, figures: Figures][] = [];
  for (const name of settings.only) {
    const dataSet = dataSets[name];
    if (dataSet === undefined) throw new Error(`--only takes ${Object.keys(dataSets).join(', ')}`);
    measured.push([name, await measure(dataSet)]);
    process.stderr.write(`${name} is measured\n`);
  }
  print(measured);
} finally {
  await server.release();
  await rm(folder, { recursive: true });
}

async function measure(dataSet: DataSet): Promise<Figures> {
  const database = await server.create();
  const { pool, db, drop } = database;
  try {
    for (const tenant of dataSet.tenants) await pool.query('insert into tenant (tenant) values ($1)', [tenant]);
    await dataSet.prepare?.(pool);
    // All runs begin alike: the first change of each page after a checkpoint writes the whole page to the WAL.
    for (const command of ['vacuum analyze', 'checkpoint']) await pool.query(command);
    const [before, begun] = [await sizes(pool), await used(pool)];
    await dataSet.record(database);
    for (const tenant of dataSet.tenants) await settle(pool, db, tenant);
    await buildHistoryIndexes(db);
    await pool.query('vacuum analyze');
    const ended = await used(pool);
    // What readers of that vacuum still saw.
    await pool.query('vacuum');
    const after = await sizes(pool);
    const counted = await pool.query<{ entries: number }>('select count(*)::integer as entries from change_entry');
    return {
      entries: counted.rows[0]?.entries ?? 0,
      parts: new Map([...after].map(([part, bytes]) => [part, bytes - (before.get(part) ?? 0)])),
      wal: ended.wal - begun.wal,
      walImages: ended.images - begun.images,
      processor: ended.processor - begun.processor,
    };
  } finally {
    await drop();
  }
}

async function importFile(url: string, file: string): Promise<void> {
  const command = spawn(process.execPath, [launcher, 'import', '--tenant', 'shop', file], {
    env: environmentOf(url),
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [answer, [code]] = await Promise.all([text(command.stdout), once(command, 'exit')]);
  if (code !== 0) throw new Error(`the import ended with ${code} and ${answer.trim()}`);
}

/** Does what the upkeep of a service does, until nothing is left. */
async function settle(pool: pg.Pool, db: Database, tenant: string): Promise<void> {
  await foldHistory(db, tenant);
  const sealing = { signer: openSigner(join(folder, 'key'), 'annals.example'), now: Date.now };
  try {
    do {
      while (await sealPortion(db, tenant, sealing));
      await foldHistory(db, tenant);
      await pool.query('update proof_log set signed_at = null where tenant = $1', [tenant]);
    } while ((await readTreeSize(db, tenant)) < (await lastPosition(db, tenant)).position);
  } finally {
    sealing.signer.newest.close();
  }
  const { rows } = await pool.query('select from change_delta where tenant = $1 limit 1', [tenant]);
  if (rows.length > 0) throw new Error(`changes of ${tenant} are not folded`);
}

/** Bytes of each table, its TOAST and its indexes. */
async function sizes(pool: pg.Pool): Promise<Map<string, number>> {
  const { rows } = await pool.query<{ part: string; bytes: number }>(
    `with tables as (
       select c.oid, c.relname, c.reltoastrelid from pg_class c
         where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and c.relname <> all ($1))
     select relname || ': rows' as part,
            (pg_table_size(oid) - coalesce(pg_total_relation_size(nullif(reltoastrelid, 0)), 0))::float8 as bytes from tables
     union all
     select relname || ': TOAST', pg_total_relation_size(reltoastrelid) from tables where reltoastrelid <> 0
     union all
     select t.relname || ': ' || i.relname, pg_relation_size(i.oid)
       from tables t join pg_index x on x.indrelid = t.oid join pg_class i on i.oid = x.indexrelid`,
    [ownTables],
  );
  return new Map(rows.map(({ part, bytes }) => [part, bytes]));
}

async function used(pool: pg.Pool): Promise<{ wal: number; images: number; processor: number }> {
  const { rows } = await pool.query<{ wal: number; images: number; pid: number }>(
    `select (pg_current_wal_insert_lsn() - '0/0')::float8 as wal, w.wal_fpi::float8 as images, pg_backend_pid() as pid
       from pg_stat_wal w`,
  );
  const [{ wal, images, pid } = { wal: 0, images: 0, pid: 0 }] = rows;
  return { wal, images, processor: 1000 * serverTime(parentOf(pid)) };
}

async function shuffledFile(): Promise<string> {
  const inOrder = await shopFile(lines);
  const path = inOrder.replace('.ndjson', '-shuffled.ndjson');
  if (existsSync(path)) return path;
  const sorted = (await readFile(inOrder, 'utf8')).trimEnd().split('\n');
  await writeFile(path, `${new Random(1).shuffled(sorted).join('\n')}\n`);
  return path;
}

function print(measured: readonly [name: string, figures: Figures][]): void {
  const all = measured.map(([, figures]) => figures);
  const each = (of: (figures: Figures) => number, digits = 1) =>
    all.map((figures) => (of(figures) / figures.entries).toFixed(digits));
  const names = [...new Set(all.flatMap(({ parts }) => [...parts.keys()]))].sort();
  const shown = names.filter((name) => all.some(({ parts, entries }) => (parts.get(name) ?? 0) / entries >= 0.05));
  printTable(
    ['Bytes an entry', ...measured.map(([name, { entries }]) => `${name}, ${entries.toLocaleString('en')}`)],
    [
      ...shown.map((name) => [name, ...each(({ parts }) => parts.get(name) ?? 0)]),
      ['**Sum**', ...each(({ parts }) => [...parts.values()].reduce((sum, bytes) => sum + bytes, 0))],
      ['WAL', ...each(({ wal }) => wal)],
      ['Whole pages in the WAL, an entry', ...each(({ walImages }) => walImages, 4)],
      ['Processor time of the database, µs an entry', ...each(({ processor }) => processor)],
    ],
  );
}
