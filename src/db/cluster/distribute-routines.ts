import type pg from 'pg';
import { MigrationError } from '../schema/migration-error.ts';

/**
 * Brings all routines of Annals to the workers. A call of one whose first parameter is `of_tenant` then runs on the
 * worker that has the tenant. The caller is in a transaction, after beginSequential, and the tables are distributed.
 */
export async function distributeRoutines(client: pg.ClientBase): Promise<void> {
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
      throw new MigrationError(`The routine ${signature} cannot be distributed: ${message}`, { cause });
    }
  }
}
