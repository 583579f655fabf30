import type { Database } from '../../postgres/database.ts';
import { rowsOfAll } from '../../postgres/tenants/tenants.ts';

/** How far the newest checkpoints are behind, of the tenant that is farthest. */
export interface SealingLag {
  readonly positions: number;
  /** Since the oldest change without a checkpoint was recorded. */
  readonly seconds: number;
}

// By indexes: of each tenant the newest position, and the first one that no checkpoint has.
const lagOfTenants = `
  select exists (select from %2$s where ended is null) as sealed,
         coalesce(max(greatest(n.last - coalesce(l.size, 0), 0)), 0) as positions,
         coalesce(max(case when n.last > coalesce(l.size, 0) then
           greatest(extract(epoch from statement_timestamp()) - p.recorded[coalesce(l.size, 0) + 2 - p.first] / 1000.0, 0)
           end), 0) as seconds
    from %1$s t
    left join %2$s l on l.tenant = t.tenant and l.ended is null
    cross join lateral (
      select c.first + cardinality(c.fingerprints) - 1 as last from %3$s c where c.tenant = t.tenant order by c.first desc limit 1
    ) n
    left join lateral (
      select c.first, c.recorded from %3$s c
        where c.tenant = t.tenant and c.first <= coalesce(l.size, 0) + 1 order by c.first desc limit 1
    ) p on true`;

/** Undefined where no history is sealed. */
export async function readSealingLag(db: Database): Promise<SealingLag | undefined> {
  const tables = ['tenant', 'proof_log', 'change_position'];
  const found = await rowsOfAll<SealingLag & { sealed: boolean }>(db, lagOfTenants, tables);
  if (!found.some(({ sealed }) => sealed)) return undefined;
  return {
    positions: Math.max(...found.map(({ positions }) => positions)),
    seconds: Math.max(...found.map(({ seconds }) => seconds)),
  };
}
