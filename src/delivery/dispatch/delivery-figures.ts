import { sql } from 'kysely';
import type { Database } from '../../postgres/database.ts';
import { rowsOfAll } from '../../postgres/tenants/tenants.ts';
import type { SubscriptionState } from '../subscriptions/tables.ts';

/** Subscriptions of all tenants by target type and state. */
export interface DeliveryFigures {
  readonly type: string;
  readonly state: SubscriptionState;
  readonly count: number;
  readonly parked: number;
}

export async function readDeliveryFigures(db: Database): Promise<DeliveryFigures[]> {
  const { rows } = await sql<DeliveryFigures>`
    select s.fields #>> '{target,type}' as type, t.state, count(*)::bigint as count, sum(t.parked)::bigint as parked
      from subscription_state t join subscription s on s.tenant = t.tenant and s.id = t.subscription
      group by 1, 2`.execute(db);
  return rows;
}

/** The largest lag among the subscriptions with a target type. */
export interface DeliveryLag {
  readonly type: string;
  readonly positions: number;
  readonly seconds: number;
}

// Uses indexes only: the oldest undelivered change of each running subscription, and the newest of its tenant.
const lagOfSubscriptions = `
  with reader as materialized (
    select t.tenant, s.fields #>> '{target,type}' as type, min(least(t.position + 1, w.position)) as oldest
      from %1$s t
      join %2$s s on s.tenant = t.tenant and s.id = t.subscription
      left join lateral (
        select min(d.position) as position from %3$s d
          where d.tenant = t.tenant and d.subscription = t.subscription and d.parked_at is null
      ) w on true
      where t.state in ('active', 'retrying')
      group by 1, 2
  )
  select r.type, max(greatest(coalesce(n.last, 0) - r.oldest + 1, 0)) as positions,
         coalesce(max(case when r.oldest <= n.last then
           greatest(extract(epoch from statement_timestamp()) - p.recorded[r.oldest - p.first + 1] / 1000.0, 0) end), 0)
           as seconds
    from reader r
    left join lateral (
      select c.first + cardinality(c.fingerprints) - 1 as last from %4$s c where c.tenant = r.tenant order by c.first desc limit 1
    ) n on true
    left join lateral (
      select c.first, c.recorded from %4$s c
        where c.tenant = r.tenant and c.first <= r.oldest order by c.first desc limit 1
    ) p on true
    group by r.type`;

export async function readDeliveryLag(db: Database): Promise<DeliveryLag[]> {
  const tables = ['subscription_state', 'subscription', 'delivery_waiting', 'change_position'];
  const found = await rowsOfAll<DeliveryLag>(db, lagOfSubscriptions, tables);
  return [...Map.groupBy(found, ({ type }) => type)].map(([type, lags]) => ({
    type,
    positions: Math.max(...lags.map(({ positions }) => positions)),
    seconds: Math.max(...lags.map(({ seconds }) => seconds)),
  }));
}
