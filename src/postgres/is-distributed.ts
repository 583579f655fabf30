import type pg from 'pg';

/** Whether the tables of tenants are distributed over the workers of a Citus cluster. */
export async function isDistributed(client: pg.ClientBase | pg.Pool): Promise<boolean> {
  // The catalogue exists with the extension of Citus.
  const { rows } = await client.query<{ cluster: boolean }>(
    `select to_regclass('pg_catalog.pg_dist_partition') is not null and to_regclass('tenant') is not null as cluster`,
  );
  if (rows[0]?.cluster !== true) return false;
  const { rows: found } = await client.query<{ distributed: boolean }>(
    `select exists (select from pg_catalog.pg_dist_partition where logicalrelid = 'tenant'::regclass) as distributed`,
  );
  return found[0]?.distributed === true;
}

/**
 * Whether the database has the sequence of a distributed one without distributed tables. Such a copy has routines that
 * expect shards, numbers that its identity columns would reuse, and transaction ids of the workers.
 */
export async function isCopyOfCluster(client: pg.ClientBase | pg.Pool): Promise<boolean> {
  const { rows } = await client.query<{ numbered: boolean }>(
    `select to_regclass('change_number') is not null as numbered`,
  );
  // Another process may just have distributed it.
  return rows[0]?.numbered === true && !(await isDistributed(client));
}
