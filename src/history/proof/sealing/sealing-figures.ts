import { sql } from 'kysely';
import type { Database } from '../../../postgres/database.ts';
import { tenantsWith } from '../../../postgres/tenants/tenants-with.ts';
import { tenantsWithLog } from '../tree/log-store.ts';

/** How far the newest checkpoints are behind, of the tenant that is farthest. */
export interface SealingLag {
  readonly positions: number;
  /** Since the oldest change without a checkpoint was recorded. */
  readonly seconds: number;
}

/**
 * Reads by indexes, of each tenant the newest position and the first one that no checkpoint has. Undefined where no history is sealed, and in a
 * cluster, which would refuse the statement.
 */
export async function readSealingLag(db: Database): Promise<SealingLag | undefined> {
  const { rows: found } = await sql<{ cluster: boolean }>`
    select to_regclass('pg_catalog.pg_dist_partition') is not null as cluster`.execute(db);
  if (found[0]?.cluster === true || (await tenantsWith(db, tenantsWithLog)).length === 0) return undefined;
  const { rows } = await sql<SealingLag>`
    select coalesce(max(greatest(n.last - coalesce(l.size, 0), 0)), 0) as positions,
           coalesce(max(case when n.last > coalesce(l.size, 0) then
             greatest(extract(epoch from statement_timestamp()) - p.recorded[coalesce(l.size, 0) + 2 - p.first] / 1000.0, 0)
             end), 0)::double precision as seconds
      from tenant t
      left join proof_log l on l.tenant = t.tenant and l.ended is null
      cross join lateral (
        select c.first + cardinality(c.ats) - 1 as last from change_position c
          where c.tenant = t.tenant order by c.first desc limit 1
      ) n
      left join lateral (
        select c.first, c.recorded from change_position c
          where c.tenant = t.tenant and c.first <= coalesce(l.size, 0) + 1 order by c.first desc limit 1
      ) p on true`.execute(db);
  return rows[0];
}
