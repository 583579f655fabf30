import type pg from 'pg';
import type { SlotWatch } from './slot-watch.ts';
import type { TableWatch } from './table-watch.ts';

/** Milliseconds between two heartbeats. */
export const defaultHeartbeat = 10_000;

/** Milliseconds between two looks whether the definitions of tables changed. */
const tablesInterval = 1_000;

/**
 * Moves the slot of an idle database on, and has its size looked at. A heartbeat is a transactional message in the source's log: it comes
 * through the stream like every transaction, is recorded in the position, and is acknowledged. So the source need not keep the log of tables
 * that are not captured. `client` is a connection for statements. The caller calls the result often: where it is time, it sends a
 * heartbeat and looks at the slot and the tables. It throws a GapError. Each second it looks whether the published tables changed, because
 * a migration may have made one unwritable.
 */
export function watchSource(
  client: pg.Client,
  slotWatch: SlotWatch,
  tables: TableWatch,
  interval = defaultHeartbeat,
): () => Promise<void> {
  let next = performance.now() + interval;
  let nextTables = performance.now();
  return async () => {
    const time = performance.now();
    if (time < next) {
      if (time < nextTables) return;
      nextTables = time + tablesInterval;
      await tables.lookIfChanged();
      return;
    }
    next = time + interval;
    await client.query(`select pg_logical_emit_message(true, 'annals.heartbeat', '')`);
    await slotWatch.look(client);
    await tables.look();
  };
}
