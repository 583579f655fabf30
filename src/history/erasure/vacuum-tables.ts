import { sql } from 'kysely';
import type pg from 'pg';
import { OperatorError } from '../../core/errors.ts';
import type { Database } from '../../postgres/database.ts';
import { isDistributed } from '../../postgres/is-distributed.ts';
import { olderSnapshotsEnded } from './older-snapshots.ts';
import { places } from './places.ts';

/** Tables that an erasure of entries rewrites. */
const tablesOfEntries = [
  'change_entry',
  'change_related',
  'change_actor',
  'change_delta',
  'change_document',
  'change_recorder',
  'proof_leaf',
  // An older version of a row has salts of what was erased later.
  'proof_redaction',
  'delivery_waiting',
];
/** What PostgreSQL knows of values: the commonest ones of columns. */
const statistics = ['pg_catalog.pg_statistic', 'pg_catalog.pg_statistic_ext_data'];

/** A table that was rewritten, and the milliseconds for which nobody could use it. */
export interface VacuumedTable {
  readonly table: string;
  readonly locked: number;
}

/**
 * Rewrites tables with their indexes, one after the other, so that their files have nothing any more of what was erased; in a cluster only the
 * shards that have the tenant. A table, or shard, is locked while it is rewritten. Throws an OperatorError where PostgreSQL does not do
 * it, or where somebody still sees what was erased. `changed`: tables other than those of entries; left out: all that an erasure may change.
 */
export async function* vacuumTables(
  { db, pool }: { db: Database; pool: pg.Pool },
  tenant: string,
  changed?: readonly string[],
): AsyncGenerator<VacuumedTable, void> {
  const isSearched = ([, columns]: [string, (typeof places)[string]]) =>
    Object.values(columns).some(([does]) => does !== 'none');
  const others =
    changed ??
    Object.entries(places)
      .filter(isSearched)
      .map(([table]) => table);
  const isCluster = await isDistributed(pool);
  if (isCluster) await dropWhatMovesLeft(db);
  await olderSnapshotsEnded(db, { slots: false });
  for (const table of new Set([...tablesOfEntries, ...others])) {
    yield isCluster ? await vacuumShard(db, tenant, table) : await vacuum(db, table, 'full, analyze');
  }
  await olderSnapshotsEnded(db, { slots: true });
  for (const table of statistics) {
    yield await vacuum(db, table, 'full');
    if (isCluster) await vacuumOnWorkers(db, table);
  }
}

/** For some seconds a worker keeps the tables, and their statistics, of a tenant that was moved away; longer where it cannot drop them. */
async function dropWhatMovesLeft(db: Database): Promise<void> {
  await sql`call citus_cleanup_orphaned_resources()`.execute(db);
  const { rows } = await sql`select from pg_dist_cleanup limit 1`.execute(db);
  if (rows.length === 0) return;
  throw new OperatorError(
    'A worker still has a copy of a tenant that is moved or was moved. What was erased elsewhere is erased; run this again with --vacuum when no tenant is moved',
  );
}

/** The workers of a cluster have values of their own, and the coordinator vacuums there what is distributed alone. */
async function vacuumOnWorkers(db: Database, table: string): Promise<void> {
  const { rows } = await sql<{ success: boolean }>`
    select success from run_command_on_workers(${`vacuum (full) ${table}`})`.execute(db);
  if (rows.every(({ success }) => success)) return;
  throw new OperatorError(
    `A worker has not rewritten ${table}. What was erased is erased; run this again with --vacuum`,
  );
}

interface Placement {
  readonly host: string;
  readonly port: number;
  readonly shard: string;
}

/** Rewrites the shard of a table that has the tenant, on the worker itself: through the coordinator all shards of the table would be locked, one after the other. */
async function vacuumShard(db: Database, tenant: string, table: string): Promise<VacuumedTable> {
  const { rows: placements } = await sql<Placement>`
    select n.nodename as host, n.nodeport as port, shard_name(s.logicalrelid, s.shardid) as shard
      from pg_dist_shard s
      join pg_dist_placement p on p.shardid = s.shardid and p.shardstate = 1
      join pg_dist_node n on n.groupid = p.groupid and n.noderole = 'primary'
      where s.shardid = get_shard_id_for_distribution_column(${table}::regclass, ${tenant}::text)`.execute(db);
  const begun = performance.now();
  for (const placement of placements) {
    const fileOfShard = () => onWorker(db, placement, `select pg_relation_filepath('${placement.shard}')`);
    const before = await fileOfShard();
    await onWorker(db, placement, `vacuum (full, analyze) ${placement.shard}`);
    if ((await fileOfShard()) === before) throw notRewritten(placement.shard);
  }
  return { table, locked: Math.round(performance.now() - begun) };
}

/** The result of a command that a worker runs outside of a transaction; `command` has names from catalogues of the cluster alone. */
async function onWorker(db: Database, { host, port, shard }: Placement, command: string): Promise<string> {
  const { rows } = await sql<{ success: boolean; result: string }>`
    select success, result from master_run_on_worker(array[${host}::text], array[${port}::integer], array[${command}::text], false)`.execute(
    db,
  );
  const [answer] = rows;
  if (answer?.success === true) return answer.result;
  throw new OperatorError(
    `The worker ${host}:${port} has not rewritten ${shard}. What was erased is erased; run this again with --vacuum`,
    { cause: answer?.result },
  );
}

function notRewritten(table: string): OperatorError {
  return new OperatorError(
    `PostgreSQL has not rewritten ${table}: the user of DATABASE_URL has to own the database and its tables. What was erased is erased; run this again with --vacuum`,
  );
}

async function vacuum(db: Database, table: string, options: string): Promise<VacuumedTable> {
  const before = await fileOf(db, table);
  const begun = performance.now();
  await sql`vacuum (${sql.raw(options)}) ${sql.table(table)}`.execute(db);
  const locked = Math.round(performance.now() - begun);
  // PostgreSQL only warns where the user may not.
  if ((await fileOf(db, table)) !== before) return { table, locked };
  throw notRewritten(table);
}

async function fileOf(db: Database, table: string): Promise<string | undefined> {
  const { rows } = await sql<{ file: string }>`select pg_relation_filepath(${table}::regclass) as file`.execute(db);
  return rows[0]?.file;
}
