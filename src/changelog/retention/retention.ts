import { CompiledQuery } from 'kysely';
import type { Database } from '../../db/database.ts';
import { inTransaction } from '../../db/transaction.ts';

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
 * Deletes some of what a tenant has from before the horizon, entries first, oldest first, and answers how many rows that
 * were; 0: there is none left. `from` is where an earlier portion came to, so that what that one has deleted is not looked
 * through again; `reached` is where this one came to, in milliseconds since 1970. Each call is a short transaction
 * that no reader and no recorder waits for. In the tallies it may meet a fold, or another process that drops the same;
 * whoever loses such a race begins again.
 */
export async function dropPortion(
  db: Database,
  tenant: string,
  horizon: number,
  { most, from = 0 }: { most: number; from?: number },
): Promise<{ dropped: number; reached: number }> {
  const statement = CompiledQuery.raw(
    `with expired as (
         select at, sequence from change_entry where tenant = $1 and at >= $4 and at < $2 order by at limit $3
       ), entry as (
         delete from change_entry e using expired x
           where e.tenant = $1 and e.at = x.at and e.sequence = x.sequence returning 1
       ), related as (
         delete from change_related r using expired x
           where r.tenant = $1 and r.at = x.at and r.sequence = x.sequence returning 1
       ), passed as (
         -- fenced: of each level the range of its index that is passed, whatever the planner makes of it
         select old.level, old.bucket, old.actor, old.kind
           from generate_series(0, 4) as at (level)
           cross join lateral (
             select t.level, t.bucket, t.actor, t.kind from change_tally t
               where t.tenant = $1 and t.level = at.level and t.bucket < $2::bigint / change_cell(at.level) offset 0
           ) as old
           where not exists (select from expired)
           limit $3
       ), tally as (
         delete from change_tally t using passed p
           where t.tenant = $1 and t.level = p.level and t.bucket = p.bucket and t.actor = p.actor and t.kind = p.kind
           returning 1
       )
       select (select count(*) from entry) + (select count(*) from related) + (select count(*) from tally) as dropped,
              (select coalesce(max(at), $4::bigint) from expired) as reached`,
    [tenant, horizon, most, from],
  );
  const { rows } = await inTransaction(
    db,
    (transaction) => transaction.executeQuery<{ dropped: number; reached: number }>(statement),
    { retries: 3 },
  );
  return rows[0] ?? { dropped: 0, reached: from };
}

export interface DropExpiredOptions {
  now: () => number;
  /** Rows of a portion. */
  most: number;
  signal: AbortSignal;
  /** Told how many milliseconds a portion took. */
  rest: (taken: number) => Promise<void>;
  onError: (error: unknown) => void;
}

/**
 * Deletes all that is expired, a portion of each tenant in turn, so that one with a long history keeps nobody else's from
 * going. A tenant whose turn fails is left to the next time.
 */
export async function dropExpired(db: Database, options: DropExpiredOptions): Promise<void> {
  const { now, most, signal, rest, onError } = options;
  const reached = new Map<string, number>();
  /** The horizons before which there is nothing left. */
  const done = new Map<string, number>();
  while (!signal.aborted) {
    // Read again in each round: another tenant may have got a horizon since.
    const open = (await readHorizons(db, now())).filter(({ tenant, horizon }) => done.get(tenant) !== horizon);
    if (open.length === 0) return;
    for (const { tenant, horizon } of open) {
      if (signal.aborted) return;
      const begun = performance.now();
      try {
        const portion = await dropPortion(db, tenant, horizon, { most, from: reached.get(tenant) ?? 0 });
        reached.set(tenant, portion.reached);
        if (portion.dropped === 0) done.set(tenant, horizon);
      } catch (error) {
        onError(error);
        done.set(tenant, horizon);
      }
      await rest(performance.now() - begun);
    }
  }
}
