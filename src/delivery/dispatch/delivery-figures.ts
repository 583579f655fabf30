import { sql } from 'kysely';
import type { Database } from '../../postgres/database.ts';
import { rowsOfAll } from '../../postgres/tenants/rows-of-all.ts';
import type { SubscriptionState } from '../subscriptions/tables.ts';

/** The subscriptions of all tenants with one type of target and one state. */
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

/** How far the subscriptions with one type of target are behind, the one that is farthest. */
export interface DeliveryLag {
  readonly type: string;
  readonly positions: number;
  readonly seconds: number;
}

// By indexes: of each subscription that delivers, the oldest change that it has not delivered, and the newest of its tenant.
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
