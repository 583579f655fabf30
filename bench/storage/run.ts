import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { parseArgs } from 'node:util';
import type pg from 'pg';
import { lastPosition } from '../../src/history/feed/positions.ts';
import { makeProofKey } from '../../src/history/proof/sealing/make-key.ts';
import { sealPortion } from '../../src/history/proof/sealing/seal-tenants.ts';
import { openSigner } from '../../src/history/proof/sealing/signer.ts';
import { readTreeSize } from '../../src/history/proof/tree/leaf-store.ts';
import { foldHistory } from '../../src/history/upkeep/fold.ts';
import { createPool } from '../../src/postgres/connections/pool.ts';
import { createDatabase, type Database } from '../../src/postgres/database.ts';
import { openEmbeddedDatabase } from '../../src/postgres/embedded/open-embedded-database.ts';
import { migrate } from '../../src/postgres/migrate/migrate.ts';
import { Random } from '../../test/support/oracle/random.ts';
import { benchTenants, drawEntries, recordDrawn } from '../history/data.ts';
import { writeShopFile } from '../import/shop-file.ts';
import { databaseTime } from '../proof/processor-time.ts';

// Bytes on disk and of WAL that a settled entry takes, by table and part: what an import leaves once everything is folded, has its
// position, is sealed, and the tables are vacuumed.
const { values: settings } = parseArgs({
  options: {
    lines: { type: 'string', default: '60000' },
    only: { type: 'string', multiple: true, default: ['shop', 'shuffled', 'generated'] },
    data: { type: 'string', default: join(import.meta.dirname, '../../data/bench') },
  },
});
const lines = Number(settings.lines);
const launcher = join(import.meta.dirname, '../../bin/annals.js');
/** What belongs to the benchmark alone. */
const ownTables = ['plain'];

interface DataSet {
  readonly tenants: readonly string[];
  /** What is not measured. */
  prepare?(pool: pg.Pool): Promise<void>;
  record(pool: pg.Pool, db: Database): Promise<void>;
}

const dataSets: Record<string, DataSet> = {
  shop: { tenants: ['shop'], record: async ({ options }) => await importFile(options, await shopFile()) },
  shuffled: { tenants: ['shop'], record: async ({ options }) => await importFile(options, await shuffledFile()) },
  generated: { tenants: benchTenants, prepare: (pool) => drawEntries(pool, lines), record: recordDrawn },
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

await mkdir(settings.data, { recursive: true });
const embedded = process.env.DATABASE_URL
  ? { url: process.env.DATABASE_URL, release: async () => {} }
  : await openEmbeddedDatabase({ dataDir: settings.data, log: (line) => process.stderr.write(`${line}\n`) });
const folder = await mkdtemp(join(tmpdir(), 'annals-storage-'));
const server = createPool(embedded.url, { maximum: 1 });
try {
  makeProofKey(join(folder, 'key'));
  const measured: [name: string, figures: Figures][] = [];
  for (const name of settings.only) {
    const dataSet = dataSets[name];
    if (dataSet === undefined) throw new Error(`--only takes ${Object.keys(dataSets).join(', ')}`);
    measured.push([name, await measure(dataSet)]);
    process.stderr.write(`${name} is measured\n`);
  }
  process.stdout.write(tableOf(measured));
} finally {
  await server.end();
  await embedded.release();
  await rm(folder, { recursive: true });
}

async function measure(dataSet: DataSet): Promise<Figures> {
  const name = `annals_bench_storage_${randomBytes(4).toString('hex')}`;
  await server.query(`create database ${name}`);
  const url = new URL(embedded.url);
  url.pathname = name;
  const pool = createPool(url.href, { maximum: 4 });
  const db = createDatabase(pool);
  try {
    await migrate(pool);
    for (const tenant of dataSet.tenants) await pool.query('insert into tenant (tenant) values ($1)', [tenant]);
    await dataSet.prepare?.(pool);
    // All runs begin alike: the first change of each page after a checkpoint writes the whole page to the WAL.
    for (const command of ['vacuum analyze', 'checkpoint']) await pool.query(command);
    const [before, begun] = [await sizes(pool), await used(pool)];
    await dataSet.record(pool, db);
    for (const tenant of dataSet.tenants) await settle(pool, db, tenant);
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
    await db.destroy();
    await server.query(`drop database ${name} with (force)`);
  }
}

async function importFile({ connectionString }: pg.Pool['options'], file: string): Promise<void> {
  const command = spawn(process.execPath, [launcher, 'import', '--tenant', 'shop', file], {
    env: { ...process.env, DATABASE_URL: connectionString, ANNALS_SECRET_KEY: randomBytes(32).toString('base64') },
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
     select relname || ' | rows' as part,
            (pg_table_size(oid) - coalesce(pg_total_relation_size(nullif(reltoastrelid, 0)), 0))::float8 as bytes from tables
     union all
     select relname || ' | TOAST', pg_total_relation_size(reltoastrelid) from tables where reltoastrelid <> 0
     union all
     select t.relname || ' | ' || i.relname, pg_relation_size(i.oid)
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
  return { wal, images, processor: await databaseTime(pid) };
}

async function shopFile(): Promise<string> {
  const path = join(settings.data, `shop-${lines}.ndjson`);
  if (!existsSync(path)) await writeShopFile(path, lines);
  return path;
}

async function shuffledFile(): Promise<string> {
  const path = join(settings.data, `shop-${lines}-shuffled.ndjson`);
  if (existsSync(path)) return path;
  const sorted = (await readFile(await shopFile(), 'utf8')).trimEnd().split('\n');
  await writeFile(path, `${new Random(1).shuffled(sorted).join('\n')}\n`);
  return path;
}

function tableOf(measured: readonly [name: string, figures: Figures][]): string {
  const all = measured.map(([, figures]) => figures);
  const line = (name: string, values: readonly string[]) => `| ${name} | ${values.join(' | ')} |\n`;
  const each = (of: (figures: Figures) => number) => all.map((figures) => (of(figures) / figures.entries).toFixed(1));
  const names = [...new Set(all.flatMap(({ parts }) => [...parts.keys()]))].sort();
  const shown = names.filter((name) => all.some(({ parts, entries }) => (parts.get(name) ?? 0) / entries >= 0.05));
  const sumOf = ({ parts }: Figures) => [...parts.values()].reduce((sum, bytes) => sum + bytes, 0);
  return [
    line(
      'Bytes an entry | part',
      measured.map(([name, { entries }]) => `${name}, ${entries.toLocaleString('en')}`),
    ),
    line(
      '---|---',
      all.map(() => '---:'),
    ),
    ...shown.map((name) =>
      line(
        name,
        each(({ parts }) => parts.get(name) ?? 0),
      ),
    ),
    line('**Sum** | ', each(sumOf)),
    line(
      'WAL | ',
      each(({ wal }) => wal),
    ),
    line(
      'Whole pages in the WAL, an entry | ',
      all.map(({ walImages, entries }) => (walImages / entries).toFixed(4)),
    ),
    line(
      'Processor time of the database, µs an entry | ',
      each(({ processor }) => processor),
    ),
  ].join('');
}
