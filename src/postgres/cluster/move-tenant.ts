import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { OperatorError } from '../../core/errors.ts';
import { isDistributed } from '../is-distributed.ts';

export interface Move {
  tenant: string;
  /** The workers, as `host:port`. Equal if the tenant was there already. */
  from: string;
  to: string;
  /** The number of tenants in the same shard, which moved along. */
  others: number;
}

// Milliseconds. A request has 30 seconds.
const maxWait = 60_000;
const pause = 500;

interface Worker {
  host: string;
  port: number;
}

/**
 * Moves the shards of a tenant to a worker of the cluster, while reads and writes continue. Takes as long as copying
 * the rows. Throws an OperatorError if the tenant or the worker does not exist, if the worker still has an earlier
 * copy, or if the move fails.
 */
export async function moveTenant(pool: pg.Pool, tenant: string, to: string): Promise<Move> {
  if (!(await isDistributed(pool))) throw new OperatorError('this database is not distributed over a cluster');
  const { rows: tenants } = await pool.query('select from tenant where tenant = $1', [tenant]);
  if (tenants.length === 0) throw new OperatorError(`there is no tenant ${tenant}`);
  const workers = await workersOf(pool);
  const target = workers.get(to);
  if (target === undefined)
    throw new OperatorError(`there is no worker ${to}; there is ${[...workers.keys()].join(', ')}`);
  const { shard, host, port } = await placeOf(pool, tenant);
  const from = `${host}:${port}`;
  const others = await othersIn(pool, tenant, shard);
  if (from !== to) {
    try {
      await whileCleaned(() =>
        pool.query(
          "select citus_move_shard_placement($1::bigint, $2::text, $3::integer, $4::text, $5::integer, 'force_logical')",
          [shard, host, port, target.host, target.port],
        ),
      );
    } catch (error) {
      // Citus has no SQLSTATE for a worker lost during a move: each step fails with its own message.
      if (!(error instanceof pg.DatabaseError)) throw error;
      const { host: hostNow, port: portNow } = await placeOf(pool, tenant);
      const [cause] = error.message.split('\n');
      throw new OperatorError(
        `the cluster could not move ${tenant} (${cause}). It is on ${hostNow}:${portNow}. Check that ${from} and ${to} run, then repeat the command`,
        { cause: error },
      );
    }
  }
  return { tenant, from, to, others };
}

/** Retries a move while the worker has an old copy, which the cluster drops once no transaction reads it. */
async function whileCleaned(move: () => Promise<unknown>): Promise<void> {
  const end = performance.now() + maxWait;
  for (;;) {
    try {
      await move();
      return;
    } catch (error) {
      const isLeft = error instanceof Error && /orphaned shard .* could not be cleaned up/.test(error.message);
      if (!isLeft) throw error;
      if (performance.now() > end) {
        throw new OperatorError(
          'a transaction still reads the copy of an earlier move, so the cluster cannot drop it. Nothing was moved; run this again later',
          { cause: error },
        );
      }
    }
    await sleep(pause);
  }
}

async function workersOf(pool: pg.Pool): Promise<Map<string, Worker>> {
  const { rows } = await pool.query<Worker>(
    `select nodename as host, nodeport as port from pg_dist_node
       where isactive and noderole = 'primary' and shouldhaveshards order by nodeid`,
  );
  return new Map(rows.map((worker) => [`${worker.host}:${worker.port}`, worker]));
}

async function placeOf(pool: pg.Pool, tenant: string): Promise<Worker & { shard: number }> {
  const { rows } = await pool.query<Worker & { shard: number }>(
    `select p.shardid as shard, n.nodename as host, n.nodeport as port
       from pg_dist_placement p join pg_dist_node n on n.groupid = p.groupid
       where p.shardid = get_shard_id_for_distribution_column('tenant', $1::text)`,
    [tenant],
  );
  const [place] = rows;
  if (place === undefined) throw new OperatorError(`the cluster has no place for ${tenant}`);
  return place;
}

async function othersIn(pool: pg.Pool, tenant: string, shard: number): Promise<number> {
  const { rows } = await pool.query<{ tenant: string }>('select tenant from tenant where tenant <> $1', [tenant]);
  const { rows: counted } = await pool.query<{ others: number }>(
    `select count(*) as others from unnest($1::text[]) as other (tenant)
       where get_shard_id_for_distribution_column('tenant', other.tenant) = $2`,
    [rows.map((row) => row.tenant), shard],
  );
  return counted[0]?.others ?? 0;
}
