import pg from 'pg';

/** A statement reached a worker from which the cluster has just moved the tenant. It did nothing, and may be sent again. */
export class TenantMoved extends Error {
  constructor(options: { cause: unknown }) {
    super('The cluster has just moved the tenant to another worker.', options);
    this.name = 'TenantMoved';
  }
}

/**
 * Whether an error of the driver may mean that a statement reached a worker which no longer has the tenant. Nothing was
 * done. Citus has no SQLSTATE of its own for it, and says the same of a routine that reads what its worker never had.
 */
export function mayBeMoved(error: unknown): boolean {
  if (error instanceof TenantMoved) return true;
  return (
    error instanceof pg.DatabaseError && error.message === 'cannot execute a distributed query from a query on a shard'
  );
}

/**
 * Whether the cluster moves tenants or moved one in the last seconds: Citus lists the tables that it will drop after a
 * move. Only a coordinator of Citus has that list.
 */
export async function hasMovedTenants(pool: pg.Pool): Promise<boolean> {
  const { rows } = await pool.query<{ moved: boolean }>('select exists (select from pg_dist_cleanup) as moved');
  return rows[0]?.moved === true;
}
