import pg from 'pg';

/** A statement reached a worker from which the tenant was just moved. It had no effect and can be retried. */
export class TenantMoved extends Error {
  constructor(options: { cause: unknown }) {
    super('The cluster has just moved the tenant to another worker.', options);
    this.name = 'TenantMoved';
  }
}

/**
 * Whether an error of the driver may mean that a statement reached a worker that no longer has the tenant, without
 * effect. Citus has no SQLSTATE for it, and says the same of a routine that reads what its worker never had.
 */
export function mayBeMoved(error: unknown): boolean {
  if (error instanceof TenantMoved) return true;
  return (
    error instanceof pg.DatabaseError && error.message === 'cannot execute a distributed query from a query on a shard'
  );
}

/** Whether the cluster is moving a tenant or has just done so: the coordinator lists tables to drop after a move. */
export async function hasMovedTenants(pool: pg.Pool): Promise<boolean> {
  const { rows } = await pool.query<{ moved: boolean }>('select exists (select from pg_dist_cleanup) as moved');
  return rows[0]?.moved === true;
}
