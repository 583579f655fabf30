import { CompiledQuery } from 'kysely';
import type { Database } from '../../postgres/database.ts';

/** What has happened to the positions of a tenant. */
export interface News {
  readonly tenant: string;
  /** The newest position. Null: there is none. The row that has it does not tell: a round may write it anew with the same begin. */
  readonly newest: number | null;
  /** Whether committed changes have no position yet. In a cluster nobody looks, and upkeep gives positions. */
  readonly isDue: boolean;
}

/**
 * Looks for new positions of these tenants, and for changes without one, in one statement. It reads by indexes: not what an old
 * snapshot keeps of rows that are folded, as `change_position_give` explains.
 */
export async function readNews(db: Database, tenants: readonly string[], isDistributed: boolean): Promise<News[]> {
  const { rows } = await db.executeQuery<News>(
    CompiledQuery.raw(isDistributed ? newsOfCluster : newsOfServer, [tenants]),
  );
  return rows;
}

const newsOfCluster = `
  select p.tenant, p.first + cardinality(p.fingerprints) - 1 as newest, false as "isDue"
    from (select c.tenant, max(c.first) as first from change_position c where c.tenant = any ($1::text[]) group by c.tenant) as last
    join change_position p on p.tenant = last.tenant and p.first = last.first
    where p.tenant = any ($1::text[])`;

const unnumbered = 'select from change_delta d where d.tenant = f.tenant and d.position is null';
const newsOfServer = `
  select f.tenant, p.newest,
         case when p.snapshot is null or p.placement is not null then exists (${unnumbered})
           else exists (${unnumbered} and d.transaction >= pg_snapshot_xmax(p.snapshot))
             or exists (select from pg_snapshot_xip(p.snapshot) as seen (id)
               cross join lateral (${unnumbered} and d.transaction = seen.id offset 0) as running)
             or exists (${unnumbered} and d.transaction is null) end as "isDue"
    from unnest($1::text[]) as f (tenant)
    left join lateral (
      select c.first + cardinality(c.fingerprints) - 1 as newest, c.snapshot, c.placement from change_position c
        where c.tenant = f.tenant order by c.first desc limit 1
    ) p on true`;
