import pg from 'pg';
import { inject } from 'vitest';
import type { TestDatabase } from './database.ts';

/**
 * Locks tables, so that every statement that reads or writes them waits until `release` is called. On a cluster the
 * routines of a shard read its own tables, so these are locked on each worker too.
 */
export async function lockTables(
  { pool, url }: TestDatabase,
  tables: readonly string[],
): Promise<{ release(): Promise<void> }> {
  const clients: pg.Client[] = [];
  const lock = async (server: string, names: readonly string[], options?: string) => {
    const client = new pg.Client({ connectionString: server, options });
    await client.connect();
    clients.push(client);
    await client.query(`begin; lock table ${names.join(', ')} in access exclusive mode`);
  };
  const release = async () => {
    await Promise.all(clients.splice(0).map((client) => client.end()));
  };
  try {
    await lock(url, tables);
    if (inject('cluster') !== null) {
      const { rows } = await pool.query<{ host: string; shards: string[] }>(
        `select n.nodename || ':' || n.nodeport as host, array_agg(shard_name(s.logicalrelid, s.shardid)) as shards
           from pg_dist_shard s join pg_dist_placement p on p.shardid = s.shardid join pg_dist_node n on n.groupid = p.groupid
           where s.logicalrelid = any ($1::text[]::regclass[]) group by 1`,
        [tables],
      );
      for (const { host, shards } of rows) {
        const worker = new URL(url);
        worker.host = host;
        await lock(worker.href, shards, '-c citus.enable_manual_changes_to_shards=on');
      }
    }
  } catch (error) {
    await release();
    throw error;
  }
  return { release };
}
