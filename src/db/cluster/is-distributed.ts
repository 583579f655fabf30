import type pg from 'pg';

/** Whether the tables of tenants are distributed over the workers of a Citus cluster. */
export async function isDistributed(client: pg.ClientBase | pg.Pool): Promise<boolean> {
  // The catalogue of Citus is there where its extension is.
  const { rows } = await client.query<{ cluster: boolean }>(
    `select to_regclass('pg_catalog.pg_dist_partition') is not null and to_regclass('tenant') is not null as cluster`,
  );
  if (rows[0]?.cluster !== true) return false;
  const { rows: found } = await client.query<{ distributed: boolean }>(
    `select exists (select from pg_catalog.pg_dist_partition where logicalrelid = 'tenant'::regclass) as distributed`,
  );
  return found[0]?.distributed === true;
}
