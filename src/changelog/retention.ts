import { CompiledQuery } from 'kysely';
import type { Database } from '../db/database.ts';
import { inTransaction } from '../db/transaction.ts';

const day = 86_400_000;

export interface Retention {
  tenant: string;
  keepDays: number;
  /** The first moment of the history that is kept, in milliseconds since 1970: the beginning of a UTC day. */
  horizon: number;
}

/**
 * Keeps of a tenant's history today and the `keepDays` whole UTC days before it, from now on and day by day. What is
 * older is in no answer any more when this returns; its rows go afterwards. A horizon never moves back: what it has
 * passed may be gone already.
 */
export async function setRetention(db: Database, tenant: string, keepDays: number, now: number): Promise<Retention> {
  const horizon = Math.max(0, (Math.floor(now / day) - keepDays) * day);
  const { rows } = await db.executeQuery<{ horizon: number }>(
    CompiledQuery.raw(
      `insert into change_retention as r (tenant, keep_days, horizon) values ($1, $2, $3)
       on conflict (tenant) do update set keep_days = excluded.keep_days,
         horizon = greatest(r.horizon, ($4::bigint / $5 - r.keep_days) * $5, excluded.horizon)
       returning horizon`,
      [tenant, keepDays, horizon, now, day],
    ),
  );
  return { tenant, keepDays, horizon: rows[0]?.horizon ?? horizon };
}

/** The tenants that have dropped some of their history, with what is their horizon now. */
export async function readHorizons(db: Database, now: number): Promise<{ tenant: string; horizon: number }[]> {
  const { rows } = await db.executeQuery<{ tenant: string; horizon: number }>(
    CompiledQuery.raw('select tenant, change_horizon(tenant, $1) as horizon from change_retention', [now]),
  );
  return rows;
}

/**
 * Deletes some of what a tenant has from before the horizon and answers how many rows that were; 0: there is none
 * left. Each call is a short transaction that no reader and no recorder waits for. In the tallies it may meet a fold, or
 * another process that drops the same; whoever loses such a race begins again.
 */
export async function dropExpired(db: Database, tenant: string, horizon: number, most: number): Promise<number> {
  const statement = CompiledQuery.raw(
    `with expired as (
         select at, sequence from change_entry where tenant = $1 and at < $2 order by at limit $3
       ), entry as (
         delete from change_entry e using expired x
           where e.tenant = $1 and e.at = x.at and e.sequence = x.sequence returning 1
       ), related as (
         delete from change_related r using expired x
           where r.tenant = $1 and r.at = x.at and r.sequence = x.sequence returning 1
       ), tally as (
         delete from change_tally t
           where t.tenant = $1 and (t.level, t.actor, t.kind, t.bucket) in (
             select level, actor, kind, bucket from change_tally old
               where old.tenant = $1 and (old.bucket + 1) * change_cell(old.level) <= $2
               limit case when exists (select from expired) then 0 else $3 end)
           returning 1
       )
       select (select count(*) from entry) + (select count(*) from related) + (select count(*) from tally) as dropped`,
    [tenant, horizon, most],
  );
  const { rows } = await inTransaction(db, (transaction) => transaction.executeQuery<{ dropped: number }>(statement), {
    retries: 3,
  });
  return rows[0]?.dropped ?? 0;
}
