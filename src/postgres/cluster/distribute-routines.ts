import type pg from 'pg';
import { OperatorError } from '../../core/operator-error.ts';
import { applyRoutines } from '../schema/apply-routines.ts';
import type { Schema } from '../schema/read-schema.ts';
import { dropShardRoutines, makeShardRoutines } from './make-shard-routines.ts';

/**
 * Makes the routines of a cluster those of the schema, on all nodes and for all shards. The caller is in a transaction, after
 * beginSequential, holds the lock of the ledger, and has distributed the tables.
 */
export async function applyDistributedRoutines(client: pg.ClientBase, schema: Schema): Promise<void> {
  if (await applyRoutines(client, schema)) {
    await distributeRoutines(client);
    await dropShardRoutines(client, 'all');
  }
  await makeShardRoutines(client, schema);
}

/**
 * Brings all routines of Annals to the workers. A call of one whose first parameter is `of_tenant` then runs on the
 * worker that has the tenant.
 */
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
      const message = cause instanceof Error ? cause.message : String(cause);
      throw new OperatorError(`The routine ${signature} cannot be distributed: ${message}`, { cause });
    }
  }
}
