import type pg from 'pg';

/**
 * Cancels the builds of indexes in a database. In a cluster only the coordinator's statement shows that there is one.
 */
export async function cancelIndexBuilds(pool: pg.Pool): Promise<void> {
  await pool.query(
    `select pg_cancel_backend(pid) from pg_stat_activity
       where datname = current_database() and state = 'active' and query like 'create index concurrently%'`,
  );
}
