import pg from 'pg';
import type { TenantPool } from '../db/tenant-pool.ts';
import type { Days } from './days.ts';

export type Measure = 'entries' | 'bytes' | 'requests' | 'inputTokens' | 'outputTokens';

export interface CountedMeasure {
  /** Days since 1970-01-01. */
  day: number;
  measure: Measure;
  amount: number;
}

/** Requests of a tenant on a day. */
export interface CountedRequests {
  tenant: string;
  /** Days since 1970-01-01. */
  day: number;
  requests: number;
}

/** The connection was lost while the database wrote: nobody knows whether it did. */
export class OutcomeUnknown extends Error {}

/** What the tenant has used on these days; entries that are not folded yet are among it. One statement, one snapshot. */
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

/**
 * Adds requests, all or none; those of tenants that are not there any more are left out. Rejects with OutcomeUnknown where
 * the connection was lost meanwhile.
 */
export async function addRequests(pool: TenantPool, counted: readonly CountedRequests[]): Promise<void> {
  const connection = await pool.connect();
  try {
    await connection.query({
      name: 'usage_add_requests',
      // In one order, so that two processes never wait for each other in a circle.
      text: `
        insert into usage_count as so_far (tenant, day, measure, amount)
          select t.tenant, counted.day, 'requests', counted.requests
            from unnest($1::text[], $2::integer[], $3::bigint[]) as counted (tenant, day, requests)
            join tenant t on t.tenant = counted.tenant
            order by t.tenant, counted.day
          on conflict (tenant, day, measure) do update set amount = so_far.amount + excluded.amount`,
      values: [
        counted.map(({ tenant }) => tenant),
        counted.map(({ day }) => day),
        counted.map(({ requests }) => requests),
      ],
    });
  } catch (error) {
    if (error instanceof pg.DatabaseError) throw error;
    throw new OutcomeUnknown('The connection was lost while requests were counted.', { cause: error });
  } finally {
    connection.release();
  }
}
