import type { Days } from '../../http/days.ts';
import type { TenantPool } from '../../postgres/connections/tenant-pool.ts';
import { addCounts, type CountingPool } from '../../postgres/tenants/tenant-counter.ts';

export type Measure = 'entries' | 'bytes' | 'requests' | 'inputTokens' | 'outputTokens';

export interface CountedMeasure {
  /** Days since 1970-01-01. */
  day: number;
  measure: Measure;
  amount: number;
}

/** The tenant's usage on these days, including entries not yet aggregated. One statement, so one snapshot. */
export async function readUsage(pool: TenantPool, tenant: string, days: Days): Promise<CountedMeasure[]> {
  const { rows } = await pool.query<{ day: number; measure: Measure; amount: number }>({
    name: 'usage_read',
    text: `
      select day, measure, sum(amount)::bigint as amount
        from (
          select u.day, u.measure, u.amount from usage_count u
            where u.tenant = $1 and u.day between $2::integer and $3::integer
          union all
          select d.day, part.measure, part.amount
            from change_delta d
            cross join lateral (values ('entries', cardinality(d.ats)::bigint), ('bytes', d.bytes)) as part (measure, amount)
            where d.tenant = $1 and d.day between $2::integer and $3::integer
        ) as counted
        group by day, measure`,
    values: [tenant, days.first, days.last],
  });
  return rows;
}

/** An increment of a tenant's usage on a day. */
export interface AddedMeasure extends CountedMeasure {
  tenant: string;
}

/**
 * Adds the increments, all or none, except those of deleted tenants. Rejects with OutcomeUnknown if the connection is
 * lost.
 */
export async function addMeasures(pool: CountingPool, added: readonly AddedMeasure[]): Promise<void> {
  await addCounts(pool, {
    name: 'usage_add',
    // Every writer uses the same order, to avoid deadlocks.
    text: `
      insert into usage_count as so_far (tenant, day, measure, amount)
        select t.tenant, used.day, used.measure, used.amount
          from unnest($1::text[], $2::integer[], $3::text[], $4::bigint[]) as used (tenant, day, measure, amount)
          join tenant t on t.tenant = used.tenant
          order by t.tenant, used.day, used.measure
        on conflict (tenant, day, measure) do update set amount = so_far.amount + excluded.amount`,
    values: [
      added.map(({ tenant }) => tenant),
      added.map(({ day }) => day),
      added.map(({ measure }) => measure),
      added.map(({ amount }) => amount),
    ],
  });
}
