import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import type pg from 'pg';
import { OperatorError } from '../../core/errors.ts';
import type { Database } from '../../postgres/database.ts';
import { isDistributed } from '../../postgres/is-distributed.ts';
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
/** PostgreSQL's statistics, with the most common values of columns. */
const statistics = ['pg_catalog.pg_statistic', 'pg_catalog.pg_statistic_ext_data'];

/** A rewritten table, and for how many milliseconds it was locked. */
export interface VacuumedTable {
  readonly table: string;
  readonly locked: number;
}

/**
 * Rewrites tables with their indexes, one after the other, so that their files lose what was erased; in a cluster only
 * the tenant's shards. Locks each while rewriting it. Throws an OperatorError if PostgreSQL refuses, or if a snapshot
 * still sees what was erased. `changed`: tables other than those of entries; default: all that an erasure may change.
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

/** A worker keeps the tables of a tenant that was moved away for some seconds, and longer if it cannot drop them. */
async function dropWhatMovesLeft(db: Database): Promise<void> {
  await sql`call citus_cleanup_orphaned_resources()`.execute(db);
  const { rows } = await sql`select from pg_dist_cleanup limit 1`.execute(db);
  if (rows.length === 0) return;
  throw new OperatorError(
    'A worker still has a copy of a tenant that is being moved or was moved. The erasure is done elsewhere; run this again with --vacuum when no tenant is being moved',
  );
}

/** The workers of a cluster have their own catalogues; the coordinator vacuums only distributed tables there. */
async function vacuumOnWorkers(db: Database, table: string): Promise<void> {
  const { rows } = await sql<{ success: boolean }>`
    select success from run_command_on_workers(${`vacuum (full) ${table}`})`.execute(db);
  if (rows.every(({ success }) => success)) return;
  throw new OperatorError(`A worker has not rewritten ${table}. The erasure is done; run this again with --vacuum`);
}

interface Placement {
  readonly host: string;
  readonly port: number;
  readonly shard: string;
}

/** Rewrites the tenant's shard of a table on the worker itself: the coordinator would lock all shards of the table. */
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

/** The result of a command that a worker runs outside a transaction. `command` must not contain input. */
async function onWorker(db: Database, { host, port, shard }: Placement, command: string): Promise<string> {
  const { rows } = await sql<{ success: boolean; result: string }>`
    select success, result from master_run_on_worker(array[${host}::text], array[${port}::integer], array[${command}::text], false)`.execute(
    db,
  );
  const [answer] = rows;
  if (answer?.success === true) return answer.result;
  throw new OperatorError(
    `The worker ${host}:${port} has not rewritten ${shard}. The erasure is done; run this again with --vacuum`,
    { cause: answer?.result },
  );
}

function notRewritten(table: string): OperatorError {
  return new OperatorError(
    `PostgreSQL has not rewritten ${table}: the user of DATABASE_URL must own the database and its tables. The erasure is done; run this again with --vacuum`,
  );
}

async function vacuum(db: Database, table: string, options: string): Promise<VacuumedTable> {
  const before = await fileOf(db, table);
  const begun = performance.now();
  await sql`vacuum (${sql.raw(options)}) ${sql.table(table)}`.execute(db);
  const locked = Math.round(performance.now() - begun);
  // PostgreSQL only warns if the user may not.
  if ((await fileOf(db, table)) !== before) return { table, locked };
  throw notRewritten(table);
}

async function fileOf(db: Database, table: string): Promise<string | undefined> {
  const { rows } = await sql<{ file: string }>`select pg_relation_filepath(${table}::regclass) as file`.execute(db);
  return rows[0]?.file;
}

/** Milliseconds: the limit of the wait, and the interval of the checks. */
const maxWait = 60_000;
const checkEvery = 50;

/**
 * Waits until no snapshot sees what was deleted before this call: VACUUM FULL copies rows that one still sees. `slots`:
 * whether logical replication counts, which keeps rows of the catalogue only. Throws an OperatorError that names the
 * holder after a minute.
 */
export async function olderSnapshotsEnded(db: Database, { slots, wait = maxWait }: { slots: boolean; wait?: number }) {
  const { rows: now } = await sql<{ next: string }>`select pg_current_xact_id()::text as next`.execute(db);
  for (const end = performance.now() + wait; ; await sleep(checkEvery)) {
    // A lazy VACUUM's snapshot keeps no rows. While another database has an open transaction, new snapshots here are as
    // old.
    const { rows } = await sql<{ who: string }>`
      with old (since) as (select age(${now[0]?.next ?? null}::xid8::xid))
      select 'the connection ' || pid || ' of ' || coalesce(nullif(application_name, ''), backend_type) as who
        from pg_stat_activity a, old
        where pid <> pg_backend_pid() and (age(backend_xid) > since
            or age(backend_xmin) > since and (datname = current_database() or backend_type = 'walsender'))
          and not exists (select from pg_stat_progress_vacuum v where v.pid = a.pid)
      union all
      select 'the prepared transaction ' || gid from pg_prepared_xacts, old
        where database = current_database() and age(transaction) > since
      union all
      select 'the replication slot ' || slot_name from pg_replication_slots, old
        where age(xmin) > since or (${slots} and age(catalog_xmin) > since)
      union all
      select 'a transaction' where pg_snapshot_xmin(pg_current_snapshot()) <= ${now[0]?.next ?? null}::xid8
      limit 1`.execute(db);
    const [holder] = rows;
    if (holder === undefined) return;
    if (performance.now() > end) {
      throw new OperatorError(
        `${holder.who} still sees what was erased, so PostgreSQL would keep it in its files. The erasure is done; end that and run this again with --vacuum`,
      );
    }
  }
}
