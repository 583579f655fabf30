import type pg from 'pg';
import { messageOf, OperatorError } from '../../core/errors.ts';
import { applyRoutines, currentSchema } from '../schema/apply-routines.ts';
import { createForShard, type Schema } from '../schema/read-schema.ts';

/**
 * Applies the schema's routines to a cluster, on all nodes and for all shards. The caller is in a transaction, after
 * beginSequential, holds the lock of the ledger, and has distributed the tables.
 */
export async function applyDistributedRoutines(client: pg.ClientBase, schema: Schema): Promise<void> {
  if (await applyRoutines(client, schema)) {
    await distributeRoutines(client);
    await dropShardRoutines(client, 'all');
  }
  await makeShardRoutines(client, schema);
}

/** Distributes all routines of Annals. Those with a first parameter `of_tenant` then run on the tenant's worker. */
async function distributeRoutines(client: pg.ClientBase): Promise<void> {
  const { rows } = await client.query<{ signature: string; ofTenant: boolean }>(
    `select p.oid::regprocedure::text as signature, coalesce(p.proargnames[1] = 'of_tenant', false) as "ofTenant"
       from pg_proc p
       where p.pronamespace = current_schema()::regnamespace and p.prokind in ('f', 'p')
         and not exists (select from pg_depend d where d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e')
       order by p.oid`,
  );
  for (const { signature, ofTenant } of rows) {
    const where = ofTenant ? ", 'of_tenant', colocate_with => 'tenant', force_delegation => true" : '';
    try {
      await client.query(`select create_distributed_function($1${where})`, [signature]);
    } catch (cause) {
      throw new OperatorError(`The routine ${signature} cannot be distributed: ${messageOf(cause)}`, { cause });
    }
  }
}

interface Shard {
  /** The quoted name of the schema of its routines. */
  schema: string;
  exists: boolean;
  /** The names of the distributed tables, and of the tables of the shard. */
  tables: string[];
  ofShard: string[];
}

/**
 * Creates the routines of each new shard, in a schema of their own on all nodes, since shards may move to any node.
 * Drops those of shards that the cluster has split or merged. Creates none if the role may not create schemas; pages
 * then cost more. The caller is in a transaction, after beginSequential, and the tables are distributed.
 */
async function makeShardRoutines(
  client: pg.ClientBase,
  { shardRoutines }: Pick<Schema, 'shardRoutines'>,
): Promise<void> {
  await dropShardRoutines(client, 'of no shard');
  const { rows } = await client.query<{ may: boolean }>(
    `select has_database_privilege(current_database(), 'create') as may`,
  );
  if (rows[0]?.may !== true) return;
  const shards = await readShards(client);
  for (const { schema, exists, tables, ofShard } of shards) {
    if (exists) continue;
    await client.query(`create schema ${schema}`);
    const names = new Map(tables.map((name, index) => [name, ofShard[index] ?? name]));
    for (const routine of shardRoutines) {
      await client.query(createForShard(routine, shardRoutines, { schema, tables: names }));
    }
  }
}

/** Drops the routines of all shards, or of shards that no longer exist. */
async function dropShardRoutines(client: pg.ClientBase, which: 'all' | 'of no shard'): Promise<void> {
  // Their bodies use tables that only workers have.
  await client.query('set local check_function_bodies = off');
  const { rows } = await client.query<{ schema: string }>(
    `select n.nspname as schema from pg_namespace n
       where n.nspname ~ '^annals_shard_[0-9]+$'
         and ($1 = 'all' or not exists (select from pg_dist_shard s where n.nspname = 'annals_shard_' || s.shardid))`,
    [which],
  );
  for (const { schema } of rows) await client.query(`drop schema ${schema} cascade`);
}

async function readShards(client: pg.ClientBase): Promise<Shard[]> {
  const own = await currentSchema(client);
  const { rows } = await client.query<Shard>(
    `select 'annals_shard_' || s.shardid as schema, to_regnamespace('annals_shard_' || s.shardid) is not null as exists,
            array_agg(c.relname::text order by c.oid) as tables,
            array_agg($1 || '.' || regexp_replace(shard_name(c.oid, part.shardid), '^.*[.]', '') order by c.oid) as "ofShard"
       from pg_dist_shard s
       join pg_dist_partition root on root.logicalrelid = s.logicalrelid
       join pg_dist_partition p on p.colocationid = root.colocationid
       join pg_dist_shard part on part.logicalrelid = p.logicalrelid and part.shardminvalue = s.shardminvalue
       join pg_class c on c.oid = p.logicalrelid
       where s.logicalrelid = 'tenant'::regclass
       group by s.shardid order by s.shardid`,
    [own],
  );
  return rows;
}
