import pg from 'pg';
import { onTestFinished } from 'vitest';
import type { Placement } from './cluster.ts';

/**
 * Asks a worker, in a test, which routines it would use for a tenant, and whether it has a table of the tenant's shard.
 */
export async function routinesOn(databaseUrl: string, { host, port }: Placement, tenant: string, begin = 'select') {
  const url = new URL(databaseUrl);
  url.host = `${host}:${port}`;
  const client = new pg.Client(url.href);
  await client.connect();
  onTestFinished(() => client.end());
  await client.query(begin);
  const call = async (routine: 'shard_routines' | 'shard_routines_to_write') => {
    const { rows } = await client.query<{ schema: string | null; copy: boolean }>(
      `select ${routine}($1) as schema,
              to_regclass(shard_name('tenant', get_shard_id_for_distribution_column('tenant', $1::text))) is not null as copy`,
      [tenant],
    );
    return rows[0];
  };
  return { client, call };
}
