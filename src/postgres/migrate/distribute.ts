import type pg from 'pg';
import { OperatorError } from '../../core/errors.ts';
import { applyDistributedRoutines } from '../cluster/distribute-routines.ts';
import {
  beginSequential,
  type DistributeTablesOptions,
  distributeTables,
  raiseNumbers,
} from '../cluster/distribute-tables.ts';
import { whileAnnounced } from '../schema/announce-change.ts';
import { lockLedger } from '../schema/ledger.ts';
import { packageSchema, readSchema, type SchemaFolders } from '../schema/read-schema.ts';
import { inPoolTransaction } from '../transaction.ts';
import { migrate } from './migrate.ts';

interface Distribution {
  /** The tables that this call distributed. */
  tables: string[];
  shards: number;
  /** The number of shards with routines of their own (docs/decisions/cluster.md). */
  shardsWithRoutines: number;
  /** The workers that have shards, as `host:port`. */
  workers: string[];
}

const minMajor = 12;

/**
 * Migrates the database, and distributes it over the workers of its Citus cluster, by tenant, in one transaction: on
 * failure, nothing is distributed. Idempotent. Throws an OperatorError if the database is not the coordinator of a
 * cluster with workers. The pool must allow 2 connections.
 */
export async function distribute(
  pool: pg.Pool,
  options: DistributeTablesOptions & { folders?: SchemaFolders } = {},
): Promise<Distribution> {
  await checkCoordinator(pool);
  const folders = options.folders ?? packageSchema();
  await migrate(pool, folders);
  const schema = await readSchema(folders, 'distributed');
  let tables: string[] = [];
  await whileAnnounced(pool, schema, async () => {
    await inPoolTransaction(pool, async (client) => {
      await beginSequential(client);
      await lockLedger(client);
      tables = await distributeTables(client, options);
      await raiseNumbers(client);
      await applyDistributedRoutines(client, schema);
    });
  });
  return { tables, ...(await readShards(pool)) };
}

async function checkCoordinator(pool: pg.Pool): Promise<void> {
  const { rows } = await pool.query<{ version: string }>(
    `select extversion as version from pg_extension where extname = 'citus'`,
  );
  const version = rows[0]?.version;
  if (version === undefined) {
    throw new OperatorError(
      'DATABASE_URL names no coordinator of a Citus cluster: the extension citus is not in this database',
    );
  }
  if (Number.parseInt(version, 10) < minMajor) {
    throw new OperatorError(`The cluster has Citus ${version}; Annals needs ${minMajor} or later`);
  }
  const { rows: nodes } = await pool.query<{ group: number; workers: number }>(
    `select (select groupid from pg_dist_local_group) as "group",
            (select count(*) from pg_dist_node where isactive and noderole = 'primary' and shouldhaveshards) as workers`,
  );
  const [node] = nodes;
  if (node?.group !== 0) {
    throw new OperatorError('DATABASE_URL names a worker of the Citus cluster; name its coordinator');
  }
  if (node.workers === 0) {
    throw new OperatorError('The Citus cluster has no worker that takes shards; add one with citus_add_node');
  }
}

async function readShards(pool: pg.Pool): Promise<Omit<Distribution, 'tables'>> {
  const { rows } = await pool.query<Omit<Distribution, 'tables'>>(
    `select count(*) as shards,
            count(*) filter (where to_regnamespace('annals_shard_' || shard.shardid) is not null) as "shardsWithRoutines",
            array_agg(distinct node.nodename || ':' || node.nodeport) as workers
       from pg_dist_shard shard
       join pg_dist_placement placement on placement.shardid = shard.shardid
       join pg_dist_node node on node.groupid = placement.groupid
       where shard.logicalrelid = 'tenant'::regclass`,
  );
  return rows[0] ?? { shards: 0, shardsWithRoutines: 0, workers: [] };
}
