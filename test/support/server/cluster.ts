import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { moveTenant as moveTenantTo } from '../../../src/postgres/cluster/move-tenant.ts';
import { createPool } from '../../../src/postgres/connections/pool.ts';
import { distribute } from '../../../src/postgres/migrate/distribute.ts';

/** A Citus cluster that the tests run on, in place of the embedded database. */
export interface TestCluster {
  /** The URL of a database on the coordinator. */
  readonly url: string;
  /** `host:port` of each worker. */
  readonly workers: readonly string[];
}

/** The cluster of CITUS_DATABASE_URL and CITUS_WORKERS (`host:port,host:port`). Undefined where neither is set. */
export function clusterOfEnvironment({
  CITUS_DATABASE_URL: url,
  CITUS_WORKERS: workers,
}: NodeJS.ProcessEnv): TestCluster | undefined {
  if (url === undefined && workers === undefined) return undefined;
  if (!url || !workers) throw new Error('CITUS_DATABASE_URL and CITUS_WORKERS must be set together');
  return { url, workers: workers.split(',') };
}

/** The URLs of a database on all nodes, the coordinator first. */
export function urlsOfNodes({ url, workers }: TestCluster, database?: string): string[] {
  const coordinator = new URL(url);
  return [coordinator.host, ...workers].map((host) => {
    const node = new URL(coordinator);
    node.host = host;
    if (database !== undefined) node.pathname = database;
    return node.href;
  });
}

/** Makes a database on all nodes and joins them to a cluster. Nothing of Annals is in it. */
export async function createClusterDatabase(cluster: TestCluster, name: string): Promise<string> {
  await onAllNodes(cluster, `drop database if exists ${name} with (force)`);
  await onAllNodes(cluster, `create database ${name} template template0`);
  for (const url of urlsOfNodes(cluster, name))
    await inDatabase(url, (client) => client.query('create extension citus'));
  const [url = ''] = urlsOfNodes(cluster, name);
  const { hostname, port } = new URL(url);
  await inDatabase(url, async (client) => {
    await client.query('select citus_set_coordinator_host($1, $2)', [hostname, Number(port)]);
    for (const worker of cluster.workers) {
      const [host, workerPort] = worker.split(':');
      await client.query('select citus_add_node($1, $2)', [host, Number(workerPort)]);
    }
  });
  return url;
}

/** Makes a template of a distributed database: its clones on all nodes are a cluster as well. */
export async function createClusterTemplate(cluster: TestCluster, name: string): Promise<void> {
  const pool = createPool(await createClusterDatabase(cluster, name), { maximum: 2 });
  try {
    await distribute(pool, { shards: 4 });
  } finally {
    await pool.end();
  }
}

/** Clones a database on all nodes, or makes an empty one on the coordinator alone. */
export async function cloneOnCluster(cluster: TestCluster, name: string, template: string): Promise<void> {
  const nodes = template === 'template1' ? urlsOfNodes(cluster).slice(0, 1) : urlsOfNodes(cluster);
  await Promise.all(
    nodes.map((url) =>
      inDatabase(url, async (client) => {
        for (let left = 100; ; left -= 1) {
          // The cluster keeps a session of its own in every database, and a template must have none.
          if (template !== 'template1') {
            await client.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [template]);
          }
          try {
            await client.query(`create database ${name} template ${template}`);
            return;
          } catch (error) {
            if (left === 0 || !isInUse(error)) throw error;
          }
          await sleep(50);
        }
      }),
    ),
  );
}

/** Drops a database on all nodes. The cluster's own session there may take longer than PostgreSQL waits for its end. */
export async function dropOnCluster(cluster: TestCluster, name: string): Promise<void> {
  for (let left = 20; ; left -= 1) {
    try {
      await onAllNodes(cluster, `drop database if exists ${name} with (force)`);
      return;
    } catch (error) {
      if (left === 0 || !isInUse(error)) throw error;
    }
    await sleep(50);
  }
}

export async function onAllNodes(cluster: TestCluster, statement: string): Promise<void> {
  for (const url of urlsOfNodes(cluster)) await inDatabase(url, (client) => client.query(statement));
}

async function inDatabase(url: string, work: (client: pg.Client) => Promise<unknown>): Promise<void> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    await work(client);
  } finally {
    await client.end();
  }
}

function isInUse(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === '55006';
}

/** Where a tenant is. */
export interface Placement {
  readonly shard: number;
  readonly host: string;
  readonly port: number;
}

/**
 * The place of the rows that a tenant has in a table. All of its tables are on one worker, each with a shard of its
 * own.
 */
export async function placementOf(pool: pg.Pool, tenant: string, table = 'tenant'): Promise<Placement> {
  const { rows } = await pool.query<Placement>(
    `select p.shardid as shard, n.nodename as host, n.nodeport as port
       from pg_dist_placement p join pg_dist_node n on n.groupid = p.groupid
       where p.shardid = get_shard_id_for_distribution_column($2::regclass, $1::text)`,
    [tenant, table],
  );
  const [placement] = rows;
  if (placement === undefined) throw new Error(`the cluster has no place for ${tenant}`);
  return placement;
}

/** Moves the shard of a tenant to the other one of two workers. Returns where it was. */
export async function moveTenant(cluster: TestCluster, pool: pg.Pool, tenant: string): Promise<Placement> {
  const from = await placementOf(pool, tenant);
  const to = cluster.workers.find((worker) => worker !== `${from.host}:${from.port}`) ?? '';
  for (let left = 100; ; left -= 1) {
    try {
      await moveTenantTo(pool, tenant, to);
      return from;
    } catch (error) {
      // The slots of a worker have one name in all databases, and another test may move at the same time.
      const isOther = error instanceof Error && /replication slot .* already exists/.test(error.message);
      if (!isOther || left === 0) throw error;
    }
    await sleep(200);
  }
}

/** The URL of a database of the cluster on the worker that has the tenant. */
export async function workerUrlOf(url: string, pool: pg.Pool, tenant: string): Promise<string> {
  const { host, port } = await placementOf(pool, tenant);
  const worker = new URL(url);
  worker.host = `${host}:${port}`;
  return worker.href;
}
