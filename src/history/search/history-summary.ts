import { sql } from 'kysely';
import type { Database } from '../../postgres/database.ts';

/** What retention keeps of a tenant's history. */
export interface HistorySummary {
  readonly entries: number;
  /** Milliseconds since 1970; null without entries. */
  readonly oldest: number | null;
  readonly newest: number | null;
}

export interface TenantSummary extends HistorySummary {
  readonly name: string;
  readonly createdAt: Date;
}

const tenantsAtOnce = 1_000;
/** Concurrent statements for tenants with a retention. */
const limitedAtOnce = 4;

/**
 * All tenants by name, with exact numbers from the tallies, whose cost is independent of a history's length. One
 * statement reads a thousand tenants. A tenant with a retention takes a statement of its own, because its oldest cell
 * of tallies counts entries that are gone.
 */
export async function* summariseTenants(db: Database, now: number): AsyncGenerator<TenantSummary, void> {
  for (let after = ''; ; ) {
    const { rows } = await sql<TenantSummary & { isLimited: boolean }>`
      select t.tenant as name, t.created_at as "createdAt", retention.is_limited as "isLimited",
             tallied.entries + pending.entries as entries, found.oldest, found.newest
        from tenant t
        cross join lateral (
          select count(*) > 0 as is_limited from change_retention r where r.tenant = t.tenant
        ) as retention
        cross join lateral (
          select coalesce(sum(c.upto[cardinality(c.upto)]), 0)::bigint as entries
            from change_tally c where c.tenant = t.tenant and c.level = 0 and c.actor = 0 and c.kind = 0
        ) as tallied
        cross join lateral (
          select coalesce(sum(cardinality(d.ats)), 0)::bigint as entries from change_delta d where d.tenant = t.tenant
        ) as pending
        cross join lateral (
          select min(e.at) as oldest, max(e.at) as newest from change_entry e where e.tenant = t.tenant
        ) as found
        where t.tenant > ${after}
        order by t.tenant limit ${sql.lit(tenantsAtOnce)}`.execute(db);
    for (let place = 0; place < rows.length; place += limitedAtOnce) {
      const portion = rows.slice(place, place + limitedAtOnce);
      yield* await Promise.all(
        portion.map(async ({ isLimited, ...summary }) =>
          isLimited ? { ...summary, ...(await summariseHistory(db, summary.name, now)) } : summary,
        ),
      );
    }
    const last = rows.at(-1);
    if (last === undefined || rows.length < tenantsAtOnce) return;
    after = last.name;
  }
}

async function summariseHistory(db: Database, tenant: string, now: number): Promise<HistorySummary> {
  const { rows } = await sql<HistorySummary>`
    select entries, oldest, newest from change_summary(${tenant}, ${now}::bigint)`.execute(db);
  return rows[0] ?? { entries: 0, oldest: null, newest: null };
}
