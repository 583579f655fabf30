import type pg from 'pg';
import type { Metrics } from './metrics.ts';

/** Measures the connections of pools to the database. Pools of the same name are added up. */
export function measureConnections(metrics: Metrics, pools: Readonly<Record<string, readonly pg.Pool[]>>): void {
  metrics.beforeRead(() => {
    for (const [pool, ofName] of Object.entries(pools)) {
      const sum = (count: (of: pg.Pool) => number) => ofName.map(count).reduce((total, value) => total + value, 0);
      const idle = sum(({ idleCount }) => idleCount);
      metrics.set('annals_database_connections', { pool, state: 'idle' }, idle);
      metrics.set('annals_database_connections', { pool, state: 'used' }, sum(({ totalCount }) => totalCount) - idle);
      metrics.set(
        'annals_database_connections_max',
        { pool },
        sum(({ options }) => options.max),
      );
      metrics.set(
        'annals_database_connections_waiting',
        { pool },
        sum(({ waitingCount }) => waitingCount),
      );
    }
  });
}
