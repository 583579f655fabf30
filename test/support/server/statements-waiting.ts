import { inject } from 'vitest';
import type { TestDatabase } from './database.ts';

/**
 * The statements that wait for a lock, on whichever server they run: on a cluster the coordinator shows only that it
 * waits for a worker. Giving positions, folding and analysing are upkeep, work for no client, and are left out.
 */
export async function statementsWaiting({ pool }: TestDatabase): Promise<string[]> {
  const { rows } = await pool.query<{ query: string }>(
    `select query from ${activityView()}
       where datname = current_database() and state = 'active' and wait_event_type = 'Lock'
         and query not like '%change_fold%' and query not like '%change_position_%' and query not like '%pg_stat_user_tables%'`,
  );
  return rows.map(({ query }) => query);
}

/** The view of the statements of all servers. */
export function activityView(): 'pg_stat_activity' | 'citus_stat_activity' {
  return inject('cluster') === null ? 'pg_stat_activity' : 'citus_stat_activity';
}
