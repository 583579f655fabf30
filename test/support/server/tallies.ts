import type pg from 'pg';

/** Leaves a tenant's tallies as a version left them that had none by type. No fold is at work meanwhile. */
export async function withoutTalliesByType(pool: pg.Pool, tenant: string): Promise<void> {
  const client = await pool.connect();
  try {
    await client.query('begin');
    await client.query(`select pg_advisory_xact_lock(hashtextextended('change_fold ' || $1, 0))`, [tenant]);
    await client.query('update change_folded set folds = folds + 1 where tenant = $1', [tenant]);
    await client.query('delete from change_tally where tenant = $1 and kind < 0', [tenant]);
    await client.query(
      `insert into change_type_backlog (tenant, level, bucket) values ($1, 4, 0)
         on conflict (tenant) do update set level = excluded.level, bucket = excluded.bucket`,
      [tenant],
    );
    await client.query('commit');
  } finally {
    client.release();
  }
}
