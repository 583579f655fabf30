import { hash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type pg from 'pg';
import { foldHistory } from '../../src/history/upkeep/fold.ts';
import { foldAlong } from '../../src/history/upkeep/fold-along.ts';
import { analyseHistory } from '../../src/history/upkeep/statistics.ts';
import { createPool } from '../../src/postgres/connections/pool.ts';
import { createDatabase, type Database } from '../../src/postgres/database.ts';
import { migrate } from '../../src/postgres/migrate/migrate.ts';
import type { Change, ChangeType, RelatedItem } from '../../src/recording/change.ts';
import { createRecorder } from '../../src/recording/record-change.ts';
import { type BenchServer, urlOf } from '../server.ts';

export const benchTenants = ['big', 'middle', 'little'];
/** The benchmark's clock; all entries are of the 60 days before. */
export const benchNow = Date.UTC(2026, 8, 15, 10, 11, 12, 345);

/** The tables of the history, whose statistics decide the plans. */
const tables = ['change_entry', 'change_related', 'change_tally', 'change_kind', 'change_actor', 'change_delta'];
const entriesAtOnce = 5_000;

/**
 * The name of a database with so many entries, made where it is missing. `imported` is as the import leaves it;
 * `analysed` has been vacuumed and analysed.
 */
export async function openBenchDatabase(
  server: BenchServer,
  entries: number,
  state: 'analysed' | 'imported' = 'analysed',
): Promise<string> {
  const imported = `annals_bench_imported_${entries}`;
  await ensureDatabase(server, imported, undefined, (draft) => fill(draft, entries));
  const analysed = `annals_bench_analysed_${entries}`;
  if (state === 'analysed') await ensureDatabase(server, analysed, imported, analyse);
  const name = state === 'analysed' ? analysed : imported;
  const pool = createPool(urlOf(server.url, name), { maximum: 1 });
  await migrate(pool);
  await pool.end();
  return name;
}

/** Makes a database, of a template if one is named, unless it is there. What an interrupted run left is replaced. */
async function ensureDatabase(
  server: BenchServer,
  name: string,
  template: string | undefined,
  make: (url: string) => Promise<void>,
): Promise<void> {
  if ((await server.query('select 1 from pg_database where datname = $1', [name])).length > 0) return;
  const draft = `${name}_draft`;
  await server.query(`drop database if exists ${draft} with (force)`);
  await server.query(
    `create database ${draft}${template === undefined ? '' : ` template ${template} strategy file_copy`}`,
  );
  await make(urlOf(server.url, draft));
  await server.query(`alter database ${draft} rename to ${name}`);
}

async function fill(url: string, entries: number): Promise<void> {
  const pool = createPool(url, { maximum: 5 });
  const db = createDatabase(pool);
  const timed = async (what: string, work: () => Promise<unknown>) => {
    const begun = performance.now();
    await work();
    const seconds = ((performance.now() - begun) / 1000).toFixed(1);
    process.stderr.write(`${entries} entries: ${what} in ${seconds} s\n`);
  };
  try {
    await migrate(pool);
    for (const tenant of benchTenants) await pool.query('insert into tenant (tenant) values ($1)', [tenant]);
    // The state that an import leaves is measured, not what autovacuum makes of it later.
    for (const table of tables) await pool.query(`alter table ${table} set (autovacuum_enabled = false)`);
    await timed('drawn', () => drawEntries(pool, entries));
    await timed('recorded', () => recordDrawn(pool, db));
    const indexes = await readFile(join(import.meta.dirname, 'plain-indexes.sql'), 'utf8');
    await timed('plain table indexed', () => pool.query(indexes));
    await timed('plain table vacuumed', () => pool.query('vacuum (analyze) plain'));
    await pool.query('checkpoint');
  } finally {
    await db.destroy();
  }
}

async function analyse(url: string): Promise<void> {
  const pool = createPool(url, { maximum: 1 });
  try {
    for (const table of ['plain', ...tables]) {
      await pool.query(`alter table ${table} reset (autovacuum_enabled)`);
      await pool.query(`vacuum (analyze) ${table}`);
    }
    await pool.query('checkpoint');
  } finally {
    await pool.end();
  }
}

/** Makes the table `plain` with so many entries. */
export async function drawEntries(pool: pg.Pool, entries: number): Promise<void> {
  const text = await readFile(join(import.meta.dirname, 'data.sql'), 'utf8');
  const burst = Math.min(50_000, Math.floor(entries / 12));
  await pool.query(
    text
      .replaceAll('$entries', String(entries))
      .replaceAll('$now', String(benchNow))
      .replaceAll('$burst', String(burst)),
  );
}

interface PlainRow {
  tenant: string;
  at: number;
  id: number;
  type: ChangeType;
  entity: string;
  entity_id: string;
  name: string;
  actor: string;
  actor_id: string | null;
  correlation: string;
  ip: string | null;
  related: RelatedItem[] | null;
  paths: Record<string, unknown>;
}

/** What of an entry is recorded beside the members that all have. */
export interface DrawnMembers {
  /** Who exactly, and what belongs together. */
  readonly who?: boolean;
  readonly context?: boolean;
}

/** Records what the plain table has, of all tenants in turn, and folds as it goes, as the import does. */
export async function recordDrawn(
  pool: pg.Pool,
  db: Database,
  members: DrawnMembers = { who: true, context: true },
): Promise<void> {
  const recorders = new Map(
    benchTenants.map((tenant) => [
      tenant,
      foldAlong(
        createRecorder(db, tenant, () => benchNow),
        () => foldHistory(db, tenant),
        {
          ofEntries: () => analyseHistory(db, 'entries').then(() => analyseHistory(db, 'related')),
          ofTallies: () => analyseHistory(db, 'tallies'),
        },
      ),
    ]),
  );
  const cursor = await pool.connect();
  try {
    await cursor.query('begin');
    await cursor.query('set local synchronize_seqscans = off');
    await cursor.query(
      `declare entries no scroll cursor for
         select tenant, round(extract(epoch from at) * 1000)::float8 as at, id, type, entity, entity_id, name, actor,
              actor_id, correlation, ip, related, paths
           from plain`,
    );
    const read = async () => (await cursor.query<PlainRow>(`fetch ${entriesAtOnce} from entries`)).rows;
    for (let rows = await read(); rows.length > 0; ) {
      const next = read();
      for (const [tenant, batch] of Map.groupBy(rows, (row) => row.tenant)) {
        await recorders.get(tenant)?.record(batch.map((row) => changeOf(row, members)));
      }
      rows = await next;
    }
    await cursor.query('commit');
  } finally {
    cursor.release();
  }
  for (const { finish } of recorders.values()) await finish();
}

function changeOf(row: PlainRow, { who = false, context = false }: DrawnMembers): Change {
  const { at, id, type, entity, entity_id: entityId, name, actor, related, paths } = row;
  return {
    identity: hash('md5', String(id), 'buffer'),
    ...{ at, type, entity, entityId, name, actor, related: related ?? [], paths: JSON.stringify(paths) },
    ...(who && row.actor_id !== null && { actorId: row.actor_id }),
    ...(who && { correlationId: row.correlation }),
    ...(context && row.ip !== null && { context: JSON.stringify({ ip: row.ip }) }),
  };
}
