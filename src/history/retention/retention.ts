import { sql } from 'kysely';
import { OperatorError } from '../../core/errors.ts';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';
import { findHold } from '../../postgres/tenants/tenants.ts';
import { tenantsWith } from '../../postgres/tenants/tenants-with.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import { entriesOfRow, lastPosition } from '../../recording/positions.ts';
import { rangesOf, writeReceipt } from '../../recording/receipt-store.ts';
import { forgetNames } from '../documents/name-documents.ts';

const day = 86_400_000;

interface Retention {
  tenant: string;
  keepDays: number;
  /** The first moment of the history that is kept, in milliseconds since 1970: the beginning of a UTC day. */
  horizon: number;
}

/**
 * Sets a tenant's retention: today and the `keepDays` whole UTC days before it, day by day from now on. When this
 * returns, no answer has older entries; their rows are deleted later. A horizon never moves back, because entries
 * before it may be gone. Throws an OperatorError if the tenant is on hold.
 */
export async function setRetention(db: Database, tenant: string, keepDays: number, now: number): Promise<Retention> {
  const horizon = Math.max(0, (Math.floor(now / day) - keepDays) * day);
  const { rows } = await sql<{ horizon: number }>`
    insert into change_retention as r (tenant, keep_days, horizon) values (${tenant}, ${keepDays}, ${horizon})
      on conflict (tenant) do update set keep_days = excluded.keep_days,
        horizon = greatest(r.horizon, (${now}::bigint / ${day} - r.keep_days) * ${day}, excluded.horizon)
        where r.held_since is null
      returning horizon`.execute(db);
  const [set] = rows;
  if (set === undefined) throw new OperatorError(`${tenant} is on hold: its retention stands still until the release`);
  return { tenant, keepDays, horizon: set.horizon };
}

/** The first moment, in milliseconds since 1970, whose history the tenant still keeps. */
export async function readHorizon(db: Database, tenant: string, now: number): Promise<number> {
  const { rows } = await sql<{ horizon: number }>`select change_horizon(${tenant}, ${now}) as horizon`.execute(db);
  return rows[0]?.horizon ?? 0;
}

interface DropExpiredOptions {
  now: () => number;
  /** The number of rows of a portion. */
  maxRows: number;
  signal: AbortSignal;
  /** Called with the milliseconds that a portion took. */
  rest: (taken: number) => Promise<void>;
  onError: (error: unknown) => void;
}

/** How far a run is with a tenant. */
interface Progress {
  /** The horizon before which all entries have receipts. */
  receipts?: number;
  /** The horizon before which no rows are left. */
  done?: number;
  reached: number;
}

/**
 * Deletes all expired rows after receipts list them, one portion of each tenant in turn, so that a long history does
 * not delay other tenants. The next run retries a tenant that failed.
 */
export async function dropExpired(
  db: Database,
  { now, maxRows, signal, rest, onError }: DropExpiredOptions,
): Promise<void> {
  const progressOf = new Map<string, Progress>();
  const failed = new Set<string>();

  async function work(tenant: string, horizon: number, progress: Progress): Promise<void> {
    if (progress.receipts !== horizon) {
      if (await writeExpiryReceipts(db, tenant, horizon, now())) return;
      progress.receipts = horizon;
    }
    const { dropped, reached } = await dropPortion(db, tenant, horizon, { maxRows, from: progress.reached });
    progress.reached = reached;
    if (dropped === 0) progress.done = horizon;
  }

  for (let isOpen = true; isOpen && !signal.aborted; ) {
    isOpen = false;
    // Each round reads them again: another tenant may have a horizon by now.
    for (const tenant of await tenantsWith(db, { table: 'change_retention', condition: 'true' })) {
      if (signal.aborted) return;
      if (failed.has(tenant)) continue;
      const begun = performance.now();
      try {
        const horizon = await readHorizon(db, tenant, now());
        const progress = progressOf.getOrInsertComputed(tenant, () => ({ reached: 0 }));
        if (progress.done === horizon) continue;
        isOpen = true;
        await work(tenant, horizon, progress);
      } catch (error) {
        onError(error);
        failed.add(tenant);
      }
      await rest(performance.now() - begun);
    }
  }
}

/**
 * Deletes some rows of a tenant from before the horizon, the oldest entries first. Returns the number of rows; 0 means
 * that none are left. `from` is where an earlier portion stopped, `reached` where this one does, in milliseconds since
 * 1970. Each call is a short transaction that blocks no reader or recorder. In the tallies it may conflict with a fold
 * or with another process that deletes the same rows, and is then retried. Nothing is deleted while the tenant is on
 * hold.
 */
export async function dropPortion(
  db: Database,
  tenant: string,
  horizon: number,
  { maxRows, from = 0 }: { maxRows: number; from?: number },
): Promise<{ dropped: number; reached: number }> {
  return await inTransaction(
    db,
    async (transaction) => {
      if ((await findHold(transaction, tenant)) !== undefined) return { dropped: 0, reached: from };
      const { rows } = await sql<{ dropped: number; reached: number; documents: string[] }>`
        with expired as (
          select at, sequence from change_entry
            where tenant = ${tenant} and at >= ${from} and at < ${horizon} order by at limit ${maxRows}
        ), entry as (
          delete from change_entry e using expired x
            where e.tenant = ${tenant} and e.at = x.at and e.sequence = x.sequence returning e.document, e.name
        ), related as (
          delete from change_related r using expired x
            where r.tenant = ${tenant} and r.at = x.at and r.sequence = x.sequence returning 1
        ), passed as (
          -- fenced: of each level the range of its index that is passed, whatever the planner makes of it
          select old.level, old.bucket, old.actor, old.kind
            from generate_series(0, 4) as at (level)
            cross join lateral (
              select t.level, t.bucket, t.actor, t.kind from change_tally t
                where t.tenant = ${tenant} and t.level = at.level and t.bucket < ${horizon}::bigint / change_cell(at.level)
                offset 0
            ) as old
            where not exists (select from expired)
            limit ${maxRows}
        ), tally as (
          delete from change_tally t using passed p
            where t.tenant = ${tenant} and t.level = p.level and t.bucket = p.bucket and t.actor = p.actor and t.kind = p.kind
            returning 1
        )
        select (select count(*) from entry) + (select count(*) from related) + (select count(*) from tally) as dropped,
               (select coalesce(max(at), ${from}::bigint) from expired) as reached,
               array(select distinct document from entry where name is not null) as documents`.execute(transaction);
      const { documents = [], ...portion } = rows[0] ?? { dropped: 0, reached: from };
      await forgetNames(transaction, tenant, documents);
      return portion;
    },
    { retries: 3 },
  );
}

/** Rows of positions of one portion, each of up to 4,096 positions. */
const rowsOfPortion = 5;
const maxPlacesOfRow = 4_096;

/** All entries from before a time, up to a position. */
interface Covered {
  readonly horizon: number;
  readonly until: number;
}

/** What the receipts of a tenant cover, and what the round under way will cover, if there is one. */
interface ReceiptProgress extends Covered {
  readonly nextHorizon: number | null;
  readonly nextUntil: number | null;
  readonly reached: number;
}

/**
 * Writes receipts for a portion of the entries from before a tenant's horizon that have none, in a short transaction,
 * before their rows are dropped. Returns whether some are left. A call resumes where the last one ended.
 */
export async function writeExpiryReceipts(
  db: Database,
  tenant: string,
  horizon: number,
  now: number,
): Promise<boolean> {
  return await inTransaction(
    db,
    async (transaction) => {
      if ((await findHold(transaction, tenant)) !== undefined) return false;
      const { nextHorizon, nextUntil, reached, ...covered } = await lockProgress(transaction, tenant);
      const until = nextUntil ?? (await lastPosition(transaction, tenant)).position;
      const round = { horizon: nextHorizon ?? horizon, until };
      if (round.horizon === covered.horizon && round.until === covered.until) return false;
      // With the same horizon, only new positions can be without a receipt.
      const after = round.horizon === covered.horizon ? Math.max(covered.until, reached) : reached;
      const { positions, end } = await readExpired(transaction, tenant, { covered, round, after });
      if (positions.length > 0) {
        await writeReceipt(transaction, tenant, {
          what: 'retention',
          positions: rangesOf(positions),
          at: new Date(now).toISOString(),
          by: 'annals',
          before: new Date(round.horizon).toISOString(),
        });
      }
      const hasMore = end !== undefined && end < until;
      const row = hasMore
        ? sql`next_horizon = ${round.horizon}::bigint, next_until = ${until}::bigint, reached = ${end}::bigint`
        : sql`horizon = ${round.horizon}::bigint, until = ${until}::bigint, next_horizon = null, next_until = null, reached = 0`;
      await sql`update change_retention_told set ${row} where tenant = ${tenant}`.execute(transaction);
      return hasMore;
    },
    { retries: 3 },
  );
}

async function lockProgress(transaction: DatabaseTransaction, tenant: string): Promise<ReceiptProgress> {
  await sql`insert into change_retention_told (tenant) values (${tenant}) on conflict (tenant) do nothing`.execute(
    transaction,
  );
  const { rows } = await sql<ReceiptProgress>`
    select horizon, until, next_horizon as "nextHorizon", next_until as "nextUntil", reached
      from change_retention_told where tenant = ${tenant} for update`.execute(transaction);
  const [progress] = rows;
  if (progress === undefined) throw new Error('an inserted row is missing');
  return progress;
}

/** The positions of a portion behind `after`, and where the portion ends; no end: there are no more rows. */
async function readExpired(
  transaction: DatabaseTransaction,
  tenant: string,
  { covered, round, after }: { covered: Covered; round: Covered; after: number },
): Promise<{ positions: number[]; end: number | undefined }> {
  // Rows end at multiples of 4,096 positions. To know the length of a row its arrays would have to be read.
  const { rows } = await sql<{ positions: number[]; end: number | null }>`
    with portion as materialized (
      select p.* from change_position p
        where p.tenant = ${tenant} and p.oldest < ${round.horizon}::bigint and p.first <= ${round.until}::bigint
          and p.first >= coalesce((
            select first from change_position
              where tenant = ${tenant} and first <= ${after}::bigint + 1 order by first desc limit 1), 1)
          and (p.newest >= ${covered.horizon}::bigint or p.first > ${covered.until - maxPlacesOfRow}::bigint)
        order by p.first limit ${rowsOfPortion}::integer
    )
    select coalesce((select json_agg(place.position order by place.position) from (
             select p.first + entry.number - 1 as position, entry.at
               from portion p cross join lateral ${entriesOfRow} as entry
             ) place
             where place.at >= 0 and place.at < ${round.horizon}::bigint
               and place.position > ${after}::bigint and place.position <= ${round.until}::bigint
               and (place.at >= ${covered.horizon}::bigint or place.position > ${covered.until}::bigint)), '[]') as positions,
           (select case when count(*) = ${rowsOfPortion}::integer then max(first + cardinality(fingerprints) - 1) end from portion) as end`.execute(
    transaction,
  );
  return { positions: rows[0]?.positions ?? [], end: rows[0]?.end ?? undefined };
}
