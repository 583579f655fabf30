import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import { OperatorError } from '../../core/errors.ts';
import type { Database } from '../../postgres/database.ts';

/** Milliseconds: the limit of the wait, and the interval of the checks. */
const maxWait = 60_000;
const checkEvery = 50;

/**
 * Waits until no snapshot sees what was deleted before this call: VACUUM FULL copies rows that one still sees. `slots`:
 * whether logical replication counts, which keeps rows of the catalogue only. Throws an OperatorError that names the
 * holder after a minute.
 */
export async function olderSnapshotsEnded(db: Database, { slots, wait = maxWait }: { slots: boolean; wait?: number }) {
  const { rows: now } = await sql<{ next: string }>`select pg_current_xact_id()::text as next`.execute(db);
  for (const end = performance.now() + wait; ; await sleep(checkEvery)) {
    // A lazy VACUUM's snapshot keeps no rows. While another database has an open transaction, new snapshots here are as
    // old.
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
    const [holder] = rows;
    if (holder === undefined) return;
    if (performance.now() > end) {
      throw new OperatorError(
        `${holder.who} still sees what was erased, so PostgreSQL would keep it in its files. The erasure is done; end that and run this again with --vacuum`,
      );
    }
  }
}
