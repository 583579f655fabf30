import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import { OperatorError } from '../../core/errors.ts';
import type { Database } from '../../postgres/database.ts';

/** Milliseconds that is waited for others at most, and between two looks. */
const maxWait = 60_000;
const look = 50;

/**
 * Waits until nobody can see any more what was deleted before this call: VACUUM FULL copies rows that a snapshot still sees. `slots`: whether
 * logical replication counts, which keeps rows of the catalogue alone. Throws an OperatorError that names who still sees them after a minute.
 */
export async function olderSnapshotsEnded(db: Database, { slots, wait = maxWait }: { slots: boolean; wait?: number }) {
  const { rows: now } = await sql<{ next: string }>`select pg_current_xact_id()::text as next`.execute(db);
  for (const end = performance.now() + wait; ; await sleep(look)) {
    // A lazy VACUUM has a snapshot that keeps no rows. While a transaction of another database goes on, new snapshots here are as old as it.
    const { rows } = await sql<{ who: string }>`
      with old (since) as (select age(${now[0]?.next ?? null}::xid8::xid))
      select 'the connection ' || pid || ' of ' || coalesce(nullif(application_name, ''), backend_type) as who
        from pg_stat_activity a, old
        where pid <> pg_backend_pid() and (age(backend_xid) > since
            or age(backend_xmin) > since and (datname = current_database() or backend_type = 'walsender'))
          and not exists (select from pg_stat_progress_vacuum v where v.pid = a.pid)
      union all
      select 'the prepared transaction ' || gid from pg_prepared_xacts, old
        where database = current_database() and age(transaction) > since
      union all
      select 'the replication slot ' || slot_name from pg_replication_slots, old
        where age(xmin) > since or (${slots} and age(catalog_xmin) > since)
      union all
      select 'a transaction' where pg_snapshot_xmin(pg_current_snapshot()) <= ${now[0]?.next ?? null}::xid8
      limit 1`.execute(db);
    const [held] = rows;
    if (held === undefined) return;
    if (performance.now() > end) {
      throw new OperatorError(
        `${held.who} still sees what was erased, so PostgreSQL would keep it in its files. What was erased is erased; end that and run this again with --vacuum`,
      );
    }
  }
}
